"""`harness score RUN --set`: a run under other options, its models left alone."""

import json

import pytest

COMMAND = (
    "--model", "baseline", "--judge", "lexical", "--data", "sample", "--limit", "2", "--no-store",
    "--json",
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
