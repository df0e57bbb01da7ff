"""How stages and runs end: what costs one item, what ends the run, and what is kept."""

import asyncio

import msgspec
import pytest
from builders.stages import outcomes, say, word, words
from builders.stages import say_stage as stage

from harness.base.errors import BudgetSpent, Interrupted, ModelError, PluginError, UsageError
from harness.contracts.outcomes import Broken, Unreadable
from harness.contracts.records import Done
from harness.parsing import TextReader
from harness.runs.journal import recorded

SOON = 60


def asked(model):
    return [request.messages[0].content for request in model.asked]


async def test_waiting_for_something_that_was_cancelled_costs_that_item_only(house, scripted):
    async def wait_in_vain(item, desk):
        if item.word == "b":
            inner = asyncio.ensure_future(asyncio.sleep(60))
            inner.cancel()
            await inner
        return item.word

    stages = [stage(words("a", "b", "c"), wait_in_vain)]
    records = await asyncio.wait_for(house.run(stages, {"candidate": scripted("m")}), SOON)
    got = outcomes(records["say"])
    assert (got["a"], got["c"]) == (Done("a"), Done("c"))
    assert isinstance(got["b"], Broken) and got["b"].cause == "CancelledError"
    assert "wait_in_vain" in got["b"].detail


async def test_items_that_cannot_be_made_end_the_run_and_take_nothing_back(house, scripted):
    model = scripted("m")
    await house.run([stage(words("a", "b", "c"))], {"candidate": model})

    def stumbling(upstreams, data, options):
        yield word("a")
        raise LookupError("the shelf is gone")

    with pytest.raises(PluginError, match="stage 'say' cannot make its items") as caught:
        await asyncio.wait_for(house.run([stage(stumbling)], {"candidate": model}), SOON)
    told = str(caught.value)
    assert "task t, benchmark toy" in told
    assert "stumbling" in told and "LookupError: the shelf is gone" in told
    assert house.ended == []
    (context,) = house.contexts([stage(words())], {"candidate": model})[2]
    assert len(recorded(house.journal(1, "say"), context.key)) == 3
    records = await house.run([stage(words("a", "b", "c"))], {"candidate": model})
    assert len(records["say"]) == len(model.asked) == 3


class Rating(msgspec.Struct, frozen=True):
    stars: int


async def test_a_value_of_another_type_than_the_stage_declares_costs_its_item(house, scripted):
    values = {"a": Rating(3), "b": Rating("three"), "c": "***", "d": None}

    async def rate(item, desk):
        return values[item.word]

    rating = stage(words(*values), rate, "rate", roles=(), value=Rating)
    got = outcomes((await house.run([rating], {}))["rate"])
    assert got["a"] == Done(Rating(3))
    assert [got[name].cause for name in "bcd"] == ["wrong_type"] * 3
    assert house.progress["rate"].failures == {"wrong_type": 3}
    assert "stage 'rate' returned a Rating, which does not fit its declared value" in (
        got["b"].detail
    )
    assert "Expected `int`, got `str` - at `$.stars`" in got["b"].detail
    # The same command works on these items again: the code may be corrected by now.
    values.update(b=Rating(1), c=Rating(2), d=Rating(3))
    got = outcomes((await house.run([rating], {}))["rate"])
    assert got == {name: Done(value) for name, value in values.items()}


async def test_a_value_that_no_json_holds_is_not_told_as_one_of_another_type(house, scripted):
    async def measure(item, desk):
        return float("nan")

    measuring = stage(words("a"), measure, "measure", roles=(), value=float)
    (record,) = (await house.run([measuring], {}))["measure"]
    assert record.outcome.cause == "unwritable_value"


HALF = "half of an emoji: \ud83d"


@pytest.mark.parametrize("store", [True, False], ids=["stored", "not stored"])
async def test_a_reply_that_no_file_can_hold_never_ends_the_run(house, scripted, store):
    model = scripted(
        "m", lambda request: HALF if request.messages[0].content == "say b" else "fine"
    )
    records = await asyncio.wait_for(
        house.run([stage(words("a", "b", "c"))], {"candidate": model}, store=store), SOON
    )
    got = outcomes(records["say"])
    assert got["a"] == got["c"] == Done("fine")
    assert isinstance(got["b"], Broken)


@pytest.mark.parametrize(
    ("raised", "kind", "told"),
    [
        (OSError("no such device"), ModelError, "OSError: no such device"),
        (UsageError("the environment holds no KEY"), UsageError, "the environment holds no KEY"),
    ],
    ids=["OSError", "UsageError"],
)
async def test_a_model_that_cannot_be_opened_ends_the_run(house, scripted, raised, kind, told):
    class Shut(scripted):
        async def open(self):
            await super().open()
            await asyncio.sleep(0.01)
            raise raised

    model = Shut("m")
    with pytest.raises(kind, match=told):
        await asyncio.wait_for(house.run([stage(words(*"abcdef"))], {"candidate": model}), SOON)
    assert model.events == ["open m"]
    assert model.asked == []
    assert house.journal(1, "say").read_bytes() == b""
    assert house.ended == []


