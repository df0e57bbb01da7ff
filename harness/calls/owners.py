"""Which of several workers asks a question that several of them have, so that it is asked once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from harness.base.hashing import stable_int
from harness.calls.own_answers import Answer
from harness.contracts.model import Model, Request


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A call as its worker makes it: see `Client.ask`; `key` is that of its answer."""

    key: str
    request: Request
    repeat: int
    role: str
    stage: str
    asker: str


class OwnerLost(Exception):
    """The worker that was asked is gone, or asks nothing any more: the next one owns the call."""


class Owners:
    """Asks the worker that owns a call, for a worker that has the question too.

    `name` is this worker's name, `workers` gives the names of all that live, and `ask` asks one of
    them by name: over there, `Client.answer` answers. `known` asks one of them what it knows of a
    key: there, `Client.known` answers. Both raise OwnerLost if the worker is gone, and otherwise
    what the other client raised. `asked`: this worker has owned a call.

    A worker that comes later owns calls which others may have made before: it asks these first.
    They must know of it before it is asked anything, so that they make no such call any more.
    """

    def __init__(
        self,
        name: str,
        *,
        workers: Callable[[], Collection[str]],
        ask: Callable[[str, Model, Question], Coroutine[Any, Any, Answer]],
        known: Callable[[str, str], Coroutine[Any, Any, Answer | None]],
    ) -> None:
        self.asked = False
        self._name = name
        self._workers = workers
        self._ask = ask
        self._known = known
        self._before: Sequence[str] = ()
        self._owned: Collection[str] = ()

    def follow(self, before: Sequence[str], owned: Collection[str]) -> None:
        """Come after these workers, in the order in which they came; some have owned calls."""
        self._before, self._owned = before, owned

    async def __call__(
        self, model: Model, question: Question, kept: Callable[[], Awaitable[Answer | None]]
    ) -> Answer | None:
        """The answer of the worker that owns the call; None if this worker does.

        When an owner is gone, `kept` gives what it was answered, if the run has kept that.
        """
        lost: set[str] = set()
        while True:
            # With this worker, whatever the list says: so no two workers wait for each other.
            living = {*self._workers(), self._name} - lost
            owner = owner_of(question.key, living)
            if owner == self._name:
                self.asked = True
                return None
            try:
                return await self._ask(owner, model, question)
            except OwnerLost:
                lost.add(owner)
                if (answer := await kept()) is not None:
                    return answer

    async def earlier(self, key: str) -> Answer | None:
        """The answer of those who owned a call before this worker came; None if they have none."""
        for owner in self._earlier_owners(key):
            with suppress(OwnerLost):
                if (answer := await self._known(owner, key)) is not None:
                    return answer
        return None

    def _earlier_owners(self, key: str) -> Iterator[str]:
        """Who may have made the call before this worker came, the last of them first."""
        before = self._before if self._owned else ()
        while before:
            owner = owner_of(key, before)
            before = before[: before.index(owner)]
            if owner in self._owned:
                yield owner


def owner_of(key: str, workers: Collection[str]) -> str:
    """The worker that owns a call: the same in every process; if it is gone, only its calls move.

    >>> owner_of("5f", ["a", "b", "c"]) == owner_of("5f", {"c", "b", "a"})
    True
    """
    return max(workers, key=lambda worker: (stable_int(key, worker), worker))
