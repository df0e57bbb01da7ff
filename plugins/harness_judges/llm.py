"""A judge that is a model: it is asked with the benchmark's own prompt, and its answer is read."""

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
    """Asks the model bound to the role; an answer that cannot be read is asked for again, with the
    reason."""

    model: Model
    name: str = "llm"
    version: int = 5

    @property
    def models(self) -> tuple[Model, ...]:
        """The one that it asks."""
        return (self.model,)

    async def judge(self, question: Question, ask: Ask) -> Verdict | NoVerdict:
        """What the model decided, or the cause for which the last try brought no verdict."""
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
    """The judge on its model."""
    if parts.model is None:
        raise UsageError(
            "the judge 'llm' needs a model", hint="name it as `--judge openai:…` or the like"
        )
    for key in parts.args:
        raise UsageError(
            "the judge 'llm' has no arguments of its own",
            found=key,
            expected="those of its model: llm:openai:model=NAME",
        )
    return LlmJudge(model=parts.model)


def merged(parts: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What the template may use: the question's parts and its own variables."""
    twice = parts.keys() & own.keys()
    if twice:
        raise ValueError(
            f"the question's variables {sorted(twice)} have the names of the question's own parts"
        )
    return {**parts, **own}


def no_verdict(failure: Unreadable | CallFailed) -> NoVerdict:
    """The failure of asking as the failure of judging, with its cause."""
    return NoVerdict(failure.cause, failure.detail)
