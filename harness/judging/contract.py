"""The contract between the harness and a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from harness.judging.questions import Question, Verdict
from harness.models import Model
from harness.outcomes import CallFailed, NoVerdict, Parsed, Unreadable
from harness.parsing import Reader

T = TypeVar("T")


class Ask(Protocol):
    """Asks the model behind a judge with one of the benchmark's templates."""

    async def __call__(
        self,
        prompt: str,
        variables: Mapping[str, Any],
        *,
        read: Reader[T],
        tries: int,
        corrected: bool = False,
    ) -> Parsed[T] | Unreadable | CallFailed: ...


class Judge(Protocol):
    """A way to answer questions. `name` and `version` enter the keys of what it decided.

    `model` is asked through `ask`; None for judges that work by rule.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def model(self) -> Model | None: ...

    async def judge(self, question: Question, ask: Ask) -> Verdict | NoVerdict:
        """Answer one question."""
        ...
