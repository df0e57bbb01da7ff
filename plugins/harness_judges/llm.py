"""A judge that asks a model with the benchmark's own prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.base.errors import UsageError
from harness.contracts.judge import (
    Ask,
    Classified,
    Classify,
    Judge,
    JudgeParts,
    Question,
    Select,
    Selected,
    Verdict,
)
from harness.contracts.model import Model
from harness.contracts.outcomes import CallFailed, NoVerdict, Parsed, Unreadable
from harness_judges.answers import ClassReader, SelectionReader

TRIES = 3
RUNG_WITHOUT_ASKING = "rule"


@dataclass(frozen=True, kw_only=True)
class LlmJudge:
    """Asks the model bound to the role; after an unreadable answer, it repeats the question with
    the reason."""

    model: Model
    name: str = "llm"
    version: int = 5

    @property
    def models(self) -> tuple[Model, ...]:
        """The judge's model."""
        return (self.model,)

    async def judge(self, question: Question, ask: Ask) -> Verdict | NoVerdict:
        """The model's verdict, or the cause of the last try's failure."""
        if isinstance(question, Select):
            return await self._select(question, ask)
        return await self._classify(question, ask)

    async def _select(self, question: Select, ask: Ask) -> Selected | NoVerdict:
        if not question.options:
            return Selected(chosen=(), rung=RUNG_WITHOUT_ASKING)
        labels = question.labels or tuple(
            str(number) for number in range(1, len(question.options) + 1)
        )
        variables = merged(
            {
                "subject": question.subject,
                "options": list(question.options),
                "labels": list(labels),
                "choices": list(zip(labels, question.options, strict=True)),
                "at_most": question.at_most,
            },
            question.variables,
        )
        read = SelectionReader(labels=labels, at_most=question.at_most)
        answer = await ask(
            self.model, question.prompt, variables, read=read, tries=TRIES, corrected=True
        )
        return answer.value if isinstance(answer, Parsed) else no_verdict(answer)

    async def _classify(self, question: Classify, ask: Ask) -> Classified | NoVerdict:
        if not question.texts:
            return Classified(labels=(), rung=RUNG_WITHOUT_ASKING)
        variables = merged(
            {"texts": list(question.texts), "labels": list(question.labels)}, question.variables
        )
        read = ClassReader(labels=question.labels, count=len(question.texts))
        answer = await ask(
            self.model, question.prompt, variables, read=read, tries=TRIES, corrected=True
        )
        return answer.value if isinstance(answer, Parsed) else no_verdict(answer)


def make(parts: JudgeParts) -> Judge:
    """The judge with its model; UsageError without a model or with arguments."""
    if parts.model is None:
        raise UsageError(
            "the judge 'llm' needs a model",
            expected="the SPEC of a model",
            hint="give one, as in --judge openai:model=NAME",
        )
    for key in parts.args:
        raise UsageError(
            "the judge 'llm' has no arguments of its own",
            found=key,
            expected="arguments after its model, as in llm:openai:model=NAME",
        )
    return LlmJudge(model=parts.model)


def merged(parts: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of the template: the question's parts and its `variables`."""
    twice = parts.keys() & own.keys()
    if twice:
        raise ValueError(
            f"rename the question's variables {sorted(twice)}: its parts have these names already"
        )
    return {**parts, **own}


def no_verdict(failure: Unreadable | CallFailed) -> NoVerdict:
    """The NoVerdict for a failed call or an unreadable answer, with its cause."""
    return NoVerdict(failure.cause, failure.detail)
