"""The decisions of judges in stored runs, one for each option or text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from harness.contracts.judge import Selected, Verdict
from harness.contracts.outcomes import NoVerdict
from harness.scoring.finished_task import FinishedTask

Label: TypeAlias = bool | str
"""The label of an option (whether it is selected) or of a text (its class)."""

NO_LABEL = "no_label"
"""The cause for a text without an existing label."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A judge's decision on one option or text of one question.

    `question` is the number of the question within the item, from 1. `option` is the name of the
    option, or the number of the text. `said` is the label; without one, `why` is the cause. `votes`
    are the labels of a panel's members, by member.
    """

    stage: str
    role: str
    prompt: str
    item: str
    user: str
    question: int
    subject: str | None
    option: str
    said: Label | None
    why: str
    votes: dict[str, Label | None]


def decisions_of(task: FinishedTask) -> Iterator[Decision]:
    """Every decision of every judge of a task, in the order of its records."""
    for entry in task.entry.stages:
        for record in task.judged(entry.name):
            for number, judged in enumerate(record.judged, start=1):
                numbers = map(str, range(1, judged.texts + 1))
                for place, option in enumerate(judged.labels or numbers):
                    said, why = _label(judged.verdict, place)
                    yield Decision(
                        stage=entry.name,
                        role=judged.role,
                        prompt=judged.prompt,
                        item=record.id,
                        user=record.user,
                        question=number,
                        subject=judged.subject,
                        option=option,
                        said=said,
                        why=why,
                        votes={
                            vote.member: _label(vote.verdict, place)[0] for vote in judged.votes
                        },
                    )


def _label(verdict: Verdict | NoVerdict, place: int) -> tuple[Label | None, str]:
    """The label of the option or text at a place, or None with the cause."""
    if isinstance(verdict, NoVerdict):
        return None, verdict.cause
    if isinstance(verdict, Selected):
        return place in verdict.chosen, ""
    label = verdict.labels[place]
    return label, "" if label is not None else NO_LABEL
