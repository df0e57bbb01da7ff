"""The cases of Tasks 2 and 3, from histories with every kind of title."""

from types import SimpleNamespace

import msgspec
import pytest
from harness_horizon.curation.ledger import complete_manifest
from harness_horizon.recommenders.training_data import SAMPLE
from harness_horizon.text import histories
from harness_horizon.text.histories import (
    ALONE,
    CUT,
    NO_HISTORY,
    NO_TITLE,
    Options,
    TitleData,
    load,
    questions,
    recent,
)  # fmt: skip

from harness.base.errors import DataError, UsageError

LONG = "x" * 10_000
ROWS = {
    "u": (["a", "b", "c", "d", "e"], 2, 2),
    "new": (["a", "b", "c"], 1, 0),
}


class Data:
    """A data set with one table of cases, and what was noted of it."""

    task = "horizon_query"

    def __init__(self, rows, most=99):
        self._rows, self._most = rows, most
        self.noted, self.asked = {}, ""

    def table(self, name):
        self.asked = name
        return self

    def batches(self, *names):
        titles, first, before = zip(*self._rows.values(), strict=True)
        columns = {"user_id": [*self._rows], "titles": titles, "first": first, "before": before}
        yield SimpleNamespace(first=1, columns={name: columns[name] for name in names})

    def bad(self, row, column, value, expected):
        return DataError("a row is bad", where=f"row {row}", found=str(value), expected=expected)

    def path(self, name):
        return SAMPLE / f"{name}.json"

    def choose(self, users):
        return list(users)[: self._most]

    def note(self, fact, number):
        self.noted[fact] = number


def cases(data, **given):
    """The cases of a data set, or of these rows."""
    options = Options(**given)
    data = data if isinstance(data, Data) else Data(data)
    return list(questions({}, load(data, options), options))


def test_each_item_from_2020_is_asked_for_after_the_true_items_before_it():
    assert [(one.id, one.history, one.truths) for one in cases(ROWS)] == [
        ("u/2", ("a", "b"), ("c",)), ("u/3", ("a", "b", "c"), ("d",)),
        ("u/4", ("a", "b", "c", "d"), ("e",)), ("new/1", ("a",), ("b",)),
        ("new/2", ("a", "b"), ("c",)),
    ]  # fmt: skip
    assert [one.id for one in cases(ROWS, first_k=1)] == ["u/2", "new/1"]


def test_a_long_horizon_has_at_most_ten_distinct_titles_after_what_is_before_2020():
    many = {"u": (["a", "b", *(f"t{n // 2}" for n in range(40))], 2, 2)}
    [case] = cases(many, ask="long")
    assert (case.id, case.history) == ("u", ("a", "b"))
    assert case.truths == tuple(f"t{number}" for number in range(10))
    data = Data(ROWS)
    found = cases(data, ask="long")
    assert [(one.id, one.truths) for one in found] == [("u", ("c", "d", "e"))]
    held_out = complete_manifest(SAMPLE).totals["roles"]["held_out"]
    assert data.noted == {ALONE: held_out - 2, NO_HISTORY: 1, NO_TITLE: 0, CUT: 0}
    trained = Data(ROWS)
    load(trained, Options(ask="long", setting="1c"))
    assert trained.noted[ALONE] == 0


def test_users_without_a_past_have_a_long_horizon_in_data_of_published_alone(monkeypatch):
    rows = ROWS | {"alone": (["a", "b", "c", "d"], 1, 1)}
    build = complete_manifest(SAMPLE)
    published = msgspec.structs.replace(build, options=build.options | {"published": True})
    for made, users in ((build, ["u", "alone"]), (published, ["u", "new", "alone"])):
        monkeypatch.setattr(histories, "complete_manifest", lambda _, made=made: made)
        found = cases(rows, ask="long")
        assert [one.id for one in found] == users
        assert (found[0].history, found[0].truths) == (("a", "b"), ("c", "d", "e"))
    # Their first item is the history, and what follows is asked for.
    assert (found[1].history, found[1].truths) == (("a",), ("b", "c"))


def test_titles_that_are_none_empty_or_of_several_lines_are_cleaned():
    rows = {"u": ([None, " one\n pot ", "", "None", "a", " \t", "b\r\nc"], 4, 4)}
    data = Data(rows)
    found = cases(data)
    assert [(one.id, one.history, one.truths) for one in found] == [
        ("u/4", ("one pot",), ("a",)), ("u/6", ("one pot", "a"), ("b c",)),
    ]  # fmt: skip
    assert (data.noted[NO_HISTORY], data.noted[NO_TITLE], data.noted[CUT]) == (0, 1, 0)
    assert cases({"u": ([None, "", "a"], 2, 2)}) == []


def test_the_oldest_titles_leave_first_and_a_title_alone_is_cut():
    rows = {"u": ([LONG, "old", "new", LONG, "b"], 2, 2), "v": (["a", "b", "c"], 2, 2)}
    data = Data(rows)
    found = cases(data, history_characters=12)
    assert [one.history for one in found] == [("old",), ("new",), ("x" * 12,), ("a", "b")]
    assert found[1].truths == (LONG,)
    assert data.noted[CUT] == 1
    for ending, first_k in ((["x", "y"], 1), ([None], None)):
        shown = Data({"u": (["oldest", "b", *ending], 1, 1)})
        load(shown, Options(history_characters=6, first_k=first_k))
        assert shown.noted[CUT] == 0


@pytest.mark.parametrize(
    ("most", "kept"), [(1, ("c",)), (8, ("c",)), (9, ("c",)), (10, ("bb", "c")), (99, None)]
)
def test_as_many_of_the_latest_titles_as_fit_are_shown(most, kept):
    titles = ["aaa", "bb", "c"]
    assert recent(titles, most) == (kept or tuple(titles))
    shown = " <SEP> ".join(recent(titles, most))
    assert len(shown) <= most


def test_a_single_query_asks_for_the_next_item_alone():
    for given in ({"prompt": "one"}, {"first_k": 2}):
        with pytest.raises(UsageError, match="asked for with the next item"):
            load(Data(ROWS), Options(ask="long", **given))
    # Nor is there a first target without a history.
    with pytest.raises(DataError, match="a row is bad"):
        cases({"u": (["a", "b"], 2, 2)})


def test_the_setting_chooses_the_table_and_a_run_its_users():
    data = Data(ROWS, most=1)
    found = load(data, Options(setting="1c"))
    assert data.asked == "cases_1c"
    assert found.users == {"u"}
    assert isinstance(found, TitleData) and len(found.items) == 64
