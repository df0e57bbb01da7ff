"""`harness score RUN`: scores from stored records, also under other options."""

import json

import pytest
from cli.conftest import PLUGIN

from harness.cli.compare import score
from harness.scoring.score_run import read_summary


def scored(*arguments):
    code: int = score.main(arguments, standalone_mode=False)
    return code


def test_finished_tasks_are_scored_and_unfinished_ones_named(kept_run, toy_plugin, capsys):
    assert scored(str(kept_run.path)) == 1
    out, err = capsys.readouterr()
    assert "toy" in out
    assert "many" in out
    assert "2.000" in out
    assert "task 'later' is not finished" in err
    assert "stages with items that have no record: name" in err
    summary = read_summary(kept_run.summary("toy"))
    assert summary is not None
    assert (summary.metrics["many"].value, summary.metrics["many"].n) == (2.0, 1)
    assert summary.metrics["many"].missing == {"ValueError": 1, "no_json": 1}
    assert not kept_run.summary("later").exists()


def test_a_run_that_is_not_there_is_told_with_the_newest_and_keeps_no_other_from_its_scores(
    kept_run, toy_plugin, capsys
):
    beside = kept_run.path.parent
    (beside / "zzz-no-run").mkdir()
    assert scored(str(beside / "none-of-that-kind"), str(kept_run.path)) == 1
    assert f"to do:    the newest run is {kept_run.path}\n" in capsys.readouterr().err
    assert kept_run.summary("toy").exists()


def test_a_statistic_that_fails_is_the_plugin_s_error_with_its_line(kept_run, site, capsys):
    code = PLUGIN.replace(
        'Metric(description="interests named")',
        'Metric(description="interests named", statistic=lambda column: {}["column"])',
    )
    site.install("toybench", {"toybench": "toybench_plugin"}, {"toybench_plugin.py": code})
    assert scored(str(kept_run.path), "--task", "toy") == 1
    said = capsys.readouterr().err
    assert "the statistic of a metric failed" in said
    assert "KeyError: 'column'" in said and "toybench_plugin.py" in said
    assert not kept_run.summary("toy").exists()


def test_a_run_at_work_is_left_alone(kept_run, toy_plugin):
    kept_run.lock()
    try:
        assert scored(str(kept_run.path)) == 1
    finally:
        kept_run.unlock()
    assert not kept_run.summary("toy").exists()


def test_a_missing_plugin_is_named(kept_run, capsys):
    assert scored(str(kept_run.path)) == 1
    assert "toybench" in capsys.readouterr().err


COMMAND = (
    "--model", "baseline", "--judge", "lexical", "--data", "sample", "--limit", "2",
    "--reuse", "run", "--json",
)  # fmt: skip
CHANGE = ("--set", "interests.min_support=1")


@pytest.fixture
def ran(printed, tmp_path):
    """The folder of a run of these tasks, and what it printed."""

    def run(*more, tasks="interests"):
        place = tmp_path / f"runs{len(more)}"
        out = printed(*COMMAND, "--tasks", tasks, *more, "--output-path", str(place)).out
        return next(place.iterdir()), json.loads(out)

    return run


def test_a_run_is_scored_as_if_it_had_been_asked_so_and_stays_as_it_was(ran, printed):
    folder, before = ran()
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    [summary] = json.loads(printed("score", str(folder), *CHANGE, "--json").out)["runs"][0][
        "summaries"
    ]
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == files
    _, asked = ran(*CHANGE)
    assert summary["metrics"] == asked["summaries"][0]["metrics"]
    assert summary["metrics"]["grounded"] != before["summaries"][0]["metrics"]["grounded"]
    assert summary["not_comparable_because"][-1] == "scored with min_support 3 → 1"


def test_of_one_task_of_several_only_that_task_is_printed(ran, printed):
    folder, _ = ran(tasks="interests_all")
    for more in ((), CHANGE):
        shown = printed("score", str(folder), "--task", "interests", *more).out
        assert "interests  version 1, baseline" in shown
        assert "not scored" not in shown and "interests_short" not in shown


def test_an_option_that_the_candidate_was_asked_with_is_refused(ran, printed):
    folder, _ = ran()
    said = printed("score", str(folder), "--set", "window=5", code=2).err
    assert "window 20 → 5" in said
    assert "changes of min_support" in said
