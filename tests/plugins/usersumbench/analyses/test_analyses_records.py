"""What the verifier and the predictor said, counted by hand."""

import pytest
from harness_usersumbench.analyses.accuracy import questions
from harness_usersumbench.analyses.rounds import rounds
from harness_usersumbench.records import Pair, Refined, Round

from harness.base.errors import UsageError

from .conftest import User

FINE = Pair("Which?", "Crime", consistent=True)
WRONG = Pair("Which?", "Golf", consistent=False, reference="Crime")
SILENT = Pair("Which?", "Art")

CONSISTENT = Round("s", True, ("Crime",), (FINE,))
MISSED = Round("s", False)
INCONSISTENT = Round("s", True, ("Crime", "Golf"), (FINE, WRONG))
NO_ENTITY = Round("s", None, unread=("fits_query",))
NO_VERDICT = Round("s", True, ("Art",), (SILENT,), unread=("judgements",))
UNREAD_ENTITIES = Round("s", True, unread=("entities",))

SEGMENTS = (
    Refined("s", (CONSISTENT,)),
    Refined("s", (MISSED, INCONSISTENT, CONSISTENT)),
    Refined("s", (INCONSISTENT, INCONSISTENT)),
    Refined("s", (NO_ENTITY,)),
    Refined("s", (NO_VERDICT,)),
    Refined("s", (UNREAD_ENTITIES,)),
    None,
)


def test_what_was_flagged_fixed_and_left_and_the_checks_of_each_round_by_hand(kept):
    refined = kept("ada", {"u1": User(("1111",), rounds=SEGMENTS)}, method="hierarchy_critique")
    single = kept("ben", {"u1": User(("1111",))})
    with pytest.raises(UsageError, match="no task has a verifier"):
        rounds([single], None)
    segments, checks = rounds([single, refined], None).sheets
    # Of seven one failed, two were flagged: one was missed and wrong, and fixed; one was left.
    # Nothing flagged three whose query, pair or entities nobody could read.
    assert segments.rows == (
        ("ada", "usersum_movielens_hierarchy_critique", 7, 1, 1, 2, 1, 2, 1, 1, 3,
         pytest.approx(100 / 6), pytest.approx(3 / 6)),
    )  # fmt: skip
    # Pairs of the first round: those of the first, third and fifth segment.
    assert [row[2:] for row in checks.rows] == [
        (1, 6, 2, pytest.approx(100 / 3), 1, 1, 4, 1, 1, 3),
        (2, 2, 2, 100.0, 0, 0, 4, 2, 0, 0),
        (3, 1, 0, 0.0, 0, 0, 1, 0, 0, 0),
    ]


def test_a_summary_is_not_fixed_by_a_check_that_could_not_be_read(kept):
    half_judged = Round("s", True, ("Art",), (FINE, SILENT))
    last = (NO_ENTITY, NO_VERDICT, UNREAD_ENTITIES, half_judged)
    flagged = tuple(Refined("s", (INCONSISTENT, one)) for one in (*last, CONSISTENT))
    task = kept("ada", {"u1": User(("1111",), rounds=flagged)}, method="hierarchy_critique")
    segments, _ = rounds([task], None).sheets
    # Segments, failed, consistent at once, flagged, by query, by facts, fixed, left, undecided.
    assert segments.rows[0][2:11] == (5, 0, 0, 5, 0, 5, 1, 0, 4)


def test_accuracy_counts_an_unread_answer_as_wrong_and_leaves_it_out_by_hand(kept):
    users = {"u1": User(("1100", "10?0")), "u2": User(("1100", "00?0"))}
    accuracy, _ = questions([kept("ada", users)], None).sheets
    assert accuracy.title == "Accuracy in %: MovieLens, ada"
    found = {row[1]: row[2:] for row in accuracy.rows}
    # Users, right of all, right of the readable with its bounds, unread.
    assert found["t1"] == (2, 75.0, 75.0, 50.0, 100.0, 0.0)
    assert found["t2"] == (2, 50.0, 50.0, 50.0, 50.0, 0.0)
    assert found["t3"] == (2, 0.0, 0.0, 0.0, 0.0, 50.0)


def test_positions_by_hand(kept):
    # The right answer of t1 to t4 stands at B C D E in the first run and at C D E A in the second;
    # a wrong answer names the next position, after E the first.
    _, placed = questions([kept("ada", {"u1": User(("1101", "001?"))})], None).sheets
    found = {row[1]: row[2:] for row in placed.rows}
    # Named: B, C, E (for D), E; then D (for C), E (for D), E.
    sevenths = [100 * count / 7 for count in range(7)]
    assert found["named"] == (
        7, *map(pytest.approx, (0, sevenths[1], sevenths[1], sevenths[1], sevenths[4]))
    )  # fmt: skip
    # Right: B, C, D, E; then C, D, E.
    assert found["right"] == (
        7, *map(pytest.approx, (0, sevenths[1], sevenths[2], sevenths[2], sevenths[2]))
    )  # fmt: skip
    assert found["right if there"] == (7, None, 100.0, 50.0, 0.0, 100.0)


def test_bars_of_figure_2_are_accuracies_by_what_is_shown(kept):
    tasks = [
        kept("ada", {"u1": User(("1010",))}),
        kept("ada", {"u1": User(("0110",))}, method="none"),
        kept("ben", {"u1": User(("0000",))}),
    ]
    first, second = questions(tasks, None).figures[:2]
    assert first.title == "MovieLens: accuracy of t1 by what the predictor is shown"
    bars = {mark.label: dict(zip(mark.names, mark.values, strict=True)) for mark in first.marks}
    assert bars == {"ada": {"none": 0.0, "single_step": 100.0}, "ben": {"single_step": 0.0}}
    assert second.marks[0].values == (100.0, 0.0)


def test_bars_of_figure_5_are_metrics_by_data(kept):
    tasks = [
        kept("ada", {"u1": User(("1110",), "a b")}),
        kept("ada", {"u1": User(("1100",), "a b")}, source="yelp"),
        kept("ada", {"u1": User(("1110",))}, method="none"),
    ]
    figures = questions(tasks, None).figures[-3:]
    assert [figure.title for figure in figures] == ["QM", "IFM", "IDM ×0.1%"]
    [bars] = figures[0].marks
    assert (bars.label, bars.names, bars.values) == (
        "ada, single_step", ("MovieLens", "Yelp"), (1.0, 0.0)
    )  # fmt: skip
    assert figures[2].marks[0].values == (375.0, 250.0)
