"""The answers that a run got itself, in a file of its own: none is asked again after a kill.

Imported only by modules that run stages.
"""

from __future__ import annotations

import msgspec

from harness.calls.store import Store
from harness.contracts.model import Reply, Usage


class OwnAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reply of a model with what it cost, the session that got it, and the item that asked."""

    session: int
    asker: str
    reply: Reply
    attempts: int
    seconds: float
    wasted: Usage | None = None
    unreported: int = 0


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(OwnAnswer).decode


class OwnAnswers:
    """What a run's earlier sessions were answered, by key; without a store nothing is kept.

    An answer of this session is not given back: a question that is asked again in one session is a
    new one, unless the shared store answers it.
    """

    def __init__(self, store: Store | None = None, *, session: int = 1) -> None:
        self._store = store
        self.session = session

    def earlier(self, key: str) -> OwnAnswer | None:
        """The answer that an earlier session got; None if there is none."""
        if self._store is None or self.session == 1:
            return None
        value = self._store.get(bytes.fromhex(key))
        if value is None:
            return None
        try:
            answer = _decode(value)
        except msgspec.DecodeError:
            return None  # written by another version
        return answer if answer.session != self.session else None

    def keep(self, key: str, answer: OwnAnswer) -> None:
        """Keep an answer; it replaces an earlier one."""
        if self._store is not None:
            self._store.put(bytes.fromhex(key), _encode(answer))
