"""Items on their way to the work: what JSON would change is refused, and a stop is looked at."""

import asyncio
from typing import Any

import msgspec
import pytest
from builders.stages import Word, say

from harness.base.errors import Interrupted, PluginError
from harness.base.hashing import struct_texts
from harness.contracts.stage import Item, Stage
from harness.pipeline.item_queue import record_key

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
    item = Bag(
        id="b", user="u", anything=[1, {"x": None}], numbers=(1, 2), some=frozenset({3}),
        data=b"raw", parts=(Part(4),),
    )  # fmt: skip
    (record,) = (await house.run([stage(Bag, item)], {}))["say"]
    assert record.item == item
    assert record.outcome.value == repr(item)


async def test_a_mapping_comes_to_the_work_in_its_own_order(house):
    choices = {"B": "tea", "A": "coffee"}  # shuffled, as a question's choices are
    (record,) = (await house.run([stage(Bag, Bag(id="b", user="u", anything=choices))], {}))["say"]
    assert repr(choices) in record.outcome.value


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
