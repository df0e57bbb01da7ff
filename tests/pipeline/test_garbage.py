import gc

import pytest

from harness.base.errors import HarnessError
from harness.pipeline.executors import shard_worker
from harness.pipeline.executors.lanes import RARELY, rare_collection
from harness.pipeline.executors.shard_worker import RunKeys


@pytest.fixture
def threshold():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("before", "during"), [(700, RARELY), (50_000, 50_000), (0, 0)])
def test_only_more_frequent_looks_are_made_rare_and_only_for_a_while(threshold, before, during):
    gc.set_threshold(before, 10, 10)
    with rare_collection():
        assert gc.get_threshold() == (during, 10, 10)
    assert gc.get_threshold() == (before, 10, 10)


def test_of_overlapping_runs_the_last_one_restores_what_was_before(threshold):
    gc.set_threshold(700, 10, 10)
    first, second = rare_collection(), rare_collection()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() == (RARELY, 10, 10)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


async def test_a_worker_elsewhere_collects_as_rarely_as_a_run(threshold, monkeypatch):
    gc.set_threshold(700, 10, 10)

    def refused(order):
        raise HarnessError("an order that cannot be read")

    monkeypatch.setattr(shard_worker, "read_order", refused)
    _, error = await shard_worker.ShardWorker(b"", RunKeys(), 0).ready()
    assert "an order that cannot be read" in str(error)
    assert gc.get_threshold() == (RARELY, 10, 10)
