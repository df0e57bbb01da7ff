"""`--rescore-only`: a run of the same command under other options, its models left alone."""

import json

from harness.cli.main import main

COMMAND = (
    "--model", "baseline", "--judge", "lexical", "--tasks", "interests", "--data", "sample",
    "--no-store", "--json",
)  # fmt: skip


def ran(capsys, folder, *more):
    code = main([*COMMAND, "--output-path", str(folder), *more])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_is_scored_as_if_it_had_been_asked_so_and_stays_as_it_was(tmp_path, capsys):
    limit = ("--limit", "4")
    assert ran(capsys, tmp_path / "runs", *limit)[0] == 0
    before = files_of(tmp_path / "runs")
    change = ("--set", "interests.min_support=1")
    code, rescored, _ = ran(capsys, tmp_path / "runs", *limit, *change, "--rescore-only")
    assert code == 0
    assert files_of(tmp_path / "runs") == before
    _, asked, _ = ran(capsys, tmp_path / "asked", *limit, *change)
    [summary] = rescored["runs"][0]["summaries"]
    assert summary["metrics"] == asked["summaries"][0]["metrics"]
    own = json.loads(next((tmp_path / "runs").rglob("summary.json")).read_text())
    assert own["metrics"]["grounded"]["value"] != summary["metrics"]["grounded"]["value"]
    assert summary["not_comparable_because"][-1] == ("scored with min_support 3 → 1")


def test_of_one_task_of_several_only_that_task_is_printed(tmp_path, capsys, printed):
    ran(capsys, tmp_path, "--limit", "2", "--tasks", "interests_all")
    [run] = tmp_path.iterdir()
    given = ("score", str(run), "--task", "interests")
    for more in ((), ("--set", "min_support=1")):
        shown = printed(*given, *more).out
        assert "interests  version 1, baseline" in shown
        assert "not scored" not in shown and "interests_short" not in shown


def test_the_newest_run_that_fits_is_taken(tmp_path, capsys):
    ran(capsys, tmp_path, "--limit", "2", "--set", "window=10")
    [narrow] = tmp_path.iterdir()
    ran(capsys, tmp_path, "--limit", "2")
    change = ("--set", "min_support=1", "--set", "window=10")
    _, rescored, _ = ran(capsys, tmp_path, "--limit", "2", *change, "--rescore-only")
    assert rescored["runs"][0]["run"] == str(narrow)


def test_an_option_that_the_candidate_was_asked_with_is_refused(tmp_path, capsys):
    ran(capsys, tmp_path, "--limit", "2")
    code, out, err = ran(capsys, tmp_path, "--limit", "2", "--set", "window=5", "--rescore-only")
    assert (code, out) == (2, None)
    assert "window 20 → 5" in err
    assert "changes of min_support" in err


def test_what_was_looked_for_and_what_there_is_is_told(tmp_path, capsys):
    ran(capsys, tmp_path, "--limit", "2")
    [run] = tmp_path.iterdir()
    code, out, err = ran(capsys, tmp_path, "--limit", "3", "--rescore-only")
    assert (code, out) == (1, None)
    assert "no finished run has these settings" in err
    assert f"{run.name}: limit 2 against 3" in err
    assert "no run" in ran(capsys, tmp_path / "none", "--rescore-only")[2]


def test_a_run_that_is_not_finished_is_passed_over(tmp_path, capsys):
    assert ran(capsys, tmp_path, "--limit", "2", "--max-calls", "1")[0] == 1
    [run] = tmp_path.iterdir()
    code, _, err = ran(capsys, tmp_path, "--limit", "2", "--rescore-only")
    assert code == 1
    assert f"{run.name}: not finished (failed)" in err
