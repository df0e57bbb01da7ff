"""Scores and ranks under other thresholds."""

import pytest
from builders.gistbench import judged
from harness_gistbench.analyses.thresholds import NOT_ASKED_TITLE, ThresholdOptions, run

from harness.contracts.report import Line


@pytest.fixture
def runs(kept):
    """`broad` has an interest with two likes and one with one like; `narrow` one with two likes.

    Retrieval was asked where something is verified with two likes.
    """
    two = judged("trains", 1, liked=2, found=(1, 2))
    one = judged("owls", 2, liked=1)
    three = judged("jazz", 3, liked=3, found=(3, 3))
    return [kept("broad", {"u1": (two, one)}), kept("narrow", {"u1": (two, three)})]


def explicit(runs, **options):
    return run(runs, ThresholdOptions(threshold=("min_explicit_positive",), steps=1, **options))


def sheets(report):
    return {sheet.title.partition(": ")[2]: sheet for sheet in report.sheets if ": " in sheet.title}


def test_scores_and_ranks_are_made_anew_for_each_setting(runs):
    report = explicit(runs)
    found = sheets(report)
    sheet = found["IG F1, medians in %"]
    assert sheet.columns == ("threshold", "asked with", "broad", "narrow")
    # From one like on all is verified: of 1, 2, 3 each model finds two, P 1, R 2/3, F1 4/5.
    # From two on: broad P 1/2, R 1/2 of 1 and 3; narrow P 1, R 1. From three on the oracle is 3
    # alone: broad has nothing, narrow P 1/2, R 1.
    assert sheet.rows == (
        ("min_explicit_positive 1", "", pytest.approx(80.0), pytest.approx(80.0)),
        ("min_explicit_positive 2", "yes", 50.0, 100.0),
        ("min_explicit_positive 3", "", 0.0, pytest.approx(200 / 3)),
    )
    assert [row[2:] for row in found["ranks by IG F1"].rows] == [(1, 1), (2, 1), (2, 1)]
    # With one like the category of owls is verified, and its retrieval was never asked.
    assert [row[2:] for row in found["IS, medians in %"].rows] == [
        (None, 75.0),
        (50.0, 75.0),
        (0.0, 100.0),
    ]
    assert [row[2:] for row in found["ranks by IS"].rows] == [(None, 1), (2, 1), (2, 1)]
    assert [row[2:] for row in found[NOT_ASKED_TITLE].rows] == [(1, 0), (0, 0), (0, 0)]
    assert {figure.x.ticks for figure in report.figures} == {(1, 2, 3)}
    figures = {figure.title: figure.marks for figure in report.figures}
    assert [*figures] == [
        "synthetic: IG F1 (median), % by min_explicit_positive",
        "synthetic: rank by IG F1 by min_explicit_positive",
        "synthetic: IS (median), % by min_explicit_positive",
        "synthetic: rank by IS by min_explicit_positive",
    ]
    assert figures["synthetic: IS (median), % by min_explicit_positive"] == (
        Line(label="broad", x=(2.0, 3.0), y=(50.0, 0.0)),
        Line(label="narrow", x=(1.0, 2.0, 3.0), y=(75.0, 75.0, 100.0)),
    )
    assert figures["synthetic: rank by IG F1 by min_explicit_positive"] == (
        Line(label="broad", x=(1.0, 2.0, 3.0), y=(1.0, 2.0, 2.0)),
        Line(label="narrow", x=(1.0, 2.0, 3.0), y=(1.0, 1.0, 1.0)),
    )
    said = report.notes[0]
    assert said.startswith("the prompts stated the numbers that were asked with")
    assert [figure.note for figure in report.figures] == [said] * 4


def test_numbers_of_signals_that_the_data_lack_are_not_varied(runs):
    report = run(runs, ThresholdOptions(steps=1))
    names = [row[0] for row in sheets(report)["IG F1, medians in %"].rows]
    assert names == [
        *("min_explicit_positive 1", "min_explicit_positive 2", "min_explicit_positive 3"),
        *("min_implicit_positive 2", "min_implicit_positive 3", "min_implicit_positive 4"),
        *("mixed_explicit_positive 1", "mixed_explicit_positive 2"),
        *("mixed_implicit_positive 1", "mixed_implicit_positive 2", "mixed_implicit_positive 3"),
        *("max_implicit_negative 2", "max_implicit_negative 3", "max_implicit_negative 4"),
    ]
    assert report.notes[-1] == (
        "synthetic: max_explicit_negative does nothing, for the data has no such signal"
    )


def test_a_negative_limit_may_go_down_to_none(kept):
    skipped = kept("first", {"u1": (judged("trains", 1, liked=2, skipped=1, found=(1, 3)),)})
    report = run([skipped], ThresholdOptions(threshold=("max_implicit_negative",), steps=9))
    rows = sheets(report)["IG F1, medians in %"].rows
    assert [row[0].split()[1] for row in rows] == [str(value) for value in range(13)]
    assert [row[2] for row in rows[:3]] == [0.0, 100.0, 100.0]
