"""The answers that a run got itself, in a file of its own: none is asked again after a kill.

Imported only by modules that run stages.
"""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from harness.calls.store import Store
from harness.contracts.model import Reply, Usage
from harness.contracts.outcomes import CallFailed

Source = Literal["model", "store", "shared"]

ANYONE = "*"
"""The asker of an answer that came in a file: whoever asks first in a session gets its cost."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one call: a reply, or a typed failure.

    `attempts` counts the requests that this call sent itself: 0 for answers from the store or from
    an identical call in flight. `wasted`: the tokens of attempts that brought no reply.
    `unreported`: attempts, with or without a reply, that may have been billed but reported no
    usage.
    """

    reply: Reply | None
    failure: CallFailed | None = None
    key: str
    source: Source
    attempts: int = 0
    seconds: float = 0.0
    wasted: Usage | None = None
    unreported: int = 0


class OwnAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer with the session that got it, and the item that asked."""

    session: int
    asker: str
    answer: Answer


encoded = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(OwnAnswer).decode


def decoded(value: bytes) -> OwnAnswer | None:
    """The answer whose `encoded` bytes these are; None if another version wrote them."""
    try:
        return _decode(value)
    except msgspec.DecodeError:
        return None


class Earlier(Protocol):
    """What a run was answered before, by key."""

    def earlier(self, key: str) -> OwnAnswer | None:
        """The answer that is given again; None if there is none."""
        ...

    def keep(self, asker: str, answer: Answer) -> None:
        """Keep an answer of this session; it replaces an earlier one."""
        ...


class OwnAnswers:
    """What a run's earlier sessions were answered, by key; without a store nothing is kept.

    An answer of this session is not given back: a question that is asked again in one session is a
    new one, unless the shared store answers it.
    """

    def __init__(self, store: Store | None = None, *, session: int = 1) -> None:
        self._store = store
        self._session = session

    def earlier(self, key: str) -> OwnAnswer | None:
        """The answer that an earlier session got; None if there is none."""
        if self._store is None or self._session == 1:
            return None
        value = self._store.get(bytes.fromhex(key))
        answer = None if value is None else decoded(value)
        return answer if answer is not None and answer.session != self._session else None

    def has(self, key: str) -> bool:
        """Whether there is an answer of any session."""
        return self._store is not None and self._store.get(bytes.fromhex(key)) is not None

    def keep(self, asker: str, answer: Answer) -> None:
        """Keep an answer of this session; it replaces an earlier one."""
        if self._store is not None:
            own = OwnAnswer(session=self._session, asker=asker, answer=answer)
            self._store.put(bytes.fromhex(answer.key), encoded(own))
