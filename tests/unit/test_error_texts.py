"""What authors of plugins are told whose code cannot be used, and people of one stored run."""

import asyncio
import fcntl
import json
from types import SimpleNamespace

import msgspec
import pytest

import harness
from harness.cli.command import Option
from harness.cli.main import main
from harness.cli.struct_options import options_of
from harness.errors import HarnessError
from harness.parsing.schema import SchemaCheck
from harness.pipeline.benchmark import Benchmark, Stage
from harness.pipeline.stages import check_order
from harness.results.scoring import task_options
from harness.scaffold.names import package_name
from harness.testing import ScriptedModel, check_plugin, run_tasks


def said(call, *given, **options):
    with pytest.raises(HarnessError) as caught:
        call(*given, **options)
    return str(caught.value)


class Window(msgspec.Struct):
    window: int = 20


def benchmark(*stages):
    return Benchmark(
        name="films", version=1, load=None, score=None, metrics={}, stages=stages, options=Window
    )


def stage(name, after=()):
    return Stage(name, item=None, value=None, items=None, work=None, after=after)


def test_stages_out_of_order():
    assert (
        said(check_order, benchmark(stage("a"), stage("b", after=("c",))))
        == """\
stage 'b' of benchmark 'films' comes after a stage that is not listed before it
  found:    c
  expected: a"""
    )
    assert (
        said(check_order, benchmark(stage("a", after=("b",)), stage("b")))
        == """\
stage 'a' of benchmark 'films' comes after a stage that is not listed before it
  found:    b
  expected: a first stage without `after`"""
    )
    assert (
        said(check_order, benchmark(stage("a"), stage("a")))
        == """\
benchmark 'films' has two stages named 'a'
  expected: a name for each stage"""
    )


def test_options_that_a_newer_benchmark_does_not_take():
    task = SimpleNamespace(name="films", options={"window": "wide"})
    assert (
        said(task_options, task, benchmark())
        == """\
task 'films': benchmark 'films' does not take these options any more
  found:    Expected `int`, got `str` - at `$.window`
  to do:    use the release of the plugin that the manifest names"""
    )


def test_a_schema_that_is_none():
    assert (
        said(SchemaCheck({"type": "wrong"}).problem, 3)
        == """\
a reader's schema is no valid JSON Schema
  found:    'wrong' is not valid under any of the given schemas"""
    )


def test_an_option_of_a_tool_that_the_command_has_itself():
    class Options(msgspec.Struct):
        json: bool = False

    assert (
        said(options_of, Options, beside=[Option(["--json"])])
        == """\
the field 'json' of Options has the name of an option that the command itself has
  expected: another name"""
    )


REGISTERS = """
    from types import SimpleNamespace
    from harness import hookimpl

    @hookimpl
    def register_{kind}(register):
        register({arguments})
"""


def test_plugins_whose_names_mean_nothing(site, monkeypatch):
    other = 'lambda: SimpleNamespace(name="series")'
    text = REGISTERS.format(kind="benchmarks", arguments=f'"films", {other}')
    site.install("film-benchmark", {"films": "films.plugin"}, {"films/plugin.py": text})
    tool = REGISTERS.format(kind="data_tools", arguments='"peek", str, command="show"')
    site.install("film-tools", {"tools": "film_tools"}, {"film_tools.py": tool})
    plugins = site.plugins()
    assert (
        said(plugins.benchmark, "films")
        == """\
plugin 'films' of film-benchmark: the benchmark registered as 'films' calls itself 'series'
  expected: one name"""
    )
    (broken,) = plugins.broken
    assert str(broken) == (
        "plugin 'tools' of film-tools could not be loaded: PluginError: the tool 'peek' cannot "
        "belong to a command of the harness itself, 'show'"
    )


def test_checks_and_models_of_tests(tmp_path):
    assert said(check_plugin, "interests", checks=["keys"]).startswith("no check 'keys'\n")
    assert said(package_name, "class").startswith("a package cannot well be called 'class'\n")
    twins = {"model": ScriptedModel("a", name="m"), "judge": ScriptedModel("b", name="m")}
    assert (
        said(run_tasks, "interests", **twins, folder=tmp_path)
        == """\
two scripted models of one run have one name
  found:    m, m
  expected: a name for each: ScriptedModel(…, name="judge")"""
    )


