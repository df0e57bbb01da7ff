"""Two judges: one by rule, and one that asks a model for numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from acme_borrowed.records import words
from harness import Classified, Model, NoVerdict, Parsed, Select, Selected, TextReader
from harness.contracts.judge import Ask, JudgeParts, Question


@dataclass(frozen=True)
class Strict:
    """Keeps the options with the subject among their first words."""

    within: int
    version: int = 1

    @property
    def name(self) -> str:
        return f"acme-strict-{self.within}"

    @property
    def models(self) -> tuple[Model, ...]:
        return ()

    async def judge(self, question: Question, ask: Ask) -> Selected | Classified | NoVerdict:
        if not isinstance(question, Select):
            return NoVerdict("no_json", "a strict judge classifies nothing")
        subject = question.subject.casefold()
        first = [words(option)[: self.within] for option in question.options]
        chosen = tuple(place for place, found in enumerate(first) if subject in found)
        return Selected(chosen=chosen[: question.at_most])


@dataclass(frozen=True)
class Careful:
    """Asks its model for the numbers of the options, twice at most."""

    model: Model
    name: str = "acme-careful"
    version: int = 1

    @property
    def models(self) -> tuple[Model, ...]:
        return (self.model,)

    async def judge(self, question: Question, ask: Ask) -> Selected | Classified | NoVerdict:
        if not isinstance(question, Select):
            return NoVerdict("no_json", "a careful judge classifies nothing")
        labels = [str(number + 1) for number in range(len(question.options))]

        def places(text: str) -> tuple[int, ...]:
            named = [] if text == "NONE" else re.split(r"[,\s]+", text)
            return tuple(labels.index(name) for name in named)  # ValueError: asked again

        variables = {
            "subject": question.subject,
            "options": list(question.options),
            "labels": labels,
            "choices": list(zip(labels, question.options, strict=True)),
            "at_most": question.at_most,
            **question.variables,
        }
        read = TextReader(convert=places)
        answer = await ask(
            self.model, question.prompt, variables, read=read, tries=2, corrected=True
        )
        if isinstance(answer, Parsed):
            return Selected(chosen=answer.value[: question.at_most], rung=answer.rung)
        return NoVerdict(answer.cause, answer.detail)


def strict(parts: JudgeParts) -> Strict:
    return Strict(within=int(parts.args.get("within", "2")))


def careful(parts: JudgeParts) -> Careful:
    assert parts.model is not None
    return Careful(model=parts.model)
