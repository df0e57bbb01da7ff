"""What a look at one thing found, as `harness doctor` tells it."""

from __future__ import annotations

from typing import Literal

import msgspec

from harness.base.errors import HarnessError

State = Literal["good", "doubtful", "bad"]
"""Nothing is wrong; a run may go well all the same; no run that needs it can go well."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at: what it is about, how it is, and what to do where it is bad."""

    about: str
    state: State
    says: str
    to_do: str | None = None


def good(about: str, says: str) -> Finding:
    """The finding of something with which nothing is wrong."""
    return Finding(about=about, state="good", says=says)


def doubtful(about: str, says: str, to_do: str | None = None) -> Finding:
    """The finding of something that need not stand in the way of a run."""
    return Finding(about=about, state="doubtful", says=says, to_do=to_do)


def bad(about: str, says: str, to_do: str | None = None) -> Finding:
    """The finding of something that stands in the way of every run that needs it."""
    return Finding(about=about, state="bad", says=says, to_do=to_do)


def bad_by(about: str, error: HarnessError) -> Finding:
    """The finding that an error is, with all that the error says."""
    said = f"{error.where}: {error.problem}" if error.where else error.problem
    more = [
        f"{word} {text}"
        for word, text in (("found", error.found), ("expected", error.expected))
        if text
    ]
    return bad(about, "; ".join([said, *more]), error.hint)
