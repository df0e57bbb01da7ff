import asyncio
import gc

import msgspec
import pytest
from builders.stages import Word, outcomes, say, word, words
from builders.stages import say_stage as stage

from harness.base.errors import (
    BudgetSpent,
    HarnessError,
    Interrupted,
    PluginError,
    UsageError,
)
from harness.contracts.model import CallError
from harness.contracts.outcomes import Broken, Parsed, Unreadable
from harness.contracts.records import Done, Record
from harness.parsing import JsonReader, TextReader
from harness.pipeline.executors import shard_worker
from harness.pipeline.executors.lanes import RARELY, rare_collection
from harness.pipeline.executors.shard_worker import RunKeys
from harness.runs.journal import recorded

SOON = 60


async def test_every_item_has_one_record_and_the_next_stage_sees_its_values(house, scripted):
    model, seen = scripted("m", lambda request: request.messages[-1].content.upper()), []

    def longer(upstreams, data, options):
        seen.extend(upstreams["say"])
        for item, value in upstreams["say"].values():
            yield Word(id=item.id, user=item.user, word=f"{value}!")

    async def shout(item, desk):
        return item.word * 2

    stages = [
        stage(words("a", "b", "c")),
        stage(longer, work=shout, name="shout", roles=(), after=("say",)),
    ]
    records = await house.run(stages, {"candidate": model})
    assert outcomes(records["shout"]) == {
        "a": Done("SAY A!SAY A!"), "b": Done("SAY B!SAY B!"), "c": Done("SAY C!SAY C!"),
    }  # fmt: skip
    assert [call.text for record in records["say"] for call in record.calls]
    # Later stages do not see how earlier ones were asked.
    assert {type(one) for one in seen} == {Record} and not hasattr(seen[0], "calls")
    assert model.events == ["open m", "close m"]


async def test_a_worker_that_raises_costs_its_item_only_and_leaves_its_traceback(house, scripted):
    async def stumble(item, desk):
        if item.id == "b":
            raise KeyError("shelf")
        if item.id == "d":  # what it waits for was cancelled
            inner = asyncio.ensure_future(asyncio.sleep(60))
            inner.cancel()
            await inner
        return item.word

    run = house.run([stage(words("a", "b", "c", "d"), stumble)], {"candidate": scripted("m")})
    got = outcomes((await asyncio.wait_for(run, SOON))["say"])
    assert got["a"] == Done("a") and got["c"] == Done("c")
    for name, cause in ("b", "KeyError"), ("d", "CancelledError"):
        assert isinstance(got[name], Broken) and got[name].cause == cause
        assert "stumble" in got[name].detail
    assert "shelf" in got["b"].detail


async def test_what_ended_without_an_answer_leaves_the_counts_and_is_asked_once_a_session(
    house, scripted
):
    lost = "abcdef"

    def sometimes(request):
        word = request.messages[0].content[-1]
        if word == "a":
            raise CallError("bad_request", "no")
        if word in lost:
            raise CallError("server_error", "HTTP 500")
        return "fine"

    model = scripted("m", sometimes)
    ten = [stage(words(*"abcdefghij"))]
    limits = {"calls": 0.2}
    await house.run(ten, {"candidate": model}, limits=limits)
    assert "6 of 10 by calls" in str(house.halted[0])
    asked = len(model.asked)
    lost = "b"
    await house.run(ten, {"candidate": model}, limits=limits, ask_unanswered=True)
    assert not house.halted
    assert house.progress["say"].failures == {"bad_request": 1, "server_error": 1}
    again = sorted(request.messages[0].content for request in model.asked[asked:])
    assert again == [f"say {word}" for word in "bcdef"]


async def test_records_of_items_that_are_gone_are_taken_back(house, scripted):
    model = scripted("m")
    await house.run([stage(words("a", "b"))], {"candidate": model})
    records = await house.run([stage(words("b"))], {"candidate": model})
    assert set(outcomes(records["say"])) == {"b"}


async def test_a_stage_that_asks_two_engines_of_one_gpu_goes_in_rounds(house, scripted):
    house.prompts = {"say.candidate": "say {{ word }}", "say.verifier": "check {{ word }}"}
    events = []
    one = scripted("one", occupies="gpu", events=events)
    two = scripted("two", occupies="gpu", events=events)

    async def dispute(item, desk):
        for turn in range(3):
            variables = {"word": f"{item.word}{turn}"}
            await desk.ask("candidate", "say", variables, read=TextReader())
            await desk.ask("verifier", "say", variables, read=TextReader())
        return "settled"

    many = words(*(f"w{number}" for number in range(50)))
    records = await house.run(
        [stage(many, dispute, roles=("candidate", "verifier"))], {"candidate": one, "verifier": two}
    )
    assert len(records["say"]) == 50
    # Three rounds of each for all fifty items together, though a model takes four at once.
    assert [event for event in events if event.startswith("open")] == ["open one", "open two"] * 3
    assert len(one.asked) == len(two.asked) == 150


async def test_each_try_is_a_repeat_of_its_own_and_unreadable_ones_are_kept(house, scripted):
    replies = iter(["nonsense", "still nonsense", '{"word": "yes"}'])

    async def insist(item, desk):
        answer = await desk.ask(
            "candidate", "say", {"word": item.word}, read=JsonReader(kind="object"), tries=3
        )
        return answer.value if isinstance(answer, Parsed) else answer

    model = scripted("m", lambda request: next(replies))
    records = await house.run([stage(words("a"), insist, value=dict)], {"candidate": model})
    (record,) = records["say"]
    assert record.outcome == Done({"word": "yes"})
    assert [call.repeat for call in record.calls] == [0, 1, 2]
    assert [call.failure is None for call in record.calls] == [False, False, True]
    assert len({request.seed for request in model.asked}) == 3


async def test_chance_is_the_items_own(house, scripted):
    async def draw(item, desk):
        return str(desk.random.random())

    one = await house.run([stage(words("a", "b"), draw)], {"candidate": scripted("m")})
    first = outcomes(one["say"])
    house.journal(1, "say").unlink()
    two = await house.run([stage(words("b", "a", "c"), draw)], {"candidate": scripted("m")})
    second = outcomes(two["say"])
    assert first["a"] == second["a"] and first["b"] == second["b"]
    assert first["a"] != first["b"]


def asked(model):
    return [request.messages[0].content for request in model.asked]


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


async def test_a_model_that_cannot_be_opened_ends_the_run(house, scripted):
    class Shut(scripted):
        async def open(self):
            await super().open()
            await asyncio.sleep(0.01)
            raise UsageError("the environment holds no KEY")

    model = Shut("m")
    with pytest.raises(UsageError, match="holds no KEY"):
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


@pytest.fixture
def threshold():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(("before", "during"), [(700, RARELY), (50_000, 50_000), (0, 0)])
def test_only_more_frequent_looks_are_made_rare_until_the_last_of_the_runs_ends(
    threshold, before, during
):
    gc.set_threshold(before, 10, 10)
    first, second = rare_collection(), rare_collection()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() == (during, 10, 10)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (before, 10, 10)


async def test_a_worker_elsewhere_collects_as_rarely_as_a_run(threshold, monkeypatch):
    gc.set_threshold(700, 10, 10)

    def refused(order):
        raise HarnessError("an order that cannot be read")

    monkeypatch.setattr(shard_worker, "read_order", refused)
    _, error = await shard_worker.ShardWorker(b"", RunKeys(), 0).ready()
    assert "an order that cannot be read" in str(error)
    assert gc.get_threshold() == (RARELY, 10, 10)
