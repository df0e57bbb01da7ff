import json
import shutil

import msgspec
import pytest
from builders.runs import make_entry, make_task

from harness import registry as plugin_manager
from harness.cli.main import main
from harness.runs.run_folder import RunFolder

PLUGIN = """
from typing import Annotated

import msgspec

from harness import Analysis, hookimpl
from harness.contracts.report import Axis, Bars, Figure, Report, Sheet


class Options(msgspec.Struct, frozen=True, kw_only=True):
    above: Annotated[int, msgspec.Meta(description="only longer lists")] = 0
    picture: bool = True


def run(tasks, options):
    rows = []
    for task in tasks:
        many = [score.values["many"] for score in task.scores() if score.values]
        rows.append((task.label, task.task.name, sum(each > options.above for each in many)))
    bars = Bars(label="people", names=tuple(row[0] for row in rows),
                values=tuple(row[2] for row in rows))
    figure = Figure(title="People", x=Axis(label=""), y=Axis(label="people"), marks=(bars,))
    return Report(
        notes=("Of \\x1b[31mlists.",),
        sheets=(Sheet(title="Long lists", columns=("model", "task", "people"), rows=tuple(rows)),),
        figures=(figure,) if options.picture else (),
    )


def broken(tasks, options):
    return 1 / 0


@hookimpl
def register_analyses(register):
    register("toybench", "toy-long", description="How many name much.",
             factory=lambda: Analysis(name="toy-long", description="How many name much.",
                                      run=run, options=Options))
    register("toybench", "toy-broken", description="Fails.",
             factory=lambda: Analysis(name="toy-broken", description="Fails.", run=broken))
"""


@pytest.fixture(autouse=True)
def analyses(toy_plugin, site):
    """An installed distribution with analyses of the benchmark `toybench`."""
    site.install("toyanalyses", {"toy": "toyanalyses_plugin"}, {"toyanalyses_plugin.py": PLUGIN})
    plugin_manager.reset()


def test_a_report_is_printed_whole_by_its_own_options_and_cannot_steer_the_terminal(
    scored_run, printed
):
    said = printed("analyse", "toy-long", str(scored_run.path))
    assert [line.rstrip() for line in said.out.splitlines()] == [
        "Of \\x1b[31mlists.",
        "",
        "Long lists",
        "model  task  people",
        "───────────────────",
        "m-1    toy        1",
    ]
    assert "left out, as it is not finished: later" in said.err
    assert said.err.endswith("\n--plot FILE.svg draws a figure: People\n")
    run, more = str(scored_run.path), ("--task", "toy", "--no-picture")
    said = printed("analyse", "toy-long", "--above", "2", run, *more)
    assert "m-1    toy        0" in said.out
    assert said.err == ""


def test_a_run_with_too_many_failures_says_how_to_ask_again_and_how_to_accept_them(
    scored_run, capsys
):
    manifest = scored_run.manifest()
    scored_run.write_manifest(msgspec.structs.replace(manifest, status="too_many_failures"))
    for command in (["analyse", "toy-long"], ["score"]):
        main([*command, str(scored_run.path)])
        err = capsys.readouterr().err
        assert "where it stopped and asks again what got no answer; add --retry_failures" in err
        assert "or a larger --max_failures to accept it" in err


def test_what_keeps_some_runs_from_being_compared_says_which(scored_run, capsys, printed):
    replace, manifest = msgspec.structs.replace, scored_run.manifest()
    other = RunFolder(shutil.copytree(scored_run.path, scored_run.path.with_name("other")))
    entry = replace(manifest.tasks["toy"], not_comparable_because=("changed by --set",))
    tasks = {**manifest.tasks, "toy": entry}
    other.write_manifest(replace(manifest, run_id="other", model="m-2", tasks=tasks))
    main(["score", str(other.path)])
    capsys.readouterr()
    said = "NOT COMPARABLE with published results: changed by --set"
    for runs, stamp in (
        ([scored_run], ""), ([scored_run, other], f"{said} (m-2)"), ([other], said),
    ):  # fmt: skip
        command = ["analyse", "toy-long", *(str(run.path) for run in runs)]
        assert printed(*command).out.splitlines()[0].rstrip() == (stamp or "Of \\x1b[31mlists.")
        [figure] = json.loads(printed(*command, "--json").out)["report"]["figures"]
        assert figure["stamp"] == stamp


