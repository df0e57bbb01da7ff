"""What authors of plugins are told whose code cannot be used, and people of one stored run."""

import fcntl
import json
import shutil
from functools import partial
from types import SimpleNamespace

import msgspec
import pytest
from builders.stages import make_benchmark
from inline_snapshot import snapshot

import harness
from harness.base.errors import HarnessError, PluginError, TaskError, UsageError
from harness.cli.command import Option
from harness.cli.tools import options_of
from harness.contracts.stage import Stage
from harness.parsing import JsonReader
from harness.parsing.ladder import SchemaCheck
from harness.pipeline.plan import check_order
from harness.pipeline.roles import RoleBinder
from harness.pipeline.settings import make_settings
from harness.scoring.score_run import task_options
from harness.testing import ScriptedModel, run_tasks


def test_all_that_an_error_can_say():
    error = HarnessError("it broke", where="a.csv:1", found="3", expected="4", hint="add 1")
    assert str(error) == ("a.csv:1: it broke\n  found:    3\n  expected: 4\n  to do:    add 1")
    assert str(HarnessError("it broke")) == "it broke"


class Window(msgspec.Struct):
    window: int = 20


def benchmark(*stages):
    return make_benchmark(*stages, name="films", options=Window)


def stage(name, after=()):
    return Stage(name, item=None, value=None, items=None, work=None, after=after)


def test_stages_out_of_order(raised):
    before = benchmark(stage("a"), stage("b", after=("c",)))
    assert raised(PluginError, check_order, before, found="c") == snapshot("""\
stage 'b' of benchmark 'films' has a stage in `after` that is not listed before it
expected: a\
""")
    before = benchmark(stage("a", after=("b",)), stage("b"))
    assert raised(PluginError, check_order, before, found="b") == snapshot("""\
stage 'a' of benchmark 'films' has a stage in `after` that is not listed before it
expected: a first stage without `after`\
""")
    assert raised(PluginError, check_order, benchmark(stage("a"), stage("a"))) == snapshot("""\
benchmark 'films' has two stages named 'a'
expected: a different name for each stage\
""")


def test_options_that_a_newer_benchmark_does_not_take(raised):
    task = SimpleNamespace(name="films", options={"window": "wide"})
    where, found = "task 'films'", "Expected `int`, got `str` - at `$.window`"
    wording = raised(TaskError, task_options, task, benchmark(), where=where, found=found)
    assert wording == snapshot("""\
benchmark 'films' no longer accepts these options
to do: use the release of the plugin that the manifest names\
""")


def test_a_schema_that_is_none(raised):
    check, found = (
        SchemaCheck({"type": "wrong"}),
        "'wrong' is not valid under any of the given schemas",
    )
    wording = raised(PluginError, check.problem, 3, found=found)
    assert wording == snapshot("a reader's schema is no valid JSON Schema")


class Folder(msgspec.Struct):
    name: str
    inside: list["Folder"]


def test_a_type_that_no_reader_can_have(raised):
    of_type = partial(JsonReader, type=list[Folder])
    assert raised(PluginError, of_type, found="Folder -> Folder") == snapshot("""\
a reader's type contains itself
expected: a type without recursion, since servers accept no references\
""")
    of_type = partial(JsonReader, type=complex)
    found = "type <class 'complex'> is not supported"
    assert raised(PluginError, of_type, found=found) == snapshot("""\
a reader's type has no JSON Schema
expected: a type with a schema in msgspec, such as list[Interest]\
""")
    both = partial(JsonReader, type=list[int], schema={"type": "array"})
    assert raised(PluginError, both) == snapshot("""\
a reader has both a type and a schema
expected: either `type` or `schema`: a type brings its own schema\
""")


def test_an_option_of_a_tool_that_the_command_has_itself(raised):
    class Options(msgspec.Struct):
        json: bool = False

    own = [Option(["--json"])]
    assert raised(PluginError, partial(options_of, own=own), Options) == snapshot("""\
the field 'json' of Options has the name of an option of the command itself
expected: a field with a name that no option of the command has\
""")


