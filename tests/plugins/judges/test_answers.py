"""How a judge's answers to "which of these?" and "which class?" are read, case by case."""

import pytest
from harness_judges.answers import ClassReader, SelectionReader
from hypothesis import given
from hypothesis import strategies as st

from harness.contracts.judge import Selected
from harness.contracts.outcomes import Parsed, Unreadable

NUMBERS = ("1", "2", "3", "4", "5")
read = SelectionReader(labels=NUMBERS)


@pytest.mark.parametrize(
    ("text", "places", "rung"),
    [
        ("3,1.", (2, 0), "text"),
        ("1, 3, and 5", (0, 2, 4), "text"),
        ("[1, 3].", (0, 2), "text"),
        ("**1, 3**", (0, 2), "text"),
        ("1 3 5", (0, 2, 4), "text"),
        ("01, 03", (0, 2), "text"),
        ("- 1\n- 3", (0, 2), "text"),
        ("NONE", (), "text"),
        ("[]", (), "strict"),
        ('["1", "[3]"]', (0, 2), "strict"),
        ('["NONE"]', (), "strict"),
        ('"1, 3"', (0, 2), "strict"),
        ('{"why": "trains", "picks": [1]}', (0,), "strict"),
        ('{"answer": "NONE", "why": "1 is about bread"}', (), "strict"),
        ('{"selected": [1], "rejected": [2, 3]}', (0,), "strict"),
        ('{"1": true, "2": false, "3": true}', (0, 2), "strict"),
        ("```json\n[1, 3]\n```\nbecause [2] is off", (0, 2), "fenced"),
        ('Sure: {"answer": [1, 3]}', (0, 2), "brackets"),
        ('{"answer": [1, 3],}', (0, 2), "repaired"),
    ],
)
def test_labels_alone_and_json(text, places, rung):
    assert read(text) == Parsed(Selected(chosen=places, rung=rung), rung)


@pytest.mark.parametrize(
    "text",
    [
        "The supporting items are 1, 3 and 5.", "<answer>1, 3</answer> it is", "2-4",
        "1. 3\n2. 5", "1, 3: 4", "1 - 3", '["2-4"]', '["NONE", 2]', "9", "1\nor rather\n2",
        "Items [1] and [3] are good; [2] is not.", "1 [3]", "[true]", '{"a": [1], "b": [2]}',
        "1. Night trains in Europe - relevant\n2. Sourdough for beginners - not relevant",
        '{"relevant": false}', "x" * 20_001,
    ],
)  # fmt: skip
def test_what_is_in_another_form_is_no_answer(text):
    outcome = read(text)
    assert isinstance(outcome, Unreadable), outcome
    assert outcome.cause == "schema"
    assert read(" \n") == Unreadable("empty")


def test_what_is_ignored_is_counted_and_labels_need_not_be_numbers():
    bounded = SelectionReader(labels=NUMBERS, at_most=2)
    assert bounded("5, 9, 5, 1, 7, 2, 3") == Parsed(
        Selected(chosen=(4, 0), rung="text", unknown=2, repeated=1, surplus=2), "text"
    )
    assert bounded("[5, 9, 5, 1, 2]") == Parsed(
        Selected(chosen=(4, 0), rung="strict", unknown=1, repeated=1, surplus=1), "strict"
    )
    letters = SelectionReader(labels=("A", "B", "C"))
    assert letters("a, (C)") == Parsed(Selected(chosen=(0, 2), rung="text"), "text")
    for text in ("A nice one", "A and D", "B) Sourdough for beginners"):
        assert isinstance(letters(text), Unreadable)
    words = SelectionReader(labels=("none", "a few, or some"))
    assert words("None") == Parsed(Selected(chosen=(0,), rung="text"), "text")
    assert words("- A few, or some\n- none") == Parsed(Selected(chosen=(1, 0), rung="text"), "text")
    assert words("[]") == Parsed(Selected(chosen=(), rung="strict"), "strict")
    for labels in (("1", "1"), ("a", "A")):
        with pytest.raises(ValueError, match="labels"):
            SelectionReader(labels=labels)("1")


items = SelectionReader(labels=tuple(f"item_{n}" for n in range(8)), at_most=3)


