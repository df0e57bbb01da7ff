"""The desk: everything that a stage's worker sees of the harness."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, Literal, Protocol, TypeVar, overload

from harness.contracts.judge import Classified, Classify, Select, Selected
from harness.contracts.outcomes import CallFailed, NoVerdict, Parsed, Unreadable
from harness.contracts.reader import Reader

T = TypeVar("T")


class Memo(Protocol):
    """A small table that runs share; the first value written for a key stays.

    known = desk.memo("categories").known(["jazz", "bebop"])
    """

    def known(self, keys: Iterable[str]) -> dict[str, str]:
        """The values of those of the keys that have one."""

    def keep(self, values: Mapping[str, str]) -> dict[str, str]:
        """The values that hold for these keys from now on: the given ones, or earlier ones."""


class Desk(Protocol):
    """What one item's worker asks, judges, reads and logs with."""

    @property
    def options(self) -> Any:
        """The options that the stage declares; reading any other raises.

        window = desk.options.window
        """

    @property
    def random(self) -> Random:
        """A generator seeded for this item: the same numbers in every process.

        order = desk.random.sample(titles, k=len(titles))
        """

    @property
    def log(self) -> logging.Logger:
        """The stage's logger.

        desk.log.info("%s has no history", item.user)
        """

    def memo(self, name: str) -> Memo:
        """A table shared by runs of this stage with equal version, prompts, models and sampling.

        Options and seed do not separate tables: a memo keeps conventions, not samples. If its
        values depend on anything else, put that into the name.

            found = desk.memo("categories").keep({"bebop": "jazz"})
        """

    async def ask(
        self,
        role: str,
        prompt: str,
        variables: Mapping[str, Any],
        *,
        read: Reader[T],
        tries: int = 1,
        repeat: int = 0,
        truncated: Literal["fail", "read"] = "fail",
        corrected: bool = False,
    ) -> Parsed[T] | Unreadable | CallFailed:
        """What the role's model answered, read; asked up to `tries` times while unreadable.

        Each try is a repeat of its own, so it has an answer of its own; `repeat` numbers questions
        that are asked several times on purpose. A reply that was cut at the token limit is a
        failure unless `truncated="read"`; at a temperature up to 0.1 it is not asked for again,
        since it would be cut again. With `corrected`, each try after the first shows the previous
        answer and why it could not be read.

            answer = await desk.ask("candidate", "rate", {"title": title}, read=RATING, tries=3)
            return answer.value if isinstance(answer, Parsed) else answer
        """

    @overload
    async def judge(self, question: Select, *, role: str = "judge") -> Selected | NoVerdict: ...

    @overload
    async def judge(self, question: Classify, *, role: str = "judge") -> Classified | NoVerdict: ...

    async def judge(
        self, question: Select | Classify, *, role: str = "judge"
    ) -> Selected | Classified | NoVerdict:
        """What the role's judge decided.

        verdict = await desk.judge(Select(prompt="verify", subject=interest, options=titles))
        """
