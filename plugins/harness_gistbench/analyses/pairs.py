"""What the judges of stored runs decided, one interest with one object at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from harness import Done
from harness.hashing import stable_int

if TYPE_CHECKING:
    from harness import Record
    from harness_gistbench.analyses.comparing import Run

Question: TypeAlias = Literal["evidence", "retrieval"]
QUESTIONS: tuple[Question, ...] = ("evidence", "retrieval")
STAGES: dict[Question, str] = {"evidence": "verify", "retrieval": "specificity"}
JUDGES: dict[Question, str] = {"evidence": "judge", "retrieval": "retrieval_judge"}


@dataclass(frozen=True, kw_only=True)
class Pair:
    """An interest with one object, and whether the judge let them go together.

    `item` is its name to raters, which tells them nothing. `engagement` is empty for retrieval,
    whose judge does not know it either.
    """

    item: str
    interest: str
    object: str
    text: str
    engagement: str
    label: bool


def pairs_of(run: Run, question: Question) -> Iterator[tuple[str, list[Pair]]]:
    """Each user with all that a judge of the run was asked about and answered."""
    for user, records in run.task.records(STAGES[question]).by_user():
        yield user, [pair for record in records for pair in pairs_in(run, question, record)]


def pairs_in(run: Run, question: Question, record: Record[Any, Any]) -> Iterator[Pair]:
    """The pairs of one question; none where it has no answer."""
    if not isinstance(record.outcome, Done):
        return
    evidence = question == "evidence"
    if not evidence and not record.outcome.value.asked:
        return
    asked = record.item
    chosen = frozenset(record.outcome.value.positions)
    for position, one in enumerate(asked.evidence if evidence else asked.objects):
        signals = one.signals if evidence else ()
        yield Pair(
            item=item_name(run, question, record.user, asked.number, one.object),
            interest=asked.interest,
            object=one.object,
            text=one.text,
            engagement=", ".join(signal.replace("_", " ") for signal in signals),
            label=position in chosen,
        )


def item_name(run: Run, question: Question, *parts: str | int) -> str:
    """A name that stays the same and tells nothing.

    It begins with a letter, for spreadsheets take some names made of digits alone for numbers.
    """
    place = stable_int(question, run.task.run, run.task.task.name, *parts)
    return f"{question[0]}{place:016x}"


def judge_of(run: Run, question: Question) -> str:
    """The judge that the run asked."""
    return run.task.summary.roles.get(JUDGES[question], "unknown")
