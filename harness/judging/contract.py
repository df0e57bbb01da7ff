"""The contract between the harness and a judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from harness.judging.questions import Question, Verdict, Vote
from harness.models import Model
from harness.outcomes import CallFailed, NoVerdict, Parsed, Unreadable
from harness.parsing import Reader

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
