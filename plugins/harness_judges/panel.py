"""A panel: several judges answer each question, and the majority decides."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.base.errors import UsageError
from harness.contracts.judge import (
    Ask,
    Classified,
    Classify,
    Judge,
    JudgeParts,
    Member,
    Question,
    Select,
    Selected,
    Verdict,
    Vote,
)
from harness.contracts.model import Model
from harness.contracts.outcomes import NoVerdict

RUNG = "majority"


@dataclass(frozen=True, kw_only=True)
class PanelJudge:
    """Asks its members at the same time; the answers decide if more than half answered."""

    members: tuple[Member, ...]
    name: str = "panel"
    version: int = 1

    @property
    def models(self) -> tuple[Model, ...]:
        """The models of all members."""
        return tuple(model for member in self.members for model in member.judge.models)

    async def judge(self, question: Question, ask: Ask) -> Verdict | NoVerdict:
        """The majority's verdict; NoVerdict if too few answered. It records every vote."""
        verdicts = await asyncio.gather(
            *(member.judge.judge(question, ask) for member in self.members)
        )
        votes = tuple(
            Vote(member.label, verdict)
            for member, verdict in zip(self.members, verdicts, strict=True)
        )
        for vote in votes:
            ask.vote(vote)
        if isinstance(question, Select):
            selections = [each for each in verdicts if isinstance(each, Selected)]
            return no_quorum(votes, len(selections)) or select(question, selections)
        classifications = [each for each in verdicts if isinstance(each, Classified)]
        return no_quorum(votes, len(classifications)) or classify(question, classifications)


def make(parts: JudgeParts) -> Judge:
    """The panel of these members."""
    if len(parts.members) < 2:
        raise UsageError(
            "a panel needs two judges or more",
            found=", ".join(member.label for member in parts.members) or "none",
            expected="panel:SPEC+SPEC+…, as in panel:openai:model=a+openai:model=b+openai:model=c",
        )
    return PanelJudge(members=parts.members)


def no_quorum(votes: Sequence[Vote], answered: int) -> NoVerdict | None:
    """The NoVerdict of a panel if at most half of its members answered; None otherwise."""
    if 2 * answered > len(votes):
        return None
    silent = [(vote.member, one) for vote in votes if isinstance(one := vote.verdict, NoVerdict)]
    causes = ", ".join(f"{member}: {verdict.cause}" for member, verdict in silent)
    return NoVerdict(
        "no_quorum",
        f"{answered} of {len(votes)} answered; {causes}",
        behind=tuple(sorted({cause for _, verdict in silent for cause in verdict.causes})),
    )


def select(question: Select, verdicts: Sequence[Selected]) -> Selected:
    """The options that more than half of the answers chose, the most frequent first.

    Options in exactly half of the answers are not selected, and counted as tied.
    """
    times = Counter(place for verdict in verdicts for place in set(verdict.chosen))
    enough = [place for place in times if 2 * times[place] > len(verdicts)]
    enough.sort(key=lambda place: (-times[place], place))
    chosen = enough if question.at_most is None else enough[: question.at_most]
    return Selected(
        chosen=tuple(chosen),
        rung=RUNG,
        surplus=len(enough) - len(chosen),
        tied=sum(2 * count == len(verdicts) for count in times.values()),
    )


def classify(question: Classify, verdicts: Sequence[Classified]) -> Classified | NoVerdict:
    """For each text, the most frequent label; None if there is none or a tie.

    A member without a label for a text abstains. Without any label there is no verdict.
    """
    counts = [
        Counter(verdict.labels[place] for verdict in verdicts if verdict.labels[place] is not None)
        for place in range(len(question.texts))
    ]
    labels = tuple(_leading(each) for each in counts)
    tied = sum(bool(each) and label is None for each, label in zip(counts, labels, strict=True))
    if labels and not any(labels):
        return NoVerdict("tied", "no text has a label that is more frequent than the others")
    return Classified(labels=labels, rung=RUNG, tied=tied)


def _leading(times: Counter[str | None]) -> str | None:
    first = times.most_common(2)
    if not first or (len(first) == 2 and first[0][1] == first[1][1]):
        return None
    return first[0][0]
