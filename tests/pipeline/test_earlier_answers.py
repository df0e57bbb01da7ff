"""The answers in the records of items that are worked again."""

import pytest
from builders.runs import make_line, write_journal

from harness.contracts.model import Reply, TokenLogprob, Usage
from harness.contracts.outcomes import Broken, CallFailed, Unreadable
from harness.contracts.records import CallRecord, Done
from harness.pipeline.desk import _answer_and_reasoning
from harness.pipeline.executors.earlier_answers import EarlierAnswers, replies_in
from harness.runs.journal_index import OutcomeHead, scan
from harness.runs.journal_parts import part_path

STAGE = "5" * 32

REPLIES = [
    Reply(text="yes", id="chat-1"),
    Reply(text="<think>so</think>yes"),
    Reply(text="yes", reasoning="apart"),
    Reply(text="<think>within</think>yes", reasoning="apart"),
    Reply(text="ye", finish="length", usage=Usage(prompt_tokens=3, completion_tokens=2)),
    Reply(text="", finish="length", reasoning="and so on"),
    Reply(text="I cannot", finish="refused"),
    Reply(text="a", logprobs=(TokenLogprob(token="a", logprob=-0.5, top=(("b", -1.0),)),)),
]


def call(reply, key="k"):
    """The record of a call that was answered so."""
    text, thought = _answer_and_reasoning(reply)
    return CallRecord(
        role="candidate", prompt="p", key=key, text=text, reasoning=thought, finish=reply.finish,
        usage=reply.usage, logprobs=reply.logprobs,
    )  # fmt: skip


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_is_recorded_again_as_it_was(reply):
    [again] = replies_in([call(reply)]).values()
    assert call(again) == call(reply)
    assert (again.finish, again.usage, again.logprobs) == (
        reply.finish, reply.usage, reply.logprobs
    )  # fmt: skip


def test_what_cannot_be_read_again_as_it_was_is_left_out():
    failed = CallRecord(role="candidate", prompt="p", key="k")
    refused = call(Reply(text="<think>no</think>I cannot", finish="refused"))
    half = CallRecord(role="c", prompt="p", key="k", text="a\n</think>b", finish="stop")
    assert replies_in([failed, refused, half]) == {}


def test_only_records_of_items_that_are_worked_again_are_looked_up_in_all_parts(tmp_path):
    journal = tmp_path / "1-a.jsonl"
    outcomes = [Broken("KeyError"), Unreadable("no_json"), Done(1), CallFailed("timeout")]
    for part, start in ((0, 1), (2, 5)):
        lines = (
            make_line(
                number, {"id": str(number), "user": "u"}, outcome, stage=STAGE,
                calls=(call(Reply(text=f"{number}"), key=f"k{number}"),),
            )
            for number, outcome in enumerate(outcomes, start)
        )  # fmt: skip
        write_journal(part_path(journal, part), *lines)
    earlier = EarlierAnswers(journal, STAGE)
    found = [earlier.of(head.crc32) for _, _, head in scan(journal, OutcomeHead)]
    replies = [{f"k{number}": Reply(text=f"{number}")} for number in range(9)]
    assert found == [replies[1], {}, {}, replies[4], replies[5], {}, {}, replies[8]]
    assert earlier.of("none") == {}
    assert EarlierAnswers(journal, "6" * 32).of("none") == {}
