"""Replies that are lost with their node, and the disk on which a node keeps its store."""

import asyncio
from types import SimpleNamespace

import pytest
from inline_snapshot import snapshot
from ray.exceptions import ActorDiedError, ObjectLostError

from harness.base.errors import UsageError
from harness.calls import network_fs
from harness.calls.owners import OwnerLost
from harness.pipeline.executors.ray import RayExecutor, _Served, _Worker
from harness.pipeline.executors.ray_worker import HarnessWorker, _on_local_disk
from harness.pipeline.executors.shards import Shard
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
        await worker._heard("2.1", raises(error))

    with pytest.raises(OwnerLost):
        asyncio.run(ask())


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