async def test_slow_items_never_hold_back_a_stage_that_is_ready_later(house, scripted):
    all_were_asked, slow_ones = asyncio.Event(), asyncio.Barrier(4)

    def answer(request):
        if request.messages[0].content == "say b2":
            all_were_asked.set()
        return "fine"

    async def wait(item, desk):
        await slow_ones.wait()
        await all_were_asked.wait()
        return "late"

    async def follow(item, desk):
        await slow_ones.wait()
        await asyncio.sleep(0.05)  # the workers without an item have gone by now
        return "ready"

    stages = [
        stage(words("a1", "a2", "a3"), wait, "slow"),
        stage(words("x"), follow, "before", roles=()),
        stage(words("b1", "b2"), name="ready", after=("before",)),
    ]
    model = scripted("m", answer, concurrency=4)
    records = await asyncio.wait_for(house.run(stages, {"candidate": model}), SOON)
    assert [len(records[name]) for name in ("slow", "before", "ready")] == [3, 1, 2]
    assert house.ended.index("before") < house.ended.index("slow")


async def test_stopping_keeps_what_an_item_asked_at_once_and_was_paid_for(house, scripted):
    in_flight, answers = [], asyncio.Event()

    class Slow(scripted):
        async def ask(self, request):
            in_flight.append(request)
            if len(in_flight) == 2:
                asyncio.get_running_loop().call_soon(stop)
            await answers.wait()
            return await super().ask(request)

    def stop():
        house.executor.stop(Interrupted("enough"))
        # The third question, which waits for a place, is refused before these two are answered.
        asyncio.get_running_loop().call_later(0.05, answers.set)

    async def ask_three(item, desk):
        told = [desk.ask("candidate", "say", {"word": each}, read=TextReader()) for each in "xyz"]
        return str(len(await asyncio.gather(*told)))

    stages = [stage(words("a"), ask_three)]
    with pytest.raises(Interrupted):
        model = Slow("m", concurrency=2)
        await asyncio.wait_for(house.run(stages, {"candidate": model}), SOON)
    assert sorted(asked(model)) == ["say x", "say y"]
    assert house.journal(1, "say").read_bytes() == b""

    again = scripted("m")
    records = await house.run(stages, {"candidate": again})
    assert asked(again) == ["say z"]
    assert outcomes(records["say"]) == {"a": Done("3")}


async def test_calls_in_flight_finish_when_an_item_finds_the_budget_spent(house, scripted):
    in_flight, spent = asyncio.Event(), asyncio.Event()

    class Slow(scripted):
        async def ask(self, request):
            in_flight.set()
            await spent.wait()
            await asyncio.sleep(0.05)
            return await super().ask(request)

    async def work(item, desk):
        if item.word == "b":
            await in_flight.wait()
            spent.set()
            raise BudgetSpent("nothing is left")
        return await say(item, desk)

    stages = [stage(words("a", "b"), work)]
    with pytest.raises(BudgetSpent):
        await asyncio.wait_for(house.run(stages, {"candidate": Slow("m")}), SOON)
    (kept,) = house.journal(1, "say").read_bytes().splitlines()
    assert msgspec.json.decode(kept)["item"] == {"user": "a", "id": "a", "word": "a"}


async def test_retrying_failures_asks_past_the_store_where_the_answer_was_unreadable(
    house, scripted
):
    replies = iter(["   ", "fine"])
    model = scripted("m", lambda request: next(replies))
    records = await house.run([stage(words("a"))], {"candidate": model})
    (record,) = records["say"]
    assert isinstance(record.outcome, Unreadable)
    records = await house.run([stage(words("a"))], {"candidate": model}, retry_failures=True)
    assert outcomes(records["say"]) == {"a": Done("fine")}


async def test_a_reader_that_raises_leaves_the_call_in_the_record(house, scripted):
    class Stumbling:
        schema = None

        def __call__(self, text):
            raise ZeroDivisionError("no such part")

    async def read_badly(item, desk):
        return await desk.ask("candidate", "say", {"word": item.word}, read=Stumbling())

    model = scripted("m", lambda request: "the answer")
    (record,) = (await house.run([stage(words("a"), read_badly)], {"candidate": model}))["say"]
    assert isinstance(record.outcome, Broken) and record.outcome.cause == "ZeroDivisionError"
    (call,) = record.calls
    assert (call.text, call.messages[0].content) == ("the answer", "say a")
    assert call.failure == Unreadable("reader_failed", "ZeroDivisionError('no such part')")
