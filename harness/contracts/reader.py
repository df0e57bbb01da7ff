"""The interface of readers, which turn the text of a reply into a value."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from harness.contracts.outcomes import Parsed, Unreadable

T = TypeVar("T")


class Reader(Protocol[T]):
    """Reads a reply's text, from which reasoning was removed; never raises for a bad reply.

    It keeps no state: a long text is read in a thread of its own, at the same time as others.
    `schema` is the JSON Schema that a server may be asked to enforce, None if there is none.
    """

    @property
    def schema(self) -> dict[str, Any] | None: ...

    def __call__(self, text: str) -> Parsed[T] | Unreadable: ...
