"""The record of one item, as it stands in a run folder."""

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
    """One question to a model, whole: what was sent, what came back, how it was read.

    `source` is where the reply came from: the model, the store, or an identical call in flight.
    `wasted` are the tokens of attempts that brought no reply; of `untold` attempts, that of the
    reply included, no tokens were told though they may have cost some.
    `member` is who was asked of a judge that is several.
    """

    role: str
    prompt: str
    key: str
    repeat: int = 0
    source: Literal["model", "store", "shared"] = "model"
    messages: tuple[Message, ...] = ()
    text: str | None = None
    reasoning: str | None = None
    finish: Finish | None = None
    usage: Usage | None = None
    wasted: Usage | None = None
    untold: int = 0
    attempts: int = 1
    seconds: float = 0.0
    rung: str | None = None
    asked_schema: bool = False
    logprobs: tuple[TokenLogprob, ...] | None = None
    failure: Unreadable | CallFailed | None = None
    member: str = ""


class Judged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question to a judge, and what it decided; of several judges also what each did.

    A Select has a `subject` and `labels`, which the verdict's `chosen` are places in; a Classify
    has so many `texts`, each with a label of the verdict's.
    """

    role: str
    prompt: str
    verdict: Selected | Classified | NoVerdict
    subject: str | None = None
    labels: tuple[str, ...] = ()
    texts: int = 0
    votes: tuple[Vote, ...] = ()


class Done(msgspec.Struct, Generic[ValueT], frozen=True, tag="done"):
    """The value a worker came to."""

    value: ValueT


class Record(msgspec.Struct, Generic[ItemT, ValueT], frozen=True, kw_only=True):
    """What later stages and scores see of one item: whose it was, what it asked, what came of it.

    How it was asked is no part of it, so that nothing can come to depend on that.
    """

    key: str
    stage: str
    user: str
    id: str
    item: ItemT
    outcome: Done[ValueT] | Unreadable | CallFailed | NoVerdict | Broken


class JournalLine(Record[ItemT, ValueT], Generic[ItemT, ValueT], frozen=True, kw_only=True):
    """One line of a stage's journal. `key` is made of the stage's key and the item's hash.

    The order of the fields is the order on the line: readers find `key`, `stage`, `user` and `id`
    without decoding the rest.
    """

    calls: tuple[CallRecord, ...] = ()
    judged: tuple[Judged, ...] | msgspec.UnsetType = msgspec.UNSET


class JudgedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Of a line in a journal whose item it is and what judges decided, and nothing else."""

    user: str
    id: str
    judged: tuple[Judged, ...] = ()


def record_type(item: Any, value: Any) -> Any:
    """The type that the lines of a stage's journal decode to, from its types of item and value."""
    return Record[item, value]


class Records(Protocol[ItemT_co, ValueT_co]):
    """The current records of one stage, read as a stream.

    Iterating gives them grouped by user, users in the order of a stable hash and a user's records
    in the order of their ids: the same order whatever the concurrency was.
    """

    def __iter__(self) -> Iterator[Record[Any, Any]]: ...

    def __len__(self) -> int: ...

    def values(self) -> Iterator[tuple[ItemT_co, ValueT_co]]:
        """Item and value of every record that has one."""
        ...

    def with_items(self, kind: type[Any]) -> Records[Any, ValueT_co]:
        """The same records with their items read as a type that has only some of the fields.

        What is left out is not decoded: scores of long items cost a fraction so.
        """
        ...

    def by_user(self) -> Iterator[tuple[str, list[Record[Any, Any]]]]:
        """Each user with that user's records."""
        ...


class Score(msgspec.Struct, Generic[DetailsT], frozen=True, kw_only=True):
    """One scored unit, a sample or a user: a number for each metric, or why there is none.

    `worst` is what the unit counts in the second column where that is neither its value nor the
    metric's worst: a part of it failed. `counts` are what happened on the way, summed up in the
    summary. `details` are what scores over several runs and analyses are made from, of the type
    that the benchmark names. `slices` name the parts of the data that the unit belongs to, such as
    its domain or the length of its history; they change no number. For example:

        Score(id="7", user="ann", values={"recall": 0.5}, slices={"history": "6-20"})
    """

    id: str
    user: str
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    worst: dict[str, float] = {}
    counts: dict[str, int] = {}
    details: DetailsT | None = None
    slices: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
