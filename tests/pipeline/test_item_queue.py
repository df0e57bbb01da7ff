import asyncio
import random
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders.disks import room_for
from builders.runs import make_summary, make_task
from builders.stages import Word, say

from harness.base.errors import Interrupted, PluginError, StorageError
from harness.base.hashing import stable_int, struct_texts
from harness.contracts.outcomes import Broken, CallFailed, Unreadable, tag_of
from harness.contracts.stage import Item, Stage
from harness.pipeline import item_queue
from harness.pipeline.item_queue import FailureWatch, ItemFile, limits_of, record_key
from harness.pipeline.run import nothing_read
from harness.pipeline.settings import FailureLimits
from harness.scoring.summary import RoleUse, StageSummary

SOON = 60


class Longer(Word, frozen=True, kw_only=True):
    more: str = ""


class Part(msgspec.Struct, frozen=True):
    n: int


class Bag(Item, frozen=True, kw_only=True):
    anything: Any = None
    numbers: tuple[int, ...] = ()
    some: frozenset[int] = frozenset()
    data: bytes = b""
    parts: tuple[Part, ...] = ()


async def tell(item, desk):
    return repr(item)


def stage(kind, *items, work=tell, name="say", **more):
    def made(upstreams, data, options):
        yield from items

    return Stage(name, item=kind, value=str, items=made, work=work, **more)


def deep():
    value = []
    for _ in range(5_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("kind", "item", "where", "found"),
    [
        (Word, Word(id="w", user="u", word=None), "item 'w'", "got `null` - at `$.word`"),
        (Word, Word(id=7, user="u"), "item 7", "got `int` - at `$.id`"),
        (Word, Word(id="w", user=7), "item 'w'", "got `int` - at `$.user`"),
        (Word, None, "item None", "got `null`"),
        (Word, Longer(id="w", user="u", more="x"), "item 'w'", "Longer is decoded as Word"),
        (Bag, Bag(id="b", user="u", anything=(1, 2)), "item 'b'",
         "`$.anything`: (1, 2) is decoded as [1, 2]"),
        (Bag, Bag(id="b", user="u", anything=Part(3)), "item 'b'",
         "`$.anything`: Part(n=3) is decoded as {'n': 3}"),
        (Bag, Bag(id="b", user="u", anything=b"raw"), "item 'b'",
         "`$.anything`: b'raw' is decoded as 'cmF3'"),
        (Bag, Bag(id="b", user="u", numbers=[1]), "item 'b'",
         "`$.numbers`: [1] is decoded as (1,)"),
        (Bag, Bag(id="b", user="u", anything=deep()), "item 'b'", "recursion"),
    ],
    ids=["none", "id", "user", "no item", "subclass", "tuple", "struct", "bytes", "list", "deep"],
)  # fmt: skip
async def test_an_item_that_json_would_change_is_told_with_its_field(
    house, kind, item, where, found
):
    with pytest.raises(PluginError, match="an item of stage 'say' cannot be stored") as caught:
        await asyncio.wait_for(house.run([stage(kind, item)], {}), SOON)
    assert caught.value.where == f"task t, {where}"
    assert found in caught.value.found
    assert house.ended == []


async def test_an_item_of_declared_types_comes_to_the_work_as_it_was(house):
    choices = {"B": "tea", "A": "coffee"}  # shuffled, as a question's choices are
    item = Bag(
        id="b", user="u", anything=[1, choices], numbers=(1, 2), some=frozenset({3}),
        data=b"raw", parts=(Part(4),),
    )  # fmt: skip
    (record,) = (await house.run([stage(Bag, item)], {}))["say"]
    assert record.item == item
    assert record.outcome.value == repr(item)


def test_the_order_of_a_set_does_not_enter_the_key():
    one, other = frozenset([0, 8]), frozenset([8, 0])
    assert (list(one), list(other)) == ([0, 8], [8, 0])
    keys = {
        record_key("0" * 32, struct_texts(Bag(id="b", user="u", some=some))[1])
        for some in (one, other)
    }
    assert len(keys) == 1


