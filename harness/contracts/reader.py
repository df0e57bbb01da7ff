"""What turns the text of a reply into a value."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from harness.contracts.outcomes import Parsed, Unreadable

T = TypeVar("T")


class Reader(Protocol[T]):
    """Reads a reply's text, reasoning already removed; never raises.

    `schema` is what a server may be asked to hold its answer to, None where nothing fits.
    """

    @property
    def schema(self) -> dict[str, Any] | None: ...

    def __call__(self, text: str) -> Parsed[T] | Unreadable: ...
