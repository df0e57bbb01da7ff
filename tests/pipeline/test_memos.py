"""Memos: what they know, and that the first write of a key holds, with a store and without."""

import pytest

from harness.calls.store import Store
from harness.pipeline.memos import Memory


@pytest.fixture(params=["in a store", "in memory"])
def memory(request, tmp_path):
    if request.param == "in memory":
        yield Memory(None)
        return
    store = Store.open(tmp_path / "calls.sqlite")
    yield Memory(store)
    store.close()


def test_the_first_write_of_a_key_holds_and_is_given_back(memory):
    memo = memory("names")
    assert memo.keep({"rye": "1", "tea": "2"}) == {"rye": "1", "tea": "2"}
    assert memo.keep({"tea": "9", "oats": "3"}) == {"tea": "2", "oats": "3"}
    assert memo.known(["oats", "tea", "none"]) == {"oats": "3", "tea": "2"}
    assert memo.keep({}) == memo.known([]) == {}


def test_memos_of_other_names_know_nothing_of_each_other(memory):
    memory("names").keep({"rye": "1"})
    assert memory("others").known(["rye"]) == {}
    assert memory("names").known(["rye"]) == {"rye": "1"}
