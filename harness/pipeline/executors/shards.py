"""What passes between the driver of a run and its workers on a cluster: shards, and what came of
them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from harness.base.errors import HarnessError
from harness.contracts.model import Reply
from harness.pipeline.item_queue import JobText

LARGEST = 256
"""The most items of a shard: few enough that failures are soon compared with their limits."""

PER_WORKER = 4
"""Shards that a stage has for each worker at least, if it has the items, so that none idles."""

PIECE = 1 << 16
"""Bytes that Ray sends within a call: above 100 KB, it puts them into its store of objects, which
costs driver, node and worker more than all the rest of the call."""


class Shard(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Items of one stage for one worker, which records them in part `part` of the journal.

    `begun`: an earlier session, or a worker that died, may have begun some, so that answers are
    there. `replies` are the answers, by key, in earlier records of items that are worked again.
    """

    task: str
    stage: str
    part: int
    rounds: bool
    begun: bool
    items: tuple[JobText, ...]
    replies: dict[str, Reply] = {}


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Shard).decode


def packed(shard: Shard) -> list[bytes]:
    """A shard as bytes, which Ray passes on as they are: its own way takes ten times as long."""
    return in_pieces(_encode(shard))


def in_pieces(whole: bytes) -> list[bytes]:
    """The bytes as arguments of a call."""
    return [whole[start : start + PIECE] for start in range(0, len(whole), PIECE)]


def unpacked(pieces: Iterable[bytes]) -> Shard:
    """The shard whose bytes these are."""
    return _decode(b"".join(pieces))


COUNTED = (
    "done", "calls", "calls_from_store", "prompt_tokens", "completion_tokens", "unreported",
)  # fmt: skip
"""The counters of a stage's progress that workers count."""


class Counts(msgspec.Struct, kw_only=True, array_like=True):
    """What a worker counted in a stage since it counted last: the fields of `StageProgress`, and
    each failure as kind, cause and detail."""

    done: int = 0
    calls: int = 0
    calls_from_store: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unreported: int = 0
    failures: list[tuple[str, str, str]] = []


class ShardDone(NamedTuple):
    """What a worker counted by the time that it has room for another shard.

    With an `error`, which ends the run, items may have no record.
    """

    counts: Counts
    error: HarnessError | None = None


class News(NamedTuple):
    """What a worker reports from time to time: what its calls used, its limiters' history, its
    lines for the user, each with whether it is a problem, and the number of its open engines."""

    usage: dict[str, Any]
    limits: dict[str, Any]
    lines: tuple[tuple[str, bool], ...]
    engines: int


def shard_size(items: int, workers: int, *, width: int, rounds: bool) -> int:
    """The items of a shard, of so many items in all and workers that work `width` at once.

    A worker says that a shard is done after about two answers' time: often enough for the user, and
    so rarely that what Ray takes for a call is little for each item. A stage in rounds opens
    engines by turns, so each worker gets its items at once.

    >>> [shard_size(items, 2, width=40, rounds=False) for items in (20, 100_000)]
    [3, 80]
    """
    if rounds:
        return -(-items // workers)
    return min(LARGEST, 2 * width, -(-items // (workers * PER_WORKER)) or 1)


def fair_share(outstanding: int, workers: int) -> int:
    """The items that a worker may have in hand of a stage with so many that are not done.

    Without it, the first worker that is ready would take all items of a small stage. It is never
    none: a worker that has nothing in hand finds out that a stage has no items left.

    >>> fair_share(12, 2), fair_share(3, 2), fair_share(0, 2)
    (6, 2, 1)
    """
    return max(1, -(-outstanding // workers))
