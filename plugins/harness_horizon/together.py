"""Requests that are made at the same time, answered together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from harness.contracts.model import CallError

Q = TypeVar("Q")
A = TypeVar("A")


class Together(Generic[Q, A]):
    """Collects what is asked while earlier questions are answered.

    State: the questions that wait, and the task that answers.
    """

    def __init__(self, answer: Callable[[list[Q]], Awaitable[list[A]]]) -> None:
        self._answer = answer
        self._waiting: list[tuple[Q, asyncio.Future[A]]] = []
        self._work: asyncio.Task[None] | None = None

    async def ask(self, question: Q) -> A:
        """The answer to a question; CallError if those that were answered together failed."""
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        if self._work is None:
            self._work = asyncio.create_task(self._answer_waiting())
        return await answer

    async def _answer_waiting(self) -> None:
        """Answer what waits, all together, until nothing waits."""
        try:
            await asyncio.sleep(0)
            while self._waiting:
                together, self._waiting = self._waiting, []
                try:
                    answers = await self._answer([question for question, _ in together])
                except Exception as error:
                    failed = CallError("server_error", f"{type(error).__name__}: {error}")
                    for _, answer in together:
                        if not answer.done():
                            answer.set_exception(failed)
                    continue
                for (_, answer), found in zip(together, answers, strict=True):
                    if not answer.done():
                        answer.set_result(found)
        finally:
            self._work = None
