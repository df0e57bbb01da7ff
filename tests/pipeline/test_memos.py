"""Memos: what they know, and that the first write of a key holds, with a store and without."""

import pytest

from harness.calls.store import Store
from harness.pipeline.memos import DistantMemory, Entry, Memory


@pytest.fixture(params=["in a store", "in memory"])
def memory(request, tmp_path):
    if request.param == "in memory":
        yield Memory(None)
        return
    store = Store.open(tmp_path / "calls.sqlite")
    yield Memory(store)
    store.close()


def test_an_item_that_a_kill_left_without_a_record_does_not_know_what_it_wrote(tmp_path):
    shared, own = Store.open(tmp_path / "calls.sqlite"), Store.open(tmp_path / "answers.sqlite")
    Memory(shared)("names", "another run").keep({"tea": "2"})
    memory = Memory(shared, own)
    item = memory("names", "first item")
    assert item.known(["rye", "tea"]) == {"tea": "2"}
    assert item.keep({"rye": "1", "tea": "9"}) == {"rye": "1", "tea": "2"}

    assert memory("names", "first item").known(["rye", "tea"]) == {"tea": "2"}
    assert memory("names", "first item").keep({"rye": "7"}) == {"rye": "1"}
    assert memory("names", "second item").known(["rye", "tea"]) == {"rye": "1", "tea": "2"}
    assert memory("names", "first item, again").known(["rye"]) == {"rye": "1"}
    shared.close()
    own.close()


def test_without_a_shared_store_memos_are_kept_in_the_file_of_the_run(tmp_path):
    for expected in ({}, {"rye": "1"}):
        own = Store.open(tmp_path / "answers.sqlite")
        memo = Memory(None, own)("names", f"item {len(expected)}")
        assert memo.known(["rye"]) == expected
        assert memo.keep({"rye": "1"}) == {"rye": "1"}
        own.close()


class Workers:
    """Two workers that ask one memory; `asked` is what came to it."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.asked: list[tuple[str, ...]] = []
        self.one = DistantMemory(entries=self.entries, keep=self.keep)
        self.two = DistantMemory(entries=self.entries, keep=self.keep)

    def entries(self, name: str, keys: list[str]) -> dict[str, Entry]:
        self.asked.append(("entries", *keys))
        return self.memory.entries(name, keys)

    def keep(self, name: str, asker: str, values: dict[str, str]) -> dict[str, Entry]:
        self.asked.append(("keep", asker, *values))
        return self.memory.keep(name, asker, values)


def test_the_first_write_holds_on_all_workers_and_is_asked_for_once(memory):
    workers = Workers(memory)
    one, two = workers.one("names", "a"), workers.two("names", "b")
    assert one.keep({"rye": "1", "tea": "2"}) == {"rye": "1", "tea": "2"}
    assert two.keep({"tea": "9", "oats": "3"}) == {"tea": "2", "oats": "3"}
    assert workers.one("names", "c").known(["tea", "oats", "none"]) == {"tea": "2", "oats": "3"}
    assert workers.one("names", "d").known(["oats", "tea"]) == {"oats": "3", "tea": "2"}
    assert workers.one("names", "d").keep({"oats": "9"}) == {"oats": "3"}
    assert two.keep({}) == two.known([]) == {}
    assert workers.one("others", "c").known(["tea"]) == {}
    assert workers.asked == [
        ("keep", "a", "rye", "tea"), ("keep", "b", "tea", "oats"), ("entries", "oats", "none"),
        ("entries", "tea"),
    ]  # fmt: skip
    assert memory("names", "e").known(["rye", "tea", "oats"]) == {
        "rye": "1", "tea": "2", "oats": "3",
    }  # fmt: skip


def test_an_item_without_a_record_does_not_know_what_it_wrote_on_any_worker(tmp_path):
    shared, own = Store.open(tmp_path / "calls.sqlite"), Store.open(tmp_path / "answers.sqlite")
    Memory(shared)("names", "another run").keep({"tea": "2"})
    workers = Workers(Memory(shared, own))
    first = workers.one("names", "first item")
    assert first.known(["rye", "tea"]) == {"tea": "2"}
    assert first.keep({"rye": "1", "tea": "9"}) == {"rye": "1", "tea": "2"}
    assert workers.one("names", "second item").known(["rye"]) == {"rye": "1"}

    later = Workers(Memory(shared, own))
    for worker in (workers.one, workers.two, later.one):
        # Also where another item was told the value before.
        assert worker("names", "second item").known(["rye", "tea"]) == {"rye": "1", "tea": "2"}
        assert worker("names", "first item").known(["rye", "tea"]) == {"tea": "2"}
        assert worker("names", "first item").keep({"rye": "7"}) == {"rye": "1"}
    shared.close()
    own.close()