@pytest.mark.parametrize("at_once", [False, True], ids=["gentle", "at once"])
async def test_a_stop_while_items_are_made_is_heard_and_loses_nothing(house, scripted, at_once):
    made, go_on, quick = [], asyncio.Event(), asyncio.Event()

    class Slow(scripted):
        async def ask(self, request):
            if request.messages[0].content == "say slow":
                await go_on.wait()
            return await super().ask(request)

    async def say_and_tell(item, desk):
        said = await say(item, desk)
        if item.word == "quick":
            quick.set()
        return said

    async def last_but_slow(item, desk):
        await quick.wait()
        for _ in range(10):  # who answered "quick" looks for another item
            await asyncio.sleep(0)
        return "x"

    def many(upstreams, data, options):
        for number in range(200):
            if number == 3:
                house.executor.stop(Interrupted("enough"), at_once=at_once)
                go_on.set()
            made.append(number)
            yield Word(id=str(number), user="u")

    two = (Word(id=name, user="u", word=name) for name in ("slow", "quick"))
    stages = [
        stage(Word, *two, work=say_and_tell, roles=("candidate",)),
        stage(Word, Word(id="x", user="u"), work=last_but_slow, name="before"),
        Stage("many", item=Word, value=str, items=many, work=tell, after=("before",)),
        Stage("last", item=Word, value=str, items=many, work=tell, after=("before",)),
    ]
    with pytest.raises(Interrupted):
        await asyncio.wait_for(house.run(stages, {"candidate": Slow("m")}), SOON)
    assert made == [0, 1, 2, 3]
    assert house.ended == (["before"] if at_once else ["before", "say"])
    assert not house.journal(3, "many").exists()


def watch(total, failures, **limits):
    watched = FailureWatch(run="r-1", limits=FailureLimits(**limits), total=total)
    for failure in failures:
        watched.failed(tag_of(failure), failure.cause)
    return watched


LATE, UNREAD = CallFailed("timeout"), Unreadable("no_json")


@pytest.mark.parametrize(
    ("total", "failures", "limits", "too_many"),
    [
        (1, [LATE], {"calls": 0.0}, False),  # one bad item never is
        (20, [LATE] * 2, {"calls": 0.1}, False),  # the limit itself is allowed
        (20, [LATE] * 3, {"calls": 0.1}, True),
        # Families are counted apart.
        (
            20, [LATE] * 2 + [UNREAD] * 2 + [Broken("KeyError")],
            {"calls": 0.1, "parsing": 0.1, "errors": 0.0}, False,
        ),
    ],
)  # fmt: skip
def test_more_failures_than_the_limit_are_too_many(total, failures, limits, too_many):
    assert watch(total, failures, **limits).too_many() is too_many


def test_a_stage_stops_early_only_with_many_failures_that_settle_it():
    assert not watch(100, [CallFailed("timeout")] * 19, calls=0.1).hopeless()
    assert watch(100, [CallFailed("timeout")] * 20, calls=0.1).hopeless()
    assert not watch(1000, [CallFailed("timeout")] * 100, calls=0.1).hopeless()


def test_the_error_names_causes_the_limit_and_what_to_do_about_the_most_frequent_cause():
    failures = [UNREAD] * 6 + [Unreadable("schema")]
    text = str(watch(10, failures, parsing=0.5).error("t/name"))
    assert "t/name: too many items failed" in text
    assert "7 of 10 by parsing (no_json 6, schema 1)" in text
    assert "at most 50% (--max_failures parsing=0.5)" in text
    assert "all records are kept; `harness show r-1 --failures` lists them; " in text
    assert text.endswith(
        "repeat the command with --retry_failures to ask again; a larger --max_failures accepts "
        "the failures"
    )

    def to_do(*failures):
        return watch(10, failures, parsing=0.0, calls=0.0, errors=0.0).error("t/name").hint or ""

    assert "repeat the command to ask these again; a" in to_do(LATE, LATE)
    rest = to_do(LATE, LATE, UNREAD)
    assert "repeat the command to ask these again, with --retry_failures the others too; a" in rest
    broken = to_do(Broken("PromptError"), Broken("PromptError"))
    assert "correct what raises PromptError, then repeat the command; a" in broken
    mostly = to_do(*[Unreadable("truncated")] * 6, UNREAD)
    assert "would be cut again at the same limit" in mostly
    assert "--retry_failures" not in mostly


