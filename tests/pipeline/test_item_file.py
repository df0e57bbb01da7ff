"""Items of a stage beyond what is held in memory: their order, their ids, and a full disk."""

import random
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from builders.disks import room_for
from builders.stages import Word

from harness.base.errors import PluginError, StorageError
from harness.base.hashing import stable_int, struct_texts
from harness.contracts.stage import Stage
from harness.pipeline import item_queue
from harness.pipeline.item_queue import ItemFile, record_key

STAGE = "0" * 64


def words(count: int) -> list[Word]:
    """Some with a word that is longer than what is read at a time."""
    chance = random.Random(7)
    return [
        Word(
            id=f"w{number}",
            user=f"u{chance.randrange(count // 10)}",
            word="grün\n" * chance.choice((0, 1, 3, 2_000)),
        )
        for number in range(count)
    ]


@pytest.fixture
def little(monkeypatch):
    """Little is held in memory, and read at a time."""
    monkeypatch.setattr(item_queue, "HELD", 50_000)
    monkeypatch.setattr(item_queue, "MANY", 20)
    monkeypatch.setattr(item_queue, "AT_ONCE", 1 << 7)


def made_of(items: list[Word], folder: Path, *, by_user: bool) -> ItemFile:
    made = ItemFile(folder, Word, by_user=by_user)
    for item in items:
        made.add(STAGE, item)
    made.seal()
    return made


def unnamed_files(folder: Path) -> list[str]:
    """The open files of this process in a folder that have no name in it."""
    links = []
    for file in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing itself
            links.append(str(file.readlink()))
    return [link for link in links if link.startswith(f"{folder}/") and link.endswith("(deleted)")]


def order(user: str) -> int:
    return stable_int(user) >> 40


@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize("count", [0, 1, 10, 2_000])
def test_items_come_in_order_from_many_runs_as_from_memory(little, tmp_path, count, by_user):
    items = words(count) if count >= 10 else [Word(id=f"w{n}", user="u") for n in range(count)]
    made = made_of(items, tmp_path, by_user=by_user)
    assert len(made) == count
    assert len(unnamed_files(tmp_path)) == (count == 2_000)
    taken = [(key.hex(), made.decode(text)) for key, text in made.take()]
    by_hash = sorted(items, key=lambda word: order(word.user)) if by_user else items
    assert [word for _, word in taken] == by_hash
    assert [key for key, _ in taken] == [
        record_key(STAGE, struct_texts(word)[1]) for word in by_hash
    ]
    assert [(key.hex(), made.decode(text)) for key, text in made.take()] == taken
    assert not made.repeated()
    assert not list(tmp_path.iterdir())
    made.close()
    assert not unnamed_files(tmp_path)


@pytest.mark.parametrize("by_user", [False, True])
def test_memory_does_not_grow_with_the_items(monkeypatch, tmp_path, by_user):
    monkeypatch.setattr(item_queue, "HELD", 1 << 16)
    monkeypatch.setattr(item_queue, "AT_ONCE", 1 << 11)

    def peak(count: int) -> int:
        tracemalloc.start()
        made = ItemFile(tmp_path, Word, by_user=by_user)
        for number in range(count):
            made.add(STAGE, Word(id=f"w{number}", user=f"u{number % 250}"))
        made.seal()
        assert not made.repeated()
        assert sum(1 for _ in made.take()) == count
        made.close()
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(10)  # what is made once
    few = peak(1_500)
    assert peak(7_500) < 1.15 * few


def test_all_ids_that_come_again_in_another_run_are_found(little, tmp_path):
    items = words(2_000)
    again = [Word(id=item.id, user="other") for item in items[:100]]
    made = made_of([*items, *again], tmp_path, by_user=False)
    assert made.repeated() == {hash(item.id) for item in again}
    made.close()


def stage(*items: Word) -> Stage:
    async def say(item, desk):
        return item.word

    def made(upstreams, data, options):
        yield from items

    return Stage("say", item=Word, value=str, items=made, work=say)


async def test_an_id_that_comes_again_is_told_with_how_often(little, house):
    again = Word(id="w3", user="other", word="another")
    with pytest.raises(PluginError, match="gives the same id to several items") as caught:
        await house.run([stage(*words(2_000), again, Word(id="w5", user="u"))], {})
    assert caught.value.found == "'w3' 2 times"
    assert not unnamed_files(house.journal(1, "say").parent)


async def test_a_full_disk_is_told_with_its_folder_and_is_left(little, house):
    folder = house.journal(1, "say").parent
    short = [Word(id=f"w{number}", user="u") for number in range(2_000)]
    with room_for(100_000), pytest.raises(StorageError, match="cannot write") as caught:
        await house.run([stage(*short)], {})
    assert caught.value.where == str(folder)
    assert "free some space" in str(caught.value)
    assert not unnamed_files(folder)
