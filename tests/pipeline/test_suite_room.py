"""Which runs of a suite have room on a cluster side by side."""

import asyncio
from types import SimpleNamespace

import pytest

from harness.base.errors import Interrupted
from harness.pipeline.executors import shared_workers
from harness.pipeline.executors.cluster import Node
from harness.pipeline.executors.shared_workers import SharedWorkers, SuiteRoom
from harness.pipeline.settings import RunSettings


def engine(gpus):
    return SimpleNamespace(
        occupies="gpu", limited=False, gpus=gpus, identity=SimpleNamespace(label=f"on {gpus} GPUs")
    )


class Served:
    concurrency = 64
    limited = False
    occupies = None
    identity = SimpleNamespace(label="served")


SERVER = Served()


def sized(models, monkeypatch, *, workers=None):
    """By name of the models with room at the same time, of those that ask in this order, the
    number of workers and the GPUs of each."""
    there = [
        Node(id=name, name=name, address="", cpus=4, gpus=4, gpus_free=0) for name in ("a", "b")
    ]
    monkeypatch.setattr(shared_workers, "nodes", lambda: there)
    settings = RunSettings(tasks=(), model="", workers=workers)

    async def asked():
        suite, granted = SuiteRoom(), {}
        for name, model in models.items():
            shared = SharedWorkers(suite=suite, among=len(models))
            room = asyncio.create_task(shared.room([model], settings, lambda text: None))
            await asyncio.sleep(0.001)
            if room.done():
                granted[name] = room.result()
            room.cancel()
        return granted

    return asyncio.run(asked())


@pytest.mark.parametrize(
    ("gpus", "there"),
    [
        ([4], {"0": (2, 4)}),
        ([2, 2], {"0": (2, 2), "1": (2, 2)}),
        ([1, 1, 1], {"0": (2, 1), "1": (2, 1), "2": (2, 1)}),
        ([4, 4, 4], {"0": (1, 4), "1": (1, 4)}),
        ([4, 2, 2, 1], {"0": (1, 4), "1": (1, 2), "2": (1, 2)}),
        ([0, 0, 0], {"0": (1, 0), "1": (1, 0)}),
    ],
)
def test_engines_share_the_gpus_of_the_cluster(monkeypatch, gpus, there):
    """GPUs that others use now may be free soon: Ray has a worker wait for them."""
    models = {str(number): engine(each) for number, each in enumerate(gpus)}
    assert sized(models, monkeypatch) == there


def test_models_of_servers_share_the_processors_and_no_gpu(monkeypatch):
    models = {"gpus": engine(4), "one": SERVER, "two": SERVER, "three": SERVER}
    assert sized(models, monkeypatch, workers=4) == {"gpus": (1, 4), "one": (4, 0), "two": (4, 0)}


def test_a_run_that_waits_hears_that_others_leave_or_that_the_suite_is_stopped():
    async def waits():
        suite, lines = SuiteRoom(), []
        first, second, third = (SharedWorkers(suite=suite, gpus=1, share=1) for _ in range(3))
        await suite.take(first, lines.append)
        waiting = [asyncio.create_task(suite.take(one, lines.append)) for one in (second, third)]
        await asyncio.sleep(0)
        assert [task.done() for task in waiting] == [False, False] and len(lines) == 2
        await first.close()
        await asyncio.sleep(0.001)
        assert suite.taken == [second] and not waiting[1].done()
        suite.stop(Interrupted("interrupted"))
        with pytest.raises(Interrupted):
            await waiting[1]

    asyncio.run(waits())
