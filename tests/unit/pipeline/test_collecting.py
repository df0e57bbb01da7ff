import gc

import pytest

from harness.pipeline.collecting import RARELY, rare_collection


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