def test_json_holds_what_was_read_what_was_left_out_and_the_report(scored_run, printed):
    document = json.loads(printed("analyse", "toy-long", str(scored_run.path), "--json").out)
    assert document["analysis"] == "toy-long"
    assert document["tasks"] == [{"task": "toy", "run": "r", "label": "m-1"}]
    assert ["later" in problem for problem in document["left_out"]] == [True]
    assert document["report"]["sheets"][0]["rows"] == [["m-1", "toy", 1]]
    assert document["report"]["figures"][0]["marks"][0]["type"] == "bars"


def test_a_run_counts_once_and_one_that_is_none_does_not_keep_the_others_from_it(
    scored_run, printed, tmp_path
):
    copy = shutil.copytree(scored_run.path, scored_run.path.with_name("copy"))
    said = printed("analyse", "toy-long", *map(str, (scored_run.path, copy, scored_run.path)))
    assert said.out.count("m-1    toy        1") == 1
    assert f"{copy} is the same run as {scored_run.path} and counts once" in said.err
    said = printed("analyse", "toy-long", str(tmp_path / "no"), str(scored_run.path), code=1)
    assert "this run does not exist" in said.err
    assert "m-1    toy        1" in said.out


def test_a_task_of_another_benchmark_is_not_looked_at_unless_it_is_asked_for(scored_run, printed):
    manifest = scored_run.manifest()
    tasks = {**manifest.tasks, "odd": make_entry(make_task("odd", benchmark="of nobody"))}
    scored_run.write_manifest(msgspec.structs.replace(manifest, tasks=tasks))
    run = str(scored_run.path)
    said = printed("analyse", "toy-long", run)
    assert "odd" not in said.out + said.err
    assert "nobody" not in printed("analyse", "forest", run, "--task", "toy").err
    err = printed("analyse", "forest", run, "--task", "odd", code=1).err
    assert "no plugin offers the benchmark 'of nobody'" in err


def test_a_task_that_cannot_be_read_keeps_no_other_from_being_scored(scored_run, printed):
    manifest = scored_run.manifest()
    entry = manifest.tasks["later"]
    torn = msgspec.structs.replace(entry, definition={**entry.definition, "metrics": 5})
    tasks = {**manifest.tasks, "later": torn}
    scored_run.write_manifest(msgspec.structs.replace(manifest, tasks=tasks))
    said = printed("score", str(scored_run.path), code=1)
    assert "1 task scored" in said.out
    assert "later, in manifest.json: the manifest of the run defines a task" in said.err


def test_tasks_that_cannot_be_used_are_an_error_that_names_what_there_was(kept_run, printed):
    err = printed("analyse", "toy-long", str(kept_run.path), code=1).err
    assert "the runs have no task that 'toy-long'" in err
    assert "found:    unusable tasks: toy, later" in err
    assert "expected: runs with a finished task of the benchmark 'toybench'" in err
    err = printed("analyse", "toy-long", str(kept_run.path), "--task", "toi", code=2).err
    assert "later, toy" in err
    assert "did you mean 'toy'?" in err


def test_an_analysis_that_raises_is_reported_as_its_plugins_failure(scored_run, printed):
    err = printed("analyse", "toy-broken", str(scored_run.path), "--task", "toy", code=1).err
    assert "harness: plugin 'toy' of toyanalyses: 'toy-broken' failed" in err
    assert err.endswith(
        "\nZeroDivisionError: division by zero\n"
        "  to do:    fix the plugin, or report this to its developers\n"
    )


def test_figures_are_drawn_where_asked_and_without_one_the_report_comes_first(
    scored_run, tmp_path, printed
):
    file, run = tmp_path / "people.svg", str(scored_run.path)
    said = printed("analyse", "toy-long", run, "--task", "toy", "--plot", str(file))
    assert said.err == f"drawn: {file}\n"
    assert ">People</text>" in file.read_text("utf-8")
    plot = ["--plot", str(tmp_path / "a.svg"), "--no-picture", "--task", "toy"]
    said = printed("analyse", "toy-long", str(scored_run.path), *plot, code=1)
    assert "m-1    toy        1" in said.out
    assert "--plot: the report has no figures" in said.err
    assert not (tmp_path / "a.svg").exists()
