from harness.calls.store import Store
from harness.pipeline.memos import CopiedMemory, Entry, Memory


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
        memo = Memory(own, own)("names", f"item {len(expected)}")
        assert memo.known(["rye"]) == expected
        assert memo.keep({"rye": "1"}) == {"rye": "1"}
        own.close()


def test_a_worker_elsewhere_has_a_copy_and_tells_what_is_new(store):
    memory, told = Memory(store), []
    memory("taxonomy:names", "before").keep({"tea": "2"})
    memory("another:names", "before").keep({"rye": "9"})
    found = {name: [*table] for name, table in memory.copy("taxonomy:").items()}
    assert found == {"taxonomy:names": ["tea"]}
    there = CopiedMemory(lambda *new: told.append(new))
    there.learn("names", {"tea": Entry("2", "a"), "oats": Entry("5")})
    assert there("names", "b").keep({"tea": "9", "rye": "1"}) == {"tea": "2", "rye": "1"}
    assert told == [("names", "b", {"rye": "1"})]
    there.learn("names", {"rye": Entry("7"), "corn": Entry("4")})  # the first write holds
    assert there("names", "c").known(["rye", "corn", "none"]) == {"rye": "1", "corn": "4"}
    # Who wrote a value and has no record does not know it, and asks again.
    assert there("names", "a").known(["tea", "oats"]) == {"oats": "5"}
    assert there("others", "c").known(["tea"]) == {}
