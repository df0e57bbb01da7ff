"""What a judge's answer to "which label has each of these?" is taken to mean."""

from __future__ import annotations

import pytest
from harness_judges.classes import ClassReader
from hypothesis import given
from hypothesis import strategies as st

from harness.outcomes import Parsed, Unreadable

LABELS = ("Travel", "Food", "Board games")
read = ClassReader(labels=LABELS, count=3)


@pytest.mark.parametrize(
    ("text", "labels", "rung"),
    [
        ('["Travel", "food", "Board games"]', ("Travel", "Food", "Board games"), "strict"),
        ('{"1": "Food", "3": "Travel"}', ("Food", None, "Travel"), "strict"),
        ('[{"number": 2, "label": "Food"}]', (None, "Food", None), "strict"),
        ('[{"id": 1, "class": "Food"}, {"id": 1, "class": "Travel"}, {"id": 2, "class": "Food"}]',
         (None, "Food", None), "strict"),
        ('{"labels": ["Travel", "Food", "Food"]}', None, ""),
        ('{"labels": {"1": "Travel"}}', ("Travel", None, None), "strict"),
        ('["Travel", "Music", "Food"]', ("Travel", None, "Food"), "strict"),
        ('So:\n["Travel", "Food", "Food"]', ("Travel", "Food", "Food"), "brackets"),
        ("1. Travel\n2. **Food**\n3: board games", ("Travel", "Food", "Board games"), "regex"),
        ("Here:\n- [1] Travel\n- [3] Food", ("Travel", None, "Food"), "regex"),
        ("Travel\nFood\nFood", ("Travel", "Food", "Food"), "regex"),
        ('["Travel", "Food"]', None, ""),
        ('["Music", "Music", "Music"]', None, ""),
        ("Travel\nFood", None, ""),
        ("I would say travel.", None, ""),
        ("[]", None, ""),
        ("{}", None, ""),
        ("null", None, ""),
    ],
)  # fmt: skip
def test_forms(text: str, labels: tuple[str | None, ...] | None, rung: str) -> None:
    outcome = read(text)
    if labels is None:
        assert isinstance(outcome, Unreadable), outcome
    else:
        assert isinstance(outcome, Parsed), outcome
        assert (outcome.value.labels, outcome.value.rung, outcome.rung) == (labels, rung, rung)


@pytest.mark.parametrize(
    "text", ["Food", '"food"', "Food.", "Label: Food", "**Category:** Food", "1. Food"]
)
def test_one_text_may_be_answered_with_a_label_alone(text: str) -> None:
    outcome = ClassReader(labels=LABELS, count=1)(text)
    assert isinstance(outcome, Parsed), outcome
    assert outcome.value.labels == ("Food",)


def test_labels_may_be_numbers() -> None:
    grades = ClassReader(labels=("1", "2", "3"), count=2)
    for text in ("[3, 1]", '["3", "1"]', "3\n1", "1: 3\n2: 1"):
        outcome = grades(text)
        assert isinstance(outcome, Parsed), outcome
        assert outcome.value.labels == ("3", "1")


@given(st.text() | st.text('[]{}",:\\`\n 12Food', max_size=60))
def test_no_text_raises(text: str) -> None:
    outcome = read(text)
    assert isinstance(outcome, Unreadable) or len(outcome.value.labels) == 3
