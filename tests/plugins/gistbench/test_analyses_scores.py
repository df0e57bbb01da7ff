"""Tables of scores by model and dataset, against what the runs found together."""

import pytest
from builders.gistbench import judged
from harness_gistbench.analyses.compared_runs import TableOptions
from harness_gistbench.analyses.scores import scores as run


@pytest.fixture
def first(kept):
    """u1 has IG P 1/4 and IS 1/2 and verifies category 1; u2 has 1 and 1 and verifies 3."""
    return kept(
        "first",
        {
            "u1": (
                judged("trains", 1, liked=2, found=(3, 4)),
                judged("night trains", 1, watched=1, found=(1, 4)),
                judged("owls", 2, skipped=1),
            ),
            "u2": (judged("jazz", 3, watched=3, found=(2, 2)),),
        },
    )


@pytest.fixture
def second(kept):
    """u1 has IG P 1 and IS 2/3 and verifies 1 and 5; u2 has 1/2 and 0 and verifies 4."""
    return kept(
        "second",
        {
            "u1": (
                judged("trains", 1, liked=3, found=(1, 3)),
                judged("chess", 5, liked=2, found=(2, 2)),
            ),
            "u2": (
                judged("looms", 4, liked=2, found=(0, 2)),
                judged("lakes", 6, liked=1),
            ),
        },
    )


def test_scores_are_against_what_all_runs_verified(first, second):
    groundedness, parts, _ = run([first, second], TableOptions()).sheets
    assert groundedness.columns == ("model", "synthetic IG F1", "synthetic IS")
    # The oracle is 1 and 5 for u1, 3 and 4 for u2. Of `first`, u1 has P = R = F1 = 1/4, and u2 has
    # P = 1, R = 1/2, F1 = 2/3. Of `second`, u1 has 1, 1, 1 and u2 has 1/2, 1/2, 1/2.
    assert groundedness.rows == (
        ("first", pytest.approx(100 * 11 / 24), pytest.approx(75.0)),
        ("second", pytest.approx(75.0), pytest.approx(100 / 3)),
    )
    assert parts.columns == ("model", "synthetic IG P", "synthetic IG R")
    assert parts.rows == (("first", 62.5, 37.5), ("second", 75.0, 75.0))


def test_a_run_alone_misses_nothing_and_that_is_said(first):
    report = run([first], TableOptions())
    # Recall is of the categories that it verified itself: 1/2 for u1 and 1 for u2.
    assert report.sheets[1].rows == (("first", 62.5, 75.0),)
    assert report.notes == (
        "synthetic: IG R and IG F1 are against what this run verified; "
        "below 3 models there is little to miss",
    )


def test_models_and_datasets_make_a_table_with_gaps(kept):
    found = {"u1": (judged("trains", 1, liked=2, found=(1, 2)),)}
    tasks = [
        kept("first", found, dataset="gist_synthetic"),
        kept("first", found, dataset="gist_mind"),
        kept("second", found, dataset="gist_mind"),
    ]
    sheet = run(tasks, TableOptions()).sheets[0]
    assert sheet.columns == ("model", "synthetic IG F1", "synthetic IS", "mind IG F1", "mind IS")
    assert sheet.rows == (("first", 100.0, 50.0, 100.0, 50.0), ("second", None, None, 100.0, 50.0))


def test_a_model_that_too_few_users_of_can_be_read_has_no_number(kept):
    users = {
        "u1": (judged("trains", 1, liked=2, found=(1, 2)),),
        "u2": "predict/no_json",
        "u3": "predict/truncated",
    }
    groundedness, _, people = run([kept("first", users)], TableOptions()).sheets
    assert groundedness.rows == (("first", None, None),)
    assert groundedness.notes[0] == (
        "first on synthetic: no IG F1, for 1 of 3 units have one, less than the required 50%; "
        "over those few it is 1.000"
    )
    assert people.columns == ("dataset", "model", "users", "with IG", "with IS", "why not")
    assert people.rows == (
        ("synthetic", "first", 3, 1, 1, "predict/no_json 1, predict/truncated 1"),
    )


def test_runs_that_were_judged_otherwise_are_left_out_by_name_unless_forced(first, second, kept):
    other = kept("third", {"u1": (judged("chess", 7, liked=2, found=(1, 2)),)}, judge="another")
    # With category 7 in the oracle of u1 `second` finds 2 of 3 there, and 1/2 for u2 as before.
    forced = pytest.approx(100 * (2 / 3 + 1 / 2) / 2)
    for force, names, recall, said in (
        (False, ["first", "second"], 75.0, "left out"),
        (True, ["first", "second", "third"], forced, "taken in by force"),
    ):
        report = run([first, second, other], TableOptions(force=force))
        assert [row[0] for row in report.sheets[0].rows] == names
        assert report.sheets[1].rows[1] == ("second", 75.0, recall)
        assert report.notes[-1] == (
            f"gist_synthetic: third is {said}: judge's name another against judge-70b"
        )


def test_the_published_tables_stand_below_in_the_same_form(first):
    _, _, scores, parts, _ = run([first], TableOptions(published=True)).sheets
    assert scores.columns[:3] == ("model", "synthetic IG F1", "synthetic IS")
    assert scores.columns[7] == "amazon music IG F1"
    assert scores.rows[0] == (
        *("GPT-OSS-120B", 67.8, 74.0, 56.3, 68.4),
        *(66.7, 66.6, 66.7, 70.6, 58.0, 67.4),
    )
    assert parts.rows[1] == ("DeepSeek-R1", 82.4, 43.9, 89.8, 29.5)
