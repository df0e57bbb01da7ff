"""What a judge is, the two kinds of question that it answers, and its verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from harness.contracts.model import Model
from harness.contracts.outcomes import CallFailed, NoVerdict, Parsed, Reader, Unreadable


class Select(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the options fit the subject?

    Select(prompt="specificity", subject="jazz", options=("Blue Train", "Top Gun"), at_most=1)
    """

    prompt: str
    """The name of the benchmark's template."""

    subject: str
    """The text that the options are compared with."""

    options: tuple[str, ...]
    labels: tuple[str, ...] = ()
    """The names of the options in prompt and answer; 1, 2, 3 … if empty."""

    at_most: int | None = None
    """The most options that may be chosen; None for any number."""

    variables: dict[str, Any] = {}


class Classify(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the labels does each text belong to?

    Classify(prompt="check", texts=("I loved it",), labels=("positive", "negative"))
    """

    prompt: str
    """The name of the benchmark's template."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    variables: dict[str, Any] = {}


Question: TypeAlias = Select | Classify


class Selected(msgspec.Struct, frozen=True, kw_only=True, tag="selected"):
    """The verdict on a Select."""

    chosen: tuple[int, ...]
    """The positions of the chosen options, from 0, in the order of the answer."""

    rung: str = "rule"
    """How the answer was read; "rule" if the judge decided without an answer."""

    unknown: int = 0
    """How many labels in the answer were ignored because no option has them."""

    repeated: int = 0
    """How many were ignored because they came before."""

    surplus: int = 0
    """How many were ignored because they exceeded `at_most`."""

    tied: int = 0
    """In a panel: how many options were chosen by exactly half of the members that answered."""


class Classified(msgspec.Struct, frozen=True, kw_only=True, tag="classified"):
    """The verdict on a Classify."""

    labels: tuple[str | None, ...]
    """One label for each text; None if the judge gave no valid one."""

    rung: str = "rule"
    """How the answer was read; "rule" if the judge decided without an answer."""

    tied: int = 0
    """In a panel: how many texts have no label because several labels had as many votes."""


class Vote(msgspec.Struct, frozen=True):
    """The decision of one member of a panel."""

    member: str
    verdict: Selected | Classified | NoVerdict


Verdict: TypeAlias = Selected | Classified


T = TypeVar("T")

JudgeInput: TypeAlias = Literal["alone", "model", "judges"]
"""What follows a judge's name in a SPEC: arguments only, one model, or other judges."""


class Ask(Protocol):
    """Asks one of a judge's models with one of the benchmark's templates.

        answer = await ask(self.models[0], question.prompt, variables, read=reader, tries=2)

    `read` turns the reply into a value. `tries`: how often to ask until a reply can be read;
    `corrected`: later tries show the model its unreadable reply.
    """

    async def __call__(
        self,
        model: Model,
        prompt: str,
        variables: Mapping[str, Any],
        *,
        read: Reader[T],
        tries: int,
        corrected: bool = False,
    ) -> Parsed[T] | Unreadable | CallFailed: ...

    def vote(self, vote: Vote) -> None:
        """Record the decision of one member of a panel."""


class Judge(Protocol):
    """Answers questions by rule, with a model, or as a panel."""

    @property
    def name(self) -> str:
        """The judge's name; part of the keys of records."""

    @property
    def version(self) -> int:
        """Raise it when the judge decides differently; part of the keys of records."""

    @property
    def models(self) -> tuple[Model, ...]:
        """All models that it may ask; empty if it works by rule."""

    async def judge(self, question: Question, ask: Ask) -> Verdict | NoVerdict:
        """Answer one question: `verdict = await judge.judge(Select(…), ask)`."""


@dataclass(frozen=True, kw_only=True)
class Member:
    """A judge of a panel."""

    label: str
    judge: Judge


@dataclass(frozen=True, kw_only=True)
class JudgeParts:
    """The parts that a judge's factory receives, from the judge's SPEC."""

    args: Mapping[str, str] = field(default_factory=dict)
    model: Model | None = None
    """The model, for a judge that is registered with `on="model"`."""

    members: tuple[Member, ...] = ()
    """The judges of the panel, for a judge that is registered with `on="judges"`."""
