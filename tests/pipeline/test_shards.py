"""Items on their way to a worker of a cluster."""

from types import SimpleNamespace

import msgspec
import pytest

from harness.contracts.stage import Item
from harness.pipeline.executors.shards import Shard, packed, unpacked
from harness.pipeline.item_queue import JobText


class Word(Item, frozen=True, kw_only=True):
    word: str = ""


def shard(*names: str) -> Shard:
    texts = [msgspec.json.encode(Word(id=name, user="u", word="grün")) for name in names]
    items = [
        JobText(key=f"{place:032x}", item=text, again=False, replaces="")
        for place, text in enumerate(texts)
    ]
    return Shard(task="t", stage="s", part=7, rounds=False, begun=False, items=tuple(items))


def test_a_large_shard_is_sent_in_pieces_that_fit_into_a_call():
    large = shard(*(f"{place:0100}" for place in range(1000)))
    pieces = packed(large)
    assert max(map(len, pieces)) < 100 * 1024
    assert unpacked(pieces) == large


async def test_a_slow_item_does_not_hold_up_the_next_shard():
    """One answer may take a minute; the other places of an engine must not wait for it."""
    worker = pytest.importorskip("harness.pipeline.executors.ray_worker")
    queue = worker.ShardQueue(
        run=SimpleNamespace(), writer=None, decode_item=msgspec.json.Decoder(Word).decode,
        decode_value=None,
    )  # fmt: skip
    first, second = queue.add(shard("slow", "b")), queue.add(shard("c", "d"))
    jobs = [await queue.next() for _ in range(4)]
    assert [job.item.id for job in jobs] == ["slow", "b", "c", "d"]
    assert await queue.next() is None
    for _ in jobs[1:3]:
        queue.worked()
    assert first.is_set() and not second.is_set()
    queue.worked()
    assert not second.is_set()  # as the slow item is not done
    queue.worked()
    assert second.is_set()
