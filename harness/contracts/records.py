"""The records of items in a run folder, and the scores of units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec

from harness.contracts.judge import Classified, Selected, Vote
from harness.contracts.model import Finish, Message, TokenLogprob, Usage
from harness.contracts.outcomes import Broken, CallFailed, NoVerdict, Unreadable

ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")
DetailsT = TypeVar("DetailsT")
ItemT_co = TypeVar("ItemT_co", covariant=True)
ValueT_co = TypeVar("ValueT_co", covariant=True)


class CallRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question to a model: request, reply, and how the reply was read."""

    role: str
    prompt: str
    key: str
    repeat: int = 0
    source: Literal["model", "store", "shared"] = "model"
    """The origin of the reply; "shared" is an identical call in flight."""

    messages: tuple[Message, ...] = ()
    text: str | None = None
    reasoning: str | None = None
    finish: Finish | None = None
    usage: Usage | None = None
    wasted: Usage | None = None
    untold: int = 0
    """Attempts, with or without a reply, that may have been billed but reported no usage."""

    attempts: int = 1
    seconds: float = 0.0
    rung: str | None = None
    asked_schema: bool = False
    logprobs: tuple[TokenLogprob, ...] | None = None
    failure: Unreadable | CallFailed | None = None
    member: str = ""
    """In a panel: the member that asked."""


class Judged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question to a judge with its verdict."""

    role: str
    prompt: str
    verdict: Selected | Classified | NoVerdict
    subject: str | None = None
    labels: tuple[str, ...] = ()
    """The labels of a Select's options; the verdict's `chosen` are positions in them."""

    texts: int = 0
    votes: tuple[Vote, ...] = ()


class Done(msgspec.Struct, Generic[ValueT], frozen=True, tag="done"):
    """The outcome of an item that has a value."""

    value: ValueT


class Record(msgspec.Struct, Generic[ItemT, ValueT], frozen=True, kw_only=True):
    """An item with its outcome, as later stages and scores see it.

    The calls behind the outcome are left out, so that no score can depend on them.
    """

    key: str
    """The hash of the stage's key and the item."""

    stage: str
    user: str
    id: str
    item: ItemT
    outcome: Done[ValueT] | Unreadable | CallFailed | NoVerdict | Broken


class JournalLine(Record[ItemT, ValueT], Generic[ItemT, ValueT], frozen=True, kw_only=True):
    """One line of a stage's journal.

    The order of the fields is the order on the line: readers find `key`, `stage`, `user` and `id`
    without decoding the rest.
    """

    calls: tuple[CallRecord, ...] = ()
    judged: tuple[Judged, ...] | msgspec.UnsetType = msgspec.UNSET


class JudgedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A journal line without everything but its user, id and verdicts."""

    user: str
    id: str
    judged: tuple[Judged, ...] = ()


def record_type(item: Any, value: Any) -> Any:
    """The type that decodes a stage's journal lines, from the types of its items and values."""
    return Record[item, value]


class Records(Protocol[ItemT_co, ValueT_co]):
    """The current records of one stage, read lazily.

        for item, rating in records["rate"].values():
            …

    They are grouped by user, users in the order of a stable hash, a user's records in the order of
    their ids: the same order with any concurrency.
    """

    def __iter__(self) -> Iterator[Record[Any, Any]]: ...

    def __len__(self) -> int: ...

    def values(self) -> Iterator[tuple[ItemT_co, ValueT_co]]:
        """Item and value of every record that has one."""

    def with_items(self, kind: type[Any]) -> Records[Any, ValueT_co]:
        """The same records, their items decoded as a type with fewer fields.

        The other fields are skipped, which makes scores of long items much faster.
        """

    def by_user(self) -> Iterator[tuple[str, list[Record[Any, Any]]]]:
        """The users, each with a list of the user's records."""


class Score(msgspec.Struct, Generic[DetailsT], frozen=True, kw_only=True):
    """The score of one unit, a sample or a user.

    Score(id="7", user="ann", values={"recall": 0.5}, slices={"history": "6-20"})
    """

    id: str
    """The unit's id, unique in the task."""

    user: str
    """The person the unit is about; intervals are clustered by user."""

    values: dict[str, float] = {}
    """The unit's value in each column that has one."""

    missing: dict[str, str] = {}
    """The cause for each column that has none."""

    lost: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    """For each column with a value: the share, from 0 to 1, of what the value is made of that is
    missing, such as verdicts or answers that could not be read."""

    parts: dict[str, tuple[int, int]] | msgspec.UnsetType = msgspec.UNSET
    """For columns that are made of parts: how many parts are missing, and of how many; the share
    is what is lost unless `lost` has another."""

    worst: dict[str, float] = {}
    """The unit's value if what is missing of it is counted as worst; by default the share in `lost`
    counts as the metric's worst, and the rest as the value."""

    counts: dict[str, int] = {}
    """Counts of events, which the summary adds up."""

    details: DetailsT | None = None
    """Data for oracles and analyses, of the benchmark's type `details`."""

    slices: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """The parts of the data that the unit belongs to, such as a domain or a length of history.
    They change no number."""
