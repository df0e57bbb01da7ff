"""Answers to questions that others sent for us, and questions that are put off until then.

Imported only by what runs stages or takes answers in.
"""

from __future__ import annotations

import msgspec

from harness.calls.store import Store
from harness.contracts.model import Model, Reply, Request
from harness.contracts.outcomes import CallFailed

_encode = msgspec.json.Encoder().encode


class Arrived(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came back for one question: a reply, or the failure that asking again cannot mend."""

    reply: Reply | None = None
    failure: CallFailed | None = None


_decode = msgspec.json.Decoder(Arrived).decode


class PutOff(BaseException):
    """A question that is to be sent in a batch: its item has no record until the answer is there.

    The client raises it, and it passes through the desk and the stage's own code up to the
    executor, which has it written down. It is a BaseException, as `asyncio.CancelledError` is,
    because an `except Exception` in a plugin's stage would make a failure of it.
    """

    def __init__(self, *, key: str, model: Model, request: Request, role: str) -> None:
        super().__init__(key)
        self.key = key
        self.model = model
        self.request = request
        self.role = role


class Mailbox:
    """The answers that came for a run, and whether models that take batches are asked at all."""

    def __init__(self, answers: Store | None = None, *, puts_off: bool = False) -> None:
        self._answers = answers
        self._puts_off = puts_off

    def answer(self, key: str) -> Arrived | None:
        """What came back under the key of a call; None where nothing did."""
        value = None if self._answers is None else self._answers.get(bytes.fromhex(key))
        return None if value is None else _decode(value)

    def put(self, key: str, arrived: Arrived) -> None:
        """Keep what came back for a call."""
        assert self._answers is not None, "a mailbox that takes answers in has a file for them"
        self._answers.put(bytes.fromhex(key), _encode(arrived))

    def refuse_to_ask(self, model: Model, request: Request, *, key: str, role: str) -> None:
        """Raise PutOff where the model is to be asked in a batch."""
        if self._puts_off and model.takes_batches:
            raise PutOff(key=key, model=model, request=request, role=role)
