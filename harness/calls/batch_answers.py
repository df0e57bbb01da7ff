"""Answers that came in batches, and questions that wait for the next batch.

Imported only by modules that run stages or read batches.
"""

from __future__ import annotations

import msgspec

from harness.calls.store import Store
from harness.contracts.model import Model, Reply, Request
from harness.contracts.outcomes import CallFailed

_encode = msgspec.json.Encoder().encode


class BatchAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one question of a batch: a reply, or a failure that a retry cannot fix."""

    reply: Reply | None = None
    failure: CallFailed | None = None


_decode = msgspec.json.Decoder(BatchAnswer).decode


class DeferredToBatch(BaseException):
    """A question waits for a batch; its item gets no record before the answer arrives.

    The client raises it, and it passes through the desk and the stage's code up to the executor,
    which writes the question to a file. It is a BaseException, like `asyncio.CancelledError`, so
    that no `except Exception` in a plugin's stage turns it into a failure.
    """

    def __init__(self, *, key: str, model: Model, request: Request, role: str) -> None:
        super().__init__(key)
        self.key = key
        self.model = model
        self.request = request
        self.role = role


class BatchAnswers:
    """The answers that came in batches; `puts_off` puts all other questions off for a batch."""

    def __init__(self, answers: Store | None = None, *, puts_off: bool = False) -> None:
        self._answers = answers
        self._puts_off = puts_off

    def answer(self, key: str) -> BatchAnswer | None:
        """The answer under a call's key; None if there is none."""
        value = None if self._answers is None else self._answers.get(bytes.fromhex(key))
        return None if value is None else _decode(value)

    def put(self, key: str, arrived: BatchAnswer) -> None:
        """Keep the answer to a call."""
        assert self._answers is not None, "a mailbox that receives answers needs a file"
        self._answers.put(bytes.fromhex(key), _encode(arrived))

    def defers(self, model: Model) -> bool:
        """Whether questions to this model wait for a batch."""
        return self._puts_off and model.takes_batches
