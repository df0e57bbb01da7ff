"""The text of an object from what a source tells of it."""

from __future__ import annotations

from collections.abc import Iterable


def described(parts: Iterable[str | None], *, unknown: frozenset[str] = frozenset()) -> str:
    """The parts that say something, on one line; `unknown` are marks of what a source knows not."""
    tidy = (" ".join(part.split()) for part in parts if part)
    return " | ".join(dict.fromkeys(part for part in tidy if part and part not in unknown))
