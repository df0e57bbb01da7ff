"""The steps on the way to synthetic users, each on a few rows worked out by hand."""

import numpy as np
import pytest
from harness_gistbench.log_index import CODES, Log, LogIndex
from harness_gistbench.synthesis import validation
from harness_gistbench.synthesis.clusters import NONE, Clusters, by_k_means
from harness_gistbench.synthesis.cohorts import Cohort, cohorts, draw, form, membership
from harness_gistbench.synthesis.reading import Real, read, texts_of
from harness_gistbench.synthesis.settings import Settings
from harness_gistbench.synthesis.writing import rows_of

from harness.data.database import Database

LIKE, WATCH, SKIP = (
    CODES["explicit_positive"],
    CODES["implicit_positive"],
    CODES["implicit_negative"],
)


def settings(**changed):
    return Settings(log="log.csv", out="out", **changed)


def values(rows, columns, kinds):
    """A query for these rows."""
    cells = (
        ", ".join(f"{'NULL' if one is None else repr(one)}::{kind}" for one, kind in pairs)
        for pairs in (zip(row, kinds, strict=True) for row in rows)
    )
    return f"SELECT * FROM (VALUES {', '.join(f'({row})' for row in cells)}) AS t({columns})"


def log(rows, texts=(("x", "text"),)):
    """A log from (user, object, code, time or None)."""
    engagements = values(
        [(place, *row, "text") for place, row in enumerate(rows)],
        'row, "user", object, signal, time, text',
        ("BIGINT", "VARCHAR", "VARCHAR", "INTEGER", "BIGINT", "VARCHAR"),
    )
    told = values(
        [(place, *row) for place, row in enumerate(texts)],
        "row, object, text",
        ("BIGINT", "VARCHAR", "VARCHAR"),
    )
    return LogIndex(Database({}), Log(engagements=engagements, texts=told, joined=False))


def real(*histories):
    """Real people from words: each letter an object that was liked, capital ones skipped."""
    objects = tuple(sorted({letter.lower() for history in histories for letter in history}))
    return Real(
        users=tuple(f"p{number}" for number in range(len(histories))),
        objects=objects,
        starts=np.cumsum([0, *map(len, histories)]),
        object=np.array([objects.index(one.lower()) for h in histories for one in h]),
        signal=np.array([SKIP if one.isupper() else LIKE for h in histories for one in h]),
        total=sum(map(len, histories)),
        untimed=0,
        unit="seconds",
    )


def test_the_window_ends_at_the_latest_time_and_leaves_out_what_is_older():
    day = 86_400
    rows = [("b", "x", LIKE, 10 + day), ("a", "y", SKIP, 11), ("a", "x", WATCH, 10)]
    found = read(log(rows), days=1, unit="auto")
    assert (found.unit, found.total, found.users) == ("seconds", 3, ("a", "b"))
    assert found.user.tolist() == [0, 1]
    assert [found.objects[one] for one in found.object] == ["y", "x"]
    assert found.signal.tolist() == [SKIP, LIKE]


def test_the_unit_of_times_shows_in_their_size():
    for thousands, unit in enumerate(("seconds", "milliseconds", "microseconds")):
        latest = 1_700_000_000 * 1000**thousands
        assert read(log([("a", "x", LIKE, latest)]), days=1, unit="auto").unit == unit


def test_without_times_the_whole_log_is_read_and_a_missing_time_among_others_is_left_out():
    untimed = read(log([("a", "x", LIKE, None), ("a", "y", LIKE, None)]), days=1, unit="auto")
    assert (len(untimed.signal), untimed.unit) == (2, None)
    partly = read(log([("a", "x", LIKE, None), ("a", "y", LIKE, 5)]), days=1, unit="auto")
    assert (len(partly.signal), partly.untimed) == (1, 1)


def test_of_several_texts_the_first_by_letters_is_taken():
    texts = [("x", "pear"), ("x", "apple"), ("y", "plum"), ("z", "fig")]
    given = log([("a", "x", LIKE, 1)], texts)
    assert texts_of(given, ["x", "y"]) == {"x": "apple", "y": "plum"}


def test_like_texts_or_embeddings_are_clusters():
    texts = ["red apple", "green apple pie", "fast train", "slow train ride", "red apple"]
    found = by_k_means(texts, many=2, seed=0)
    assert found.names == ("1", "2")
    assert found.of_object.tolist() == [1, 1, 0, 0, 1]
    found = by_k_means(
        ["a", "bb", "c", "dd"], many=2, seed=0, embed=lambda texts: [[len(one)] for one in texts]
    )
    assert found.of_object.tolist() == [0, 1, 0, 1]


def test_people_belong_to_clusters_and_cohorts_to_the_numbers_of_the_log():
    people = real("aB", "ab", "Ab", "c")
    clusters = Clusters(names=("one", "two"), of_object=np.array([0, 1, NONE]), method="")
    found = membership(people, clusters, settings(clusters_together=1, least_people=2))
    assert found.people.tolist() == [0, 1, 2]
    assert found.clusters.tolist() == [0, 1]
    assert found.table.tolist() == [[True, False], [True, True], [False, True]]
    both = settings(clusters_together=2, least_people=2)
    assert membership(people, clusters, both).people.tolist() == [1]
    people = real("c", "ab", "ab", "ab")
    clusters = Clusters(names=("z", "a", "b"), of_object=np.array([1, 2, 0]), method="")
    found = cohorts(membership(people, clusters, both), both)
    assert found == [Cohort(people=(1, 2, 3), clusters=(1, 2))]


def table(*rows):
    return np.array([[mark == "x" for mark in row] for row in rows])


