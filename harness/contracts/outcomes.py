"""The outcomes of a question: a value, or a typed failure. A failure is never a value. Readers turn
replies into them."""

from __future__ import annotations

import re
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec

T = TypeVar("T")


class Parsed(msgspec.Struct, Generic[T], frozen=True):
    """A reply that could be read."""

    value: T
    rung: str
    """How it was read: strict, fenced, brackets, repaired, regex or text."""

    truncated: bool = False
    """Whether the reply was cut at the token limit and read because the stage allows that."""


class Unreadable(msgspec.Struct, frozen=True, tag="unreadable"):
    """A reply without a usable answer."""

    cause: str
    """no_json, schema, truncated, refused, empty, reader_failed, or a benchmark's own cause."""

    detail: str = ""


class CallFailed(msgspec.Struct, frozen=True, tag="call_failed"):
    """A call that brought no reply."""

    cause: str
    """The cause of the last attempt's CallError: timeout, rate_limited, overflow …"""

    detail: str = ""


class NoVerdict(msgspec.Struct, frozen=True, tag="no_verdict"):
    """A judge gave no usable verdict."""

    cause: str
    """The cause of the last failure that the judge met."""

    detail: str = ""
    behind: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """In a panel: the distinct causes of the members that gave no verdict."""

    @property
    def causes(self) -> tuple[str, ...]:
        """The root causes: those of the panel's members, or its own cause."""
        return (self.cause,) if isinstance(self.behind, msgspec.UnsetType) else self.behind


class Broken(msgspec.Struct, frozen=True, tag="broken"):
    """The code of a stage raised an exception."""

    cause: str
    detail: str = ""


class Reader(Protocol[T]):
    """Reads a reply's text, from which reasoning was removed; never raises for a bad reply.

    It keeps no state: a long text is read in a thread of its own, at the same time as others.
    `schema` is the JSON Schema that a server may be asked to enforce, None if there is none.
    """

    @property
    def schema(self) -> dict[str, Any] | None: ...

    def __call__(self, text: str) -> Parsed[T] | Unreadable: ...


Failure: TypeAlias = Unreadable | CallFailed | NoVerdict | Broken
FAILURES = (Unreadable, CallFailed, NoVerdict, Broken)
"""For isinstance: `if isinstance(answer, FAILURES): return answer`."""

CAUSES = {
    "no_json": "the reply holds no JSON",
    "schema": "the reply is not of the form that was asked for",
    "truncated": "the reply was cut at the limit of tokens",
    "refused": "the model refused to answer",
    "empty": "the reply has no text",
    "reader_failed": "the code that reads replies raised an error",
    "timeout": "no reply came in time",
    "connection": "the server could not be reached",
    "rate_limited": "the server asked to wait too often",
    "server_error": "the server failed",
    "overflow": "the prompt is longer than the model allows",
    "bad_request": "the server refused the request",
    "bad_response": "the reply of the server could not be read",
    "no_content": "the reply of the server holds no answer",
    "not_recorded": "the recording has no such call",
    "not_done": "the item has not been worked on",
}
"""What the causes mean that any benchmark may have; `Benchmark.words` has those of its own."""

NO_ANSWER = frozenset({"connection", "timeout", "server_error", "rate_limited"})
"""The causes of calls that got no answer: the command of an unfinished run asks these again."""

FAMILIES = {
    "unreadable": "parsing",
    "call_failed": "calls",
    "no_verdict": "judging",
    "broken": "errors",
}
"""The family of each failure's tag; `max_failures` limits failures by family."""


def problem_in(detail: str) -> str:
    """The line of a failure's detail that names the problem; skips the frames of a traceback, and
    the module of the exception."""
    lines = reversed(detail.strip().splitlines())
    problem = next((line for line in lines if not line[:1].isspace()), "")
    return re.sub(r"^(?:\w+\.)+(?=\w+: )", "", problem)


def tag_of(failure: Failure) -> str:
    """The name of a failure's kind in stored files."""
    return str(type(failure).__struct_config__.tag)