def test_a_stage_of_which_all_answers_were_cut_is_not_asked_again_at_the_same_limit():
    asked = RoleUse(
        calls=8, from_store=0, failed=8, prompt_tokens=8, completion_tokens=8, cached_tokens=0,
        reasoning_tokens=0, asked_schema=0, met_schema=0, rungs={},
    )  # fmt: skip
    stages = {
        name: StageSummary(items=8, done=0, failures=failures, roles=roles)
        for name, failures, roles in (
            ("cut", {"truncated": 8}, {"candidate": asked}),
            ("wrong", {"schema": 8}, {"candidate": asked}),
            ("silent", {"unread_check": 8}, {}),
        )
    }
    cut, wrong, silent = nothing_read(make_summary("t", stages=stages), "r-1")
    assert "would be cut again" in cut.hint and "--retry_failures" not in cut.hint
    assert wrong.hint.endswith("repeat the command with --retry_failures to ask again")
    # Nobody is asked in the third stage, so that its failures come from an earlier answer.
    assert silent.hint.endswith("repeat the command with another model in the role that answered")


def test_an_unreadable_answer_that_is_not_scored_counts_as_a_judge_s_and_the_first_is_shown():
    limits = FailureLimits(parsing=1.0, judging=0.2)
    candidate = FailureWatch(run="r-1", limits=limits, total=4)
    profiler = FailureWatch(run="r-1", limits=limits, total=4, scored=False)
    for watched in (candidate, profiler):
        watched.failed("unreadable", "empty", "Traceback …\nno text\n")
        watched.failed("unreadable", "empty", "another")
    assert not candidate.too_many()
    assert profiler.too_many()
    assert "2 of 4 by judging (empty 2); the first: no text" in str(profiler.error("t/profile"))


def test_the_command_goes_before_the_task_and_the_task_before_what_is_usual():
    lenient = make_task(max_failures={"parsing": 1.0, "judging": 0.9})
    found = limits_of(lenient, {"judging": 0.0})
    assert found == FailureLimits(calls=0.1, parsing=1.0, judging=0.0, errors=0.05)


STAGE = "0" * 64


def many_words(count: int) -> list[Word]:
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


@pytest.mark.parametrize("by_user", [False, True])
@pytest.mark.parametrize("count", [0, 1, 10, 2_000])
def test_items_come_in_order_from_many_runs_as_from_memory(little, tmp_path, count, by_user):
    items = many_words(count) if count >= 10 else [Word(id=f"w{n}", user="u") for n in range(count)]
    made = made_of(items, tmp_path, by_user=by_user)
    assert len(made) == count
    assert len(unnamed_files(tmp_path)) == (count == 2_000)
    taken = [(key.hex(), made.decode(text)) for key, text in made.take()]
    by_hash = sorted(items, key=lambda one: stable_int(one.user) >> 40) if by_user else items
    assert [word for _, word in taken] == by_hash
    found = [key for key, _ in taken]
    assert found == [record_key(STAGE, struct_texts(word)[1]) for word in by_hash]
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


async def test_all_ids_that_come_again_are_found_and_told_with_how_often(little, tmp_path, house):
    items = many_words(2_000)
    again = [Word(id=item.id, user="other") for item in items[:100]]
    made = made_of([*items, *again], tmp_path, by_user=False)
    assert made.repeated() == {hash(item.id) for item in again}
    made.close()
    again = Word(id="w3", user="other", word="another")
    with pytest.raises(PluginError, match="gives the same id to several items") as caught:
        await house.run([stage(Word, *many_words(2_000), again, Word(id="w5", user="u"))], {})
    assert caught.value.found == "'w3' 2 times"
    assert not unnamed_files(house.journal(1, "say").parent)


async def test_a_full_disk_is_told_with_its_folder_and_is_left(little, house):
    folder = house.journal(1, "say").parent
    short = [Word(id=f"w{number}", user="u") for number in range(2_000)]
    with room_for(100_000), pytest.raises(StorageError, match="cannot write") as caught:
        await house.run([stage(Word, *short)], {})
    assert caught.value.where == str(folder)
    assert "free some space" in str(caught.value)
    assert not unnamed_files(folder)