def test_a_notebook_has_a_loop_already():
    async def cell():
        return said(harness.evaluate, "interests", model="baseline")

    assert (
        asyncio.run(cell())
        == """\
an event loop is already running here, as in a notebook
  to do:    await harness.aevaluate(…) instead of harness.evaluate(…)"""
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of two people, in a folder RUN."""
    folder = tmp_path_factory.mktemp("kept")
    result = harness.evaluate(
        "interests", model="baseline", judge="lexical", data="sample", limit=2,
        output_path=folder, use_store=False,
    )  # fmt: skip
    return result.folder


def test_a_run_that_a_fault_of_ours_ended_says_so_in_its_manifest(tmp_path, monkeypatch):
    def broken(*given):
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr("harness.pipeline.run._score_finished", broken)
    with pytest.raises(RuntimeError, match="nobody thought of this"):
        harness.evaluate(
            "interests", model="baseline", judge="lexical", data="sample", limit=2,
            output_path=tmp_path, use_store=False,
        )  # fmt: skip
    [folder] = (each for each in tmp_path.iterdir() if each.is_dir())
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["status"], manifest["problem"]) == (
        "failed",
        "the harness itself failed: its traceback tells where",
    )


COMMANDS = {
    "export RUN --format csv --task interest --out x": """\
the run has no task 'interest'
  expected: interests
  to do:    did you mean 'interests'?""",
    "show RUN --stage nam": """\
the run has no stage 'nam'
  expected: name, support
  to do:    did you mean 'name'?""",
    "replies RUN none.jsonl": """\
RUN: this run has asked nothing in batches
  to do:    `harness requests` writes the questions of a run down""",
    "--model replay:run=RUN,role=canddate --judge lexical --tasks interests --data sample": """\
RUN: no model played the role 'canddate' in this run
  expected: role= one of candidate
  to do:    did you mean 'candidate'?""",
    "new-plugin taken": """\
there is something of that name already
  found:    taken
  expected: a folder that is not there yet: nothing is written over
  to do:    another name, or --into another folder""",
    "score RUN --oracle none.json": """\
--oracle: no benchmark of these runs has an oracle
  found:    interests
  expected: runs of a benchmark whose scores depend on a set of runs""",
    "--model baseline --judge lexical --tasks interests --data sample --set window=wide": """\
--set, task interests: the option `window` cannot be used
  found:    "wide"
  expected: a whole number, at least 1""",
    "--model baseline --judge panel:lexical --tasks interests --data sample": """\
a panel is of two judges or more
  found:    lexical
  expected: panel:SPEC+SPEC+…, as in panel:openai:a+openai:b+openai:c""",
    "--model baseline --judge panel:lexical+panel:lexical+lexical --tasks interests": """\
role judge: the judge 'panel' cannot be of judges that are several themselves
  found:    panel:lexical""",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command, run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    assert main(command.replace("RUN", str(run)).split()) in (1, 2)
    error = capsys.readouterr().err.rpartition("harness: ")[2]
    assert error.replace(str(run), "RUN") == f"{COMMANDS[command]}\n"


def test_a_run_at_which_another_process_is_at_work(run, capsys):
    with (run / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(json.dumps({"pid": 4711, "host": "ada"}))
        lock.flush()
        arguments = "--model baseline --judge lexical --tasks interests --data sample --limit 2"
        assert main([*arguments.split(), "--resume", str(run), "--no_store"]) == 1
    error = capsys.readouterr().err.rpartition("harness: ")[2]
    assert (
        error.replace(str(run), "RUN")
        == """\
RUN: the run folder is in use
  found:    process 4711 on ada is at work in it
  to do:    wait until it has ended, or end it; with --fresh a new run starts beside it
"""
    )


def test_factories_that_break_and_settings_of_another_type(site, tmp_path):
    breaks = REGISTERS.format(kind="models", arguments='"broken", lambda settings: 1 // 0')
    site.install("broken-models", {"broken": "broken_models"}, {"broken_models.py": breaks})
    from harness.pipeline.roles import RoleBinder
    from harness.pipeline.settings import make_settings

    given = {"tasks": ["interests"], "model": "broken"}
    binder = RoleBinder(make_settings(given), site.plugins())
    assert (
        said(binder.bind_given, "candidate")
        == """\
'broken' cannot be made
  found:    ZeroDivisionError: integer division or modulo by zero"""
    )
    assert (
        said(make_settings, {**given, "limit": "many"})
        == """\
a setting cannot be used
  found:    Expected `int | null`, got `str` - at `$.limit`"""
    )
    assert said(make_settings, {**given, "limits": 3}).endswith("to do:    did you mean 'limit'?")
