"""Stages carried out for real: records, failures, resume, rounds, memos."""

import gc

import pytest
from builders.stages import Word, outcomes, words
from builders.stages import say_stage as stage

from harness.base.errors import HarnessError
from harness.contracts.model import CallError
from harness.contracts.outcomes import Broken, Parsed
from harness.contracts.records import Done, Record
from harness.parsing import JsonReader, TextReader
from harness.pipeline.executors import shard_worker
from harness.pipeline.executors.lanes import RARELY, rare_collection
from harness.pipeline.executors.shard_worker import RunKeys


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
        return item.word

    records = await house.run([stage(words("a", "b", "c"), stumble)], {"candidate": scripted("m")})
    got = outcomes(records["say"])
    assert got["a"] == Done("a") and got["c"] == Done("c")
    assert isinstance(got["b"], Broken) and got["b"].cause == "KeyError"
    assert "stumble" in got["b"].detail and "shelf" in got["b"].detail


async def test_failures_of_an_earlier_session_count_when_a_run_goes_on(house, scripted):
    def refuse(request):
        raise CallError("bad_request", "no")

    strict = {"calls": 0.5}
    few = [stage(words("a", "b"))]
    await house.run(few, {"candidate": scripted("m", refuse)}, limits={"calls": 1.0})
    await house.run(few, {"candidate": scripted("m", refuse)}, limits=strict)
    assert house.progress["say"].failures == {"bad_request": 2}
    assert "2 of 2 by calls" in str(house.halted[0])


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
        [stage(many, dispute, roles=("candidate", "verifier"))],
        {"candidate": one, "verifier": two},
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


async def test_who_reads_a_cut_answer_all_the_same_learns_that_it_was_cut(house, scripted):
    async def read_what_is_there(item, desk):
        answer = await desk.ask(
            "candidate", "say", {"word": item.word}, read=TextReader(), truncated="read"
        )
        return f"{answer.value} {answer.truncated}"

    model = scripted("m", lambda request: "half")
    model.finish = "length"
    cut = await house.run([stage(words("a"), read_what_is_there)], {"candidate": model})
    model.finish = "stop"
    whole = await house.run([stage(words("b"), read_what_is_there)], {"candidate": model})
    assert outcomes(cut["say"])["a"] == Done("half True")
    assert outcomes(whole["say"])["b"] == Done("half False")


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
