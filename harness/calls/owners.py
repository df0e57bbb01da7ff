"""Which of several workers asks a question that several of them have, so that it is asked once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine
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


Elsewhere = Callable[[Model, Question], Awaitable[Answer | None]]
"""Asks the worker that owns a call; None if this worker does."""


class OwnerLost(Exception):
    """The worker that was asked is gone, or asks nothing any more: the next one owns the call."""


class Owners:
    """Asks the worker that owns a call, for a worker that has the question too.

    `name` is this worker's name, `workers` gives the names of all that live, and `ask` asks one of
    them by name: over there, `Client.answer` answers. It raises OwnerLost if the worker is gone,
    and otherwise what the owner's client raised.
    """

    def __init__(
        self,
        name: str,
        *,
        workers: Callable[[], Collection[str]],
        ask: Callable[[str, Model, Question], Coroutine[Any, Any, Answer]],
    ) -> None:
        self._name = name
        self._workers = workers
        self._ask = ask

    async def __call__(self, model: Model, question: Question) -> Answer | None:
        """The answer of the worker that owns the call; None if this worker does."""
        lost: set[str] = set()
        while True:
            # With this worker, whatever the list says: so no two workers wait for each other.
            living = {*self._workers(), self._name} - lost
            owner = owner_of(question.key, living)
            if owner == self._name:
                return None
            try:
                return await self._ask(owner, model, question)
            except OwnerLost:
                lost.add(owner)


def owner_of(key: str, workers: Collection[str]) -> str:
    """The worker that owns a call: the same in every process; if it is gone, only its calls move.

    >>> owner_of("5f", ["a", "b", "c"]) == owner_of("5f", {"c", "b", "a"})
    True
    """
    return max(workers, key=lambda worker: (stable_int(key, worker), worker))