def test_models_of_tests(tmp_path, raised):
    twins = {"model": ScriptedModel("a", name="m"), "judge": ScriptedModel("b", name="m")}
    run = partial(run_tasks, "interests", **twins, folder=tmp_path)
    assert raised(UsageError, run, found="m, m") == snapshot("""\
two scripted models of one run have the same name
expected: different names: ScriptedModel(…, name="judge")\
""")


def test_a_run_that_a_fault_of_ours_ended_says_so_in_its_manifest(tmp_path, monkeypatch):
    def broken(*given):
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr("harness.pipeline.run._score_finished", broken)
    with pytest.raises(RuntimeError, match="nobody thought of this"):
        harness.evaluate(
            "interests", model="baseline", judge="lexical", data="sample", limit=2,
            output_path=tmp_path, reuse="run",
        )  # fmt: skip
    [folder] = (each for each in tmp_path.iterdir() if each.is_dir())
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["status"] == "failed"
    assert manifest["problem"] == snapshot("the harness itself failed; see its traceback")


COMMANDS = {
    "export RUN --format csv --task interest --out x": (2, UsageError, None, None, snapshot("""\
the run has no task 'interest'
expected: interests
to do: did you mean 'interests'?\
""")),
    "show RUN --samples --stage nam": (2, UsageError, None, None, snapshot("""\
the run has no stage 'nam'
expected: name, support
to do: did you mean 'name'?\
""")),
    "--model replay:run=RUN,role=canddate --judge lexical --tasks interests --data sample": (
        2, UsageError, "RUN", None,
        snapshot("""\
no model had the role 'canddate' in this run
expected: role= one of candidate
to do: did you mean 'candidate'?\
""")),
    "new-plugin taken": (2, UsageError, None, "taken", snapshot("""\
this folder or file already exists
expected: a folder that does not exist: nothing is overwritten
to do: choose another name, or another folder with --into\
""")),
    "--model baseline --judge panel:lexical+panel:lexical+lexical --tasks interests": (
        2, UsageError, "role judge", "panel:lexical",
        snapshot("""\
the judge 'panel' cannot have a panel as a member
expected: members that are models or single judges\
""")),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command, small_run, tmp_path, monkeypatch, exits):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    code, kind, where, found, wording = COMMANDS[command]
    assert exits(code, kind, command, where=where, found=found, RUN=small_run) == wording


def test_a_run_at_which_another_process_is_at_work(small_run, tmp_path, exits):
    run = shutil.copytree(small_run, tmp_path / "run")
    command = "--model baseline --judge lexical --tasks interests --data sample --limit 2"
    with (run / "lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(json.dumps({"pid": 4711, "host": "ada"}))
        lock.flush()
        wording = exits(
            1, HarnessError, f"{command} --resume RUN --reuse run",
            where="RUN", found="process 4711 on ada is at work in it", RUN=run,
        )  # fmt: skip
    assert wording == snapshot("""\
the run folder is in use
to do: wait until it has ended, or end it; --reuse none starts a new run in its own folder\
""")


def test_factories_that_break_and_settings_of_another_type(site, raised):
    breaks = """
        from harness import hookimpl

        @hookimpl
        def register_models(register):
            register("broken", lambda settings: 1 // 0)
    """
    site.install("broken-models", {"broken": "broken_models"}, {"broken_models.py": breaks})
    given = {"tasks": ["interests"], "model": "broken"}
    bind = RoleBinder(make_settings(given), site.plugins()).bind_given
    found = "ZeroDivisionError: integer division or modulo by zero"
    assert raised(
        PluginError, bind, "candidate", where="plugin 'broken' of broken-models", found=found
    ) == snapshot("""\
'broken' cannot be made
to do: fix the plugin, or report this to its developers\
""")
    found = "Expected `int | null`, got `str` - at `$.limit`"
    told = raised(UsageError, make_settings, {**given, "limit": "many"}, found=found)
    assert told == snapshot("a setting cannot be used")
    misspelt = raised(UsageError, make_settings, {**given, "limits": 3})
    assert misspelt.splitlines()[-1] == snapshot("to do: did you mean 'limit'?")