def test_the_largest_cohort_comes_first_and_everybody_is_in_one_at_most():
    belongs = table(
        "..xx",
        "..xx",
        "xx..",
        "xx..",
        "xxx.",
        "x..x",
    )
    found = form(belongs, settings(clusters_together=2, least_people=2))
    assert found == [
        Cohort(people=(2, 3, 4), clusters=(0, 1)),
        Cohort(people=(0, 1), clusters=(2, 3)),
    ]


def test_a_common_cluster_that_leads_nowhere_does_not_hide_a_cohort():
    belongs = table(
        "xx......",
        "x.x.....",
        "x..x....",
        "x...x...",
        ".....xx.",
        ".....xx.",
        ".....xxx",
    )
    found = form(belongs, settings(clusters_together=2, least_people=3))
    assert found == [Cohort(people=(4, 5, 6), clusters=(5, 6))]


def test_a_cohort_has_at_least_ten_people_and_there_are_a_thousand_unless_said():
    ten = table(*["x" * 10] * 10)
    assert len(form(ten, settings())[0].people) == 10
    assert form(ten[:9], settings()) == []
    assert form(ten[:, :9], settings()) == []
    assert settings().cohorts == 1000


def test_the_people_above_the_most_are_left_to_later_cohorts():
    belongs = table(*["xx"] * 7)
    found = form(belongs, settings(clusters_together=2, least_people=2, most_people=3))
    assert [len(one.people) for one in found] == [3, 3]
    assert len({person for one in found for person in one.people}) == 6
    one = form(belongs, settings(clusters_together=2, least_people=2, most_people=3, cohorts=1))
    assert one == found[:1]


def test_a_draw_is_as_long_as_one_history_times_the_factor_and_takes_nothing_twice():
    people = real("abc", "ABC", "zzzzzzzz")
    cohort = Cohort(people=(0, 1), clusters=())
    one = draw(people, cohort, settings(factor=1.5), number=1)
    assert (one.wanted, one.pooled, len(one.rows)) == (4, 6, 4)
    assert len(set(one.rows)) == 4
    assert set(one.rows) <= set(range(6))
    all_of_it = draw(people, cohort, settings(factor=3.0), number=1)
    assert (all_of_it.wanted, sorted(all_of_it.rows)) == (9, list(range(6)))
    assert all_of_it.rows != sorted(all_of_it.rows)


def test_rows_have_new_ids_and_times_within_the_window():
    people = real("ab", "aC")
    cohort = Cohort(people=(0, 1), clusters=())
    chosen = settings(factor=2.0, days=2)
    draws = [draw(people, cohort, chosen, number=number) for number in (1, 2)]
    texts = {"a": "apples", "b": "birds", "c": "cats"}
    first, second = rows_of(draws, people, texts, chosen)
    assert [row.user for row in first + second] == [1] * 4 + [2] * 4
    for rows in (first, second):
        assert sorted(row.text for row in rows) == ["apples", "apples", "birds", "cats"]
        assert [row.time for row in rows] == sorted(row.time for row in rows)
        assert all(0 <= row.time < 2 * 86_400 for row in rows)
        assert {row.text: row.signal for row in rows}["cats"] == "implicit_negative"
    assert {row.object for row in first} == {1, 2, 3}
    assert {row.text: row.object for row in first} == {row.text: row.object for row in second}
    assert first[0].object == 1


def compared(synthetic, real):
    """A comparison of people, each the numbers of the four types or of what they only watched."""
    sides = {
        name: np.array([[0, one, 0, 0] if isinstance(one, int) else one for one in people])
        for name, people in {"synthetic": synthetic, "real": real}.items()
    }
    return validation.Comparison(**sides)


def test_the_test_is_welchs_two_sided_one():
    # t = (4 - 2) / sqrt(4/3 + 1/3), with 50/17 degrees of freedom; p by numerical integration.
    [row] = validation.tests(compared([2, 4, 6], [1, 2, 3])).rows
    t = pytest.approx(1.5491933384829668)
    assert row == ("implicit positive", t, "2.21e-01", 4.0, 2.0, 2.0)
    # Where nothing can be tested there is no number.
    for synthetic, real_ones in (([3], [1, 2]), ([2, 2], [2, 2])):
        [row] = validation.tests(compared(synthetic, real_ones)).rows
        assert row[1:3] == (None, None)


def test_shares_are_told_with_their_order():
    sheet = validation.shares(compared([[1, 6, 3, 0], [0, 6, 4, 0]], [[2, 5, 3, 0]]))
    assert sheet.rows == (
        ("implicit positive", 60.0, 1, 50.0, 1),
        ("implicit negative", 35.0, 2, 30.0, 2),
        ("explicit positive", 5.0, 3, 20.0, 3),
    )
    assert sheet.notes == ("the order of the types is the same in both",)
    other = validation.shares(compared([[1, 2, 3, 0]], [[1, 3, 2, 0]]))
    assert other.notes == ("the order of the types is NOT the same in both",)


def test_both_distributions_are_drawn():
    lengths, boxes = validation.figures(compared([[1, 6, 3, 0]], [[1, 2, 1, 0]] * 2))
    assert [(line.label, sum(line.y)) for line in lengths.marks] == [
        ("synthetic", pytest.approx(100)),
        ("real", pytest.approx(100)),
    ]
    kinds = ("implicit positive", "explicit positive", "implicit negative")
    assert [(box.label, box.names, box.values) for box in boxes.marks] == [
        ("synthetic", kinds, ((6.0,), (1.0,), (3.0,))),
        ("real", kinds, ((2.0, 2.0), (1.0, 1.0), (1.0, 1.0))),
    ]
