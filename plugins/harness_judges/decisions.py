"""The decisions of judges in stored runs, one for each option or text, and people's labels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from harness.analysis.human_labels import HumanLabel, HumanLabels, Label
from harness.contracts.judge import Selected, Verdict
from harness.contracts.outcomes import NoVerdict
from harness.scoring.finished_task import FinishedTask

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


@dataclass(kw_only=True)
class Matching:
    """The decisions that people labelled, and why other labels match none.

    `raters` holds, by stage and role, the labels of each rater by the index in `decisions`.
    """

    decisions: list[Decision] = field(default_factory=list)
    raters: dict[tuple[str, str], dict[str, dict[int, Label]]] = field(default_factory=dict)
    unmatched: Counter[str] = field(default_factory=Counter)


def match(labels: HumanLabels, decisions: Iterable[Decision], *, task: str) -> Matching:
    """The labels matched with decisions; DataError if a rater labelled a decision twice."""
    matching = Matching()
    by_item: dict[str, list[int]] = defaultdict(list)
    wanted = {row.item for row in labels.rows}
    for decision in decisions:
        if decision.item in wanted:
            by_item[decision.item].append(len(matching.decisions))
            matching.decisions.append(decision)
    for row in labels.rows:
        if row.where.get("task", task) != task:
            matching.unmatched["of other tasks"] += 1
            continue
        meant = [n for n in by_item[row.item] if _is_meant(row, matching.decisions[n])]
        if len(meant) != 1:
            why = "of several decisions, without saying which" if meant else "of no decision here"
            matching.unmatched[why] += 1
            continue
        decision = matching.decisions[meant[0]]
        raters = matching.raters.setdefault((decision.stage, decision.role), {})
        given = raters.setdefault(row.rater, {})
        if meant[0] in given:
            raise row.bad("item", row.item, "one label from each rater for a decision")
        given[meant[0]] = row.label if decision.subject is None else row.says_yes()
    return matching


def _is_meant(row: HumanLabel, decision: Decision) -> bool:
    where = row.where
    return (
        where.get("stage", decision.stage) == decision.stage
        and where.get("option", decision.option) == decision.option
        and where.get("question", decision.subject) in (decision.subject, str(decision.question))
    )
