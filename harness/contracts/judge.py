"""The contract between the harness and a judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from harness.contracts.model import Model
from harness.contracts.outcomes import CallFailed, NoVerdict, Parsed, Unreadable
from harness.contracts.reader import Reader


class Select(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the options go with the subject? `prompt` names the benchmark's own template.

    `labels` are how the options are called in prompt and answer; 1, 2, 3 … unless given.
    """

    prompt: str
    subject: str
    options: tuple[str, ...]
    labels: tuple[str, ...] = ()
    at_most: int | None = None
    variables: dict[str, Any] = {}


class Classify(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the labels does each text belong to?"""

    prompt: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    variables: dict[str, Any] = {}


Question: TypeAlias = Select | Classify


class Selected(msgspec.Struct, frozen=True, kw_only=True, tag="selected"):
    """The positions (from 0, in the order named) that were chosen, and what had to be ignored.

    Of a judge that is several, `tied` options were chosen by just half of those who answered.
    """

    chosen: tuple[int, ...]
    rung: str
    unknown: int = 0
    repeated: int = 0
    surplus: int = 0
    tied: int = 0


class Classified(msgspec.Struct, frozen=True, kw_only=True, tag="classified"):
    """One label a text, None where the judge gave none that exists.

    Of a judge that is several, `tied` texts have no label since several were given as often.
    """

    labels: tuple[str | None, ...]
    rung: str
    tied: int = 0


class Vote(msgspec.Struct, frozen=True):
    """What one of several judges decided, or why it did not."""

    member: str
    verdict: Selected | Classified | NoVerdict


Verdict: TypeAlias = Selected | Classified


T = TypeVar("T")

Stands: TypeAlias = Literal["alone", "model", "judges"]
"""What a judge stands on: nothing but arguments, one model, or other judges."""


class Ask(Protocol):
    """Asks one of a judge's models with one of the benchmark's templates.

    A judge that is several says by `vote` what each decided: the record keeps it.
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

    def vote(self, vote: Vote) -> None: ...


class Judge(Protocol):
    """A way to answer questions. `name` and `version` enter the keys of what it decided.

    `models` are all that it may ask through `ask`; none for judges that work by rule.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def models(self) -> tuple[Model, ...]: ...

    async def judge(self, question: Question, ask: Ask) -> Verdict | NoVerdict:
        """Answer one question."""
        ...


@dataclass(frozen=True, kw_only=True)
class Member:
    """A judge among several, and what records and tables call it."""

    label: str
    judge: Judge


@dataclass(frozen=True, kw_only=True)
class JudgeParts:
    """What a judge is made of: arguments, and what it stands on, the model or the members."""

    args: Mapping[str, str] = field(default_factory=dict)
    model: Model | None = None
    members: tuple[Member, ...] = ()
