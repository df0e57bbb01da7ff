"""Replies that are lost with their node, and the disk on which a node keeps its store."""

import asyncio
import time
from types import SimpleNamespace

import pytest
from inline_snapshot import snapshot
from ray.exceptions import ActorDiedError, ObjectLostError

from harness.base.errors import UsageError
from harness.calls import network_fs
from harness.calls.owners import OwnerLost
from harness.calls.usage import UsageBook
from harness.pipeline.executors import ray as ray_executor
from harness.pipeline.executors.ray import RayExecutor, _Served, _Worker, news_of
from harness.pipeline.executors.ray_worker import HarnessWorker, _on_local_disk
from harness.pipeline.executors.shards import News, Shard
from harness.pipeline.item_queue import JobText
from harness.pipeline.plan import State

LOST = [ActorDiedError(), ObjectLostError("00ff", None, "")]
"""What Ray raises for a reply of a node that died: the second if the reply was large."""


def raises(error):
    async def asked(*given):
        raise error

    return asked


@pytest.mark.parametrize("error", LOST)
def test_an_owner_whose_answer_is_lost_is_lost(error):
    async def ask():
        worker = HarnessWorker()
        worker._others = {"2.1": None}
        worker._own = SimpleNamespace(look=lambda: looks.append("2.1"))
        await worker._heard("2.1", raises(error))

    looks = []
    with pytest.raises(OwnerLost):
        asyncio.run(ask())
    assert looks == ["2.1"]


def test_a_worker_looks_for_what_others_were_answered_once_one_is_gone():
    async def know(*names):
        await worker.know(dict.fromkeys(names))
        return list(looks)

    worker = HarnessWorker()
    looks = []
    worker._others = {"1.1": None}
    worker._own = SimpleNamespace(look=lambda: looks.append("look"))
    worker._owners = SimpleNamespace(asked=False)
    assert asyncio.run(know("1.1", "2.1")) == []
    assert asyncio.run(know("2.1")) == ["look"]


async def given(value, after):
    await asyncio.sleep(after)
    return value


async def test_the_news_of_a_worker_are_waited_for_however_long_this_process_stands_still(
    monkeypatch,
):
    monkeypatch.setattr(ray_executor, "SILENT_SECONDS", 0.6)
    gives = SimpleNamespace(news=SimpleNamespace(remote=lambda: given("news", after=0.05)))
    waits = asyncio.create_task(news_of(gives))
    await asyncio.sleep(0)
    time.sleep(0.8)  # noqa: ASYNC251 - as a command that was stopped and continued
    assert await waits == "news"
    hangs = SimpleNamespace(news=SimpleNamespace(remote=lambda: given("news", after=60)))
    assert await news_of(hangs) is None


@pytest.mark.parametrize("end", [*LOST, TimeoutError(), None])
def test_a_worker_that_does_not_end_by_itself_is_shown(end):
    async def close():
        return await executor._close(_Worker(name="1.1", actor=SimpleNamespace(close=closes)))

    async def well(keep):
        return News({}, {}, (), 0), None

    lines, ended = [], []
    closes = SimpleNamespace(remote=well if end is None else raises(end))
    executor = RayExecutor(
        SimpleNamespace(plan=None),
        workers=SimpleNamespace(keeps=False, ended=lambda name, well: ended.append((name, well))),
        count=1,
        announce=lambda line, problem: lines.append(line),
        usage=UsageBook(),
        seen=SimpleNamespace(engines=0),
    )
    assert asyncio.run(close()) is None
    assert ended == [("1.1", end is None)]
    assert [line.partition(" did")[0] for line in lines] == ["worker 1.1"] * (end is not None)


@pytest.mark.parametrize("error", LOST)
def test_a_worker_whose_reply_is_lost_counts_as_dead_and_its_items_as_lost(error):
    class Run:
        task = "toys"
        state = State.RUNNING
        progress = SimpleNamespace(in_flight=1)

    run = Run()
    queue = SimpleNamespace(run=run, exhausted=False)
    served = _Served(queue=queue, rounds=False, earlier=None)
    worker = _Worker(name="1.1", actor=SimpleNamespace(work=SimpleNamespace(remote=raises(error))))
    worker.items[run] = 1
    item = JobText(key="k", item=b"{}", again=False, replaces="")
    shard = Shard(task="toys", stage="say", part=2, rounds=False, items=(item,), begun=False)

    async def hand():
        executor = RayExecutor(
            SimpleNamespace(plan=None), workers=None, count=1, announce=None, usage=None, seen=None
        )
        executor._served[run] = served
        await executor._hand(worker, served, shard)

    asyncio.run(hand())
    assert (worker.died, served.lost) == (error, True)
    assert (worker.items[run], run.progress.in_flight) == (0, 0)


def test_a_store_on_a_file_system_that_machines_share_is_refused(tmp_path, monkeypatch, raised):
    table = tmp_path / "mountinfo"
    monkeypatch.setattr(network_fs, "MOUNT_TABLE", table)
    store = tmp_path / "calls.sqlite"
    mounted = f"36 35 98:0 / {tmp_path} rw,noatime shared:1 - %s server:/home rw\n"
    table.write_text(mounted % "ext4")
    assert _on_local_disk(store, "n7 (5)") == store
    table.write_text(mounted % "nfs4")
    where = "node n7 (5), DIR/calls.sqlite"
    assert raised(
        UsageError, _on_local_disk, store, "n7 (5)", where=where, found="nfs4", DIR=tmp_path
    ) == snapshot("""\
the store of calls of a node cannot be on a file system that machines share
expected: a file on a disk of the node
to do: set HARNESS_CACHE on the nodes to a folder on a local disk, give --store, or --no_store\
""")
