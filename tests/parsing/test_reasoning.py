"""Reasoning is told from the answer, with and without its opening tag."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.parsing import split_reasoning


@pytest.mark.parametrize(
    ("text", "answer", "reasoning"),
    [
        (" plain\n", " plain\n", None),
        ("<think>why</think>\nanswer", "answer", "why"),
        ("<think>\n\n</think>\n\nanswer", "answer", None),
        ("why\n</think>\nanswer", "answer", "why"),
        ("<think>never ends", "", "never ends"),
        ("answer\n<think>afterthought", "answer", "afterthought"),
        ("<think>\nwhy\n</think>answer", "answer", "why"),
        ("answer\n<think>after</think>", "answer", "after"),
        ("one\n<think>a</think>two</think>answer", "answer", "a\none\ntwo"),
        ("<think>a</think>b</think>answer", "answer", "a\nb"),
        ("<think>see <think> there</think>answer", "answer", "see <think> there"),
        ("<think>a</think>one\n<think>b</think>two", "one\ntwo", "a\nb"),
        ("<Thinking>why</Thinking>answer", "answer", "why"),
        ("<seed:think>why</seed:think>answer", "answer", "why"),
        ("[THINK]why[/THINK]answer", "answer", "why"),
        ('{"title": "I <think> so"}', '{"title": "I <think> so"}', None),
        (" I think </ so", " I think </ so", None),
    ],
)
def test_split(text, answer, reasoning):
    assert split_reasoning(text) == (answer, reasoning)


@given(st.text(), st.text())
def test_reasoning_in_front_never_changes_the_answer(thought, answer):
    if "hink" not in (thought + answer).lower():
        assert split_reasoning(f"<think>{thought}</think>{answer}")[0] == answer.strip()


@pytest.mark.parametrize("piece", ["<think>", "<", "x<think>", "[THINK]"])
def test_a_hostile_megabyte_is_survived(piece):
    megabyte = piece * (1_000_000 // len(piece))
    assert split_reasoning(f"<think>{megabyte}") == ("", megabyte)


@pytest.mark.parametrize("piece", ["</think>", "\t"])
def test_a_hostile_megabyte_without_a_thought_is_survived(piece):
    assert split_reasoning("<think>" + piece * (1_000_000 // len(piece))) == ("", None)
