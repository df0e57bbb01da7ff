"""What asking gives: a value, or a typed reason why there is none. A failure is never a value."""

from __future__ import annotations

from typing import Generic, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")


class Parsed(msgspec.Struct, Generic[T], frozen=True):
    """A reply that was read, and the rung of the ladder that read it.

    `truncated` says that it was cut at the token limit and read all the same, as its asker wished.
    """

    value: T
    rung: str
    truncated: bool = False


class Unreadable(msgspec.Struct, frozen=True, tag="unreadable"):
    """A reply that came and holds no usable answer: no_json, schema, truncated, refused, empty."""

    cause: str
    detail: str = ""


class CallFailed(msgspec.Struct, frozen=True, tag="call_failed"):
    """A call that brought no reply: timeout, rate_limited, bad_request, overflow, …"""

    cause: str
    detail: str = ""


class NoVerdict(msgspec.Struct, frozen=True, tag="no_verdict"):
    """A judge that was asked and gave no usable verdict; the cause is the last one met.

    Of a judge that is several, `behind` are the different causes of those who gave none.
    """

    cause: str
    detail: str = ""
    behind: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET

    @property
    def causes(self) -> tuple[str, ...]:
        """Why there is none at the bottom: the causes behind it, its own where there are none."""
        return (self.cause,) if isinstance(self.behind, msgspec.UnsetType) else self.behind


class Broken(msgspec.Struct, frozen=True, tag="broken"):
    """A worker that raised: a fault of the benchmark, kept with its traceback."""

    cause: str
    detail: str = ""


Failure: TypeAlias = Unreadable | CallFailed | NoVerdict | Broken
FAILURES = (Unreadable, CallFailed, NoVerdict, Broken)

FAMILIES = {
    "unreadable": "parsing",
    "call_failed": "calls",
    "no_verdict": "judging",
    "broken": "errors",
}
"""The family that failures of each tag count towards when a run has too many."""


def problem_in(detail: str) -> str:
    """The line of a failure's detail that says what was wrong: of a traceback the error's first."""
    lines = reversed(detail.strip().splitlines())
    return next((line for line in lines if not line[:1].isspace()), "")


def tag_of(failure: Failure) -> str:
    """The tag that stands for the kind of a failure wherever it is written."""
    return str(type(failure).__struct_config__.tag)