@pytest.mark.parametrize(
    "text",
    [
        "item 0, item 3", "1. item_4: rooks\n2. item_7: arias", "item_4: item_7", "1. 4\n2. 7",
        '["1. item_4", "2. item_7"]', "item_99",
    ],
)  # fmt: skip
def test_a_number_that_may_count_things_is_no_label_with_a_stem(text):
    assert isinstance(items(text), Unreadable)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1. item_4\n2. item_7", Selected(chosen=(4, 7), rung="text")),
        ("**1.** `item_4`\n**2.** `item_7`", Selected(chosen=(4, 7), rung="text")),
        ("item_0 item_3", Selected(chosen=(0, 3), rung="text")),
        ("[0] [3] [5]", Selected(chosen=(0, 3, 5), rung="text")),
        ("0, 3, 7", Selected(chosen=(0, 3, 7), rung="text")),
        ("1. item_4\n2. item_99", Selected(chosen=(4,), rung="text", unknown=1)),
        ("0, 3, 99", Selected(chosen=(0, 3), rung="text", unknown=1)),
        ("[4, 99]", Selected(chosen=(4,), rung="strict", unknown=1)),
        ("4 4 2 1 0", Selected(chosen=(4, 2, 1), rung="text", repeated=1, surplus=1)),
    ],
)
def test_labels_with_a_stem_may_be_listed_spaced_or_given_by_their_numbers(text, found):
    assert items(text) == Parsed(found, found.rung)


@given(st.text() | st.text("12[](){}\"',.:;- \nNOEnoe*`<>/", max_size=40))
def test_no_text_raises_for_a_selection(text):
    outcome = read(text)
    if isinstance(outcome, Parsed):
        assert set(outcome.value.chosen) <= set(range(5))


@pytest.mark.parametrize(
    "piece",
    [
        *("1,", "[", "none ", "a: ", "1 - ", '{"', "- 1\n", " ", "item_1 ", "item 1 ("),
        *("1" + " " * 999, "1. "),
    ],
)
def test_a_long_hostile_text_is_survived(piece):
    for length in (20_000, 500_000):
        for reader in (read, items):
            assert isinstance(reader((piece * length)[:length]), Parsed | Unreadable)


LABELS = ("Travel", "Food", "Board games")
classes = ClassReader(labels=LABELS, count=3)


@pytest.mark.parametrize(
    ("text", "labels", "rung"),
    [
        ('["Travel", "food", "Board games"]', ("Travel", "Food", "Board games"), "strict"),
        ('{"1": "Food", "3": "Travel"}', ("Food", None, "Travel"), "strict"),
        ('[{"number": 2, "label": "Food"}]', (None, "Food", None), "strict"),
        ('[{"id": 1, "class": "Food"}, {"id": 1, "class": "Travel"}, {"id": 2, "class": "Food"}]',
         (None, "Food", None), "strict"),
        ('{"labels": ["Travel", "Food", "Food"]}', None, ""),
        ('["Travel", "Music", "Food"]', ("Travel", None, "Food"), "strict"),
        ('So:\n["Travel", "Food", "Food"]', ("Travel", "Food", "Food"), "brackets"),
        ("1. Travel\n2. **Food**\n3: board games", ("Travel", "Food", "Board games"), "regex"),
        ("- 1. Travel\n- 3: Food", ("Travel", None, "Food"), "regex"),
        ("Here:\n1. Travel\n3. Food", None, ""),
        ("Travel\nFood\nFood", ("Travel", "Food", "Food"), "regex"),
        ('["Travel", "Food"]', None, ""),
        ('["Music", "Music", "Music"]', None, ""),
        ("I would say travel.", None, ""),
        ("[]", None, ""),
    ],
)  # fmt: skip
def test_classes(text, labels, rung):
    outcome = classes(text)
    if labels is None:
        assert isinstance(outcome, Unreadable), outcome
    else:
        assert isinstance(outcome, Parsed), outcome
        assert (outcome.value.labels, outcome.value.rung, outcome.rung) == (labels, rung, rung)


def test_one_text_may_be_answered_with_a_label_alone_and_labels_may_be_numbers():
    for text in ("Food", '"food"', "**Food.**", "1. Food"):
        assert ClassReader(labels=LABELS, count=1)(text).value.labels == ("Food",)
    for text in ("[3, 1]", '["3", "1"]', "3\n1", "1: 3\n2: 1"):
        assert ClassReader(labels=("1", "2", "3"), count=2)(text).value.labels == ("3", "1")


@given(st.text() | st.text('[]{}",:\\`\n 12Food', max_size=60))
def test_no_text_raises_for_classes(text):
    outcome = classes(text)
    assert isinstance(outcome, Unreadable) or len(outcome.value.labels) == 3
