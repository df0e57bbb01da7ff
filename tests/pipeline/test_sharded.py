"""Runs whose stages are worked in shards: the same results, whatever becomes of the workers."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections import Counter

import msgspec
import pytest
from builders.hosted import Here, Hosted
from builders.processes import wait_until
from builders.toys import KeepingDisplay, Runs, asked, current_lines, outcomes, toys_installed

from harness.base.errors import ModelError
from harness.pipeline import run as run_module
from harness.pipeline.executors import lanes, sharded, shards
from harness.pipeline.executors.shard_worker import ShardWorker
from harness.pipeline.executors.shards import Collector
from harness.testing import FaultyServer, faults

WORDS = [f"w{number % 7} {number}" for number in range(40)]
MODELS = ("candidate", "referee")
PRICES = {f"openai:{model}": {"input": 1.0, "output": 2.0} for model in MODELS}


def echo(body):
    return body["messages"][-1]["content"].partition(" ")[2]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    with toys_installed(tmp_path_factory.mktemp("site")) as package:
        yield package


class Sharded(Runs):
    """Runs with workers in this process, of which `machines` are those of the last run."""

    machines: Here

    def settings(self, executor, **options):
        return msgspec.structs.replace(super().settings(executor, **options), executor=executor)

    def sharded(self, *, workers=2, **options):
        self.machines = Here(workers)
        return self.run("here", **options)

    def finished(self, **options):
        """A sharded run that came to its end."""
        done = self.sharded(**options)
        assert done.status == "done", done.errors
        return done


@pytest.fixture
def runs(tmp_path, package, monkeypatch):
    runs = Sharded(tmp_path, package, "")
    monkeypatch.setattr(
        run_module,
        "machines_of",
        lambda settings, plugins: runs.machines if settings.executor == "here" else None,
    )
    monkeypatch.setattr(sharded, "NEWS_SECONDS", 0.02)
    return runs


@pytest.fixture
def server(runs):
    with FaultyServer(echo, models=MODELS) as server:
        runs.url = server.url
        yield server


def scores_of(done):
    return (done.folder / "toys" / "scores.jsonl").read_bytes()


def said(words):
    return {f"{number:03}": word for number, word in enumerate(words)}


@pytest.fixture(scope="module")
def whole(package, tmp_path_factory):
    """The scores of a run by one process, which another server answered."""
    with FaultyServer(echo, models=MODELS) as server:
        runs = Runs(tmp_path_factory.mktemp("whole"), package, "", server.url)
        runs.words(*WORDS)
        return scores_of(runs.run("local"))


def questions(server):
    return Counter(asked(server))


@pytest.mark.parametrize("workers", [1, 3])
def test_scores_are_those_of_a_local_run_and_nothing_but_journals_is_left(
    runs, server, whole, workers
):
    runs.words(*WORDS)
    done = runs.finished(workers=workers)
    assert scores_of(done) == whole
    found = questions(server)
    assert {text: found[text] for text in found if text.startswith("say")} == {
        f"say {word}": 1 for word in WORDS
    }
    assert all(found[f"judge w{number}"] <= workers for number in range(7))
    assert sorted(path.name for path in (done.folder / "toys").iterdir()) == [
        "1-say.jsonl", "2-judge.jsonl", "scores.jsonl", "summary.json",
    ]  # fmt: skip
    assert runs.stages == ["say begins", "say ends", "judge begins", "judge ends"]
    usage = json.loads((done.folder / "manifest.json").read_text())["sessions"][-1]["usage"]
    assert usage["toys/say, candidate"]["calls"] == usage["toys/say, candidate"]["asked"] == 40


def test_the_command_takes_answers_and_memos_into_its_own_store(runs, server, monkeypatch):
    """Workers have a store of their own machine, or none."""
    runs.words(*WORDS)
    monkeypatch.setattr(ShardWorker, "_open_store", lambda self, path: None)
    first = runs.finished(workers=1)
    count = server.count
    again = runs.run("local", fresh=False, output_path=runs.folder / "again")
    assert again.status == "done" and server.count == count
    before, after = (current_lines(one.folder, "judge") for one in (first, again))
    assert {line["id"]: line["outcome"]["value"] for line in after} == {
        line["id"]: line["outcome"]["value"] for line in before
    }


@pytest.mark.parametrize("lives_on", [False, True])
def test_what_a_worker_that_dies_has_recorded_is_not_asked_again(runs, server, whole, lives_on):
    """One that is only cut off asks on, and records beside the one that took its place."""
    runs.words(*WORDS)
    moments = {9: 0, 21: 1, 33: 0}

    def strike(request):
        if request.number in moments:
            runs.machines.workers[moments[request.number]].kill(lives_on=lives_on)

    server.faults = strike
    server.latency = 0.02
    done = runs.finished(concurrency=2)
    assert scores_of(done) == whole
    assert outcomes(current_lines(done.folder, "say")) == said(WORDS)
    died = [line for line in runs.problems if line.startswith("worker 1 died on ")]
    assert any(", and was started again on " in line for line in died)
    again = sum(questions(server).values()) - len(WORDS) - 2 * 7
    assert lives_on or again <= 3 * 2 * 2  # what was in flight at each of the deaths
    lines = (done.folder / "toys" / "1-say.jsonl").read_text().splitlines()
    assert len(lines) == len(WORDS)  # the first record of a key counts


def test_an_item_whose_worker_dies_between_its_questions_asks_none_again(runs, server):
    words = [f"twice {number}" for number in range(4)]
    runs.words(*words)
    silent = True

    def second(request):
        text = request.body["messages"][-1]["content"]
        return faults.SILENCE if silent and text.startswith("say twice") else None

    def kill():
        nonlocal silent
        wait_until(lambda: runs.kept() == 4)
        silent = False
        runs.machines.workers[0].kill()

    def strike(request):
        if request.number == 7:
            threading.Thread(target=kill).start()
        return second(request)

    server.faults = strike
    done = runs.finished(workers=1, use_store=False)
    found = questions(server)
    assert [found[f"say first {word}"] for word in words] == [1] * 4
    lines = current_lines(done.folder, "say")
    assert {line["calls"][0].get("source", "model") for line in lines} == {"model"}


def killing(runs, *texts):
    """Kills the only worker whenever one of these is asked."""

    def strike(request):
        if request.body["messages"][-1]["content"] in texts:
            runs.machines.workers[0].kill()
            return faults.SILENCE
        return None

    return strike


def test_an_item_that_ends_its_worker_is_found_and_recorded_broken(runs, server):
    runs.words(*WORDS)
    server.faults = killing(runs, "say w5 12")
    done = runs.finished(workers=1, max_failures={"errors": 0.1})
    expected = said(WORDS) | {"012": "worker_died"}
    assert outcomes(current_lines(done.folder, "say")) == expected
    found = questions(server)
    assert found["say w5 12"] == 4  # thrice with others, once alone
    assert any("one by one" in line for line in runs.problems)
    # The same command would work it again, as code that broke.
    server.faults = ()
    again = runs.sharded(resume=done.folder)
    assert outcomes(current_lines(again.folder, "say")) == said(WORDS)


def test_after_deaths_only_what_was_at_work_at_each_of_them_is_worked_alone(
    runs, server, monkeypatch
):
    monkeypatch.setattr(lanes, "READY", 0)
    monkeypatch.setattr(shards, "PER_WORKER", 2)  # the worker has all items in hand
    words = [f"w {number}" for number in range(60)]
    runs.words(*words)
    held, side_by_side = [], []

    def strike(request):
        text = request.body["messages"][-1]["content"]
        if request.number in (10, 20, 30):
            runs.machines.workers[0].kill()
        if text in held[:1] or not held:
            held.append(text)
            return faults.SILENCE if len(held) < 4 else None
        if len(held) == 4:
            side_by_side.append(server.in_flight)
        return None

    server.faults = strike
    server.latency = 0.02
    done = runs.finished(workers=1, concurrency=4)
    assert outcomes(current_lines(done.folder, "say")) == said(words)
    assert len(held) == 4 and side_by_side[0] == 1 and max(side_by_side) == 4


def test_two_items_that_end_their_workers_end_the_run(runs, server):
    runs.words("a 1", "a 2", "a 3")
    server.faults = killing(runs, "say a 1", "say a 3")
    done = runs.sharded(workers=1, max_failures={"errors": 1.0})
    assert (done.status, done.exit_code) == ("failed", 1)
    assert "several items each end the worker that works them" in str(done.errors[0])


@pytest.mark.parametrize("bound", [1, 17, 40])
def test_a_budget_of_calls_is_used_up_and_never_passed(runs, server, bound):
    runs.words(*WORDS)
    begun = runs.sharded(max_calls=bound)
    assert begun.status == "failed" and "the budget of calls is spent" in str(begun.errors[0])
    assert server.count + server.asked_if_thinking == bound
    done = runs.sharded()
    assert (done.status, done.folder) == ("done", begun.folder), done.errors
    found = questions(server)
    assert all(found[f"say {word}"] == 1 for word in WORDS)


def test_what_a_dead_worker_had_of_the_budget_counts_as_spent(runs, server):
    runs.words(*WORDS)
    server.latency = 0.02

    def strike(request):
        if request.number == 6:
            runs.machines.workers[0].kill()

    server.faults = strike
    begun = runs.sharded(max_calls=30, concurrency=2)
    assert begun.status == "failed"
    assert "of which workers held that died: they count as spent" in str(begun.errors[0])
    assert 6 < server.count + server.asked_if_thinking < 30


def test_money_is_never_passed(runs, server):
    runs.words(*WORDS)
    begun = runs.sharded(max_cost=0.0006, prices=PRICES)
    assert begun.status == "failed" and "the budget of money is spent" in str(begun.errors[0])
    session = json.loads((begun.folder / "manifest.json").read_text())["sessions"][-1]
    spent = sum(cost["paid"] for cost in session["costs"].values())
    assert 0 < spent <= 0.0006


def test_failures_on_all_workers_are_compared_with_the_limits(runs, server):
    runs.words(*(f"w {number}" for number in range(400)))
    refused = faults.status(400)
    server.faults = lambda request: msgspec.structs.replace(
        refused, delay=1.0 if request.number > 99 else 0.01
    )
    done = runs.sharded(concurrency=4, max_failures={"calls": 0.05})
    assert (done.status, done.exit_code) == ("too_many_failures", 3)
    assert 20 < server.count < 400  # long before the last item, by more than a minute
    assert runs.stages == ["say begins", "say ends"]


@pytest.mark.parametrize("then", ["local", "here"])
def test_what_a_killed_command_left_is_taken_over(runs, server, whole, then):
    """A copy of the folder as it was at a moment is what a kill leaves."""
    runs.words(*WORDS)
    copied, taken = runs.folder / "left", threading.Event()

    def copy():  # on the event loop, where all that writes is
        [place] = runs.place.iterdir()
        shutil.copytree(place, copied / place.name)
        recorded.extend(
            line
            for path in copied.rglob("*.jsonl")
            for line in path.read_text().splitlines()
            if "outcome" in line
        )
        taken.set()

    def strike(request):
        if request.number == 20:
            runs.machines.workers[0]._loop.call_soon_threadsafe(copy)
            taken.wait()

    recorded: list[str] = []
    server.faults = strike
    server.latency = 0.05
    runs.sharded(concurrency=2, store=runs.folder / "lost.sqlite")
    texts = {f"say {json.loads(line)['item']['word']}" for line in recorded}
    assert len(texts) >= 8
    server.faults, server.latency = (), 0.0
    before = len(server.asked)
    more = {"output_path": copied, "store": runs.folder / "new.sqlite"}
    done = runs.sharded(**more) if then == "here" else runs.run("local", **more)
    assert done.status == "done" and done.folder.parent == copied, done.errors
    assert scores_of(done) == whole
    assert not texts & set(asked(server)[before:])
    assert not [*copied.rglob("*.shards")]


def test_news_that_come_as_their_shard_is_collected_are_old(runs, server, monkeypatch):
    runs.words(*WORDS)
    call, collect = Hosted.call, Collector.collect

    async def late(self, method, *given):
        found = await call(self, method, *given)
        await asyncio.sleep(0.1 if method == "news" else 0)
        return found

    async def slow(self, *given):
        await asyncio.sleep(0.3)
        return await collect(self, *given)

    monkeypatch.setattr(Hosted, "call", late)
    monkeypatch.setattr(Collector, "collect", slow)
    server.latency = 0.02
    runs.finished(concurrency=2)


class Gone:
    """A worker whose machine is gone, and which has no room on another one."""

    def __getattr__(self, name):
        return lambda *given: asyncio.Event().wait()


@pytest.mark.parametrize("comes", [True, False])
def test_a_worker_that_has_not_begun_is_told_of_and_one_that_never_does(
    runs, server, whole, monkeypatch, comes
):
    monkeypatch.setattr(sharded, "ROOM_SECONDS", 0.01)
    runs.words(*WORDS)
    ready, ninth, begun = ShardWorker.ready, threading.Event(), threading.Event()

    async def late(self):
        if self._seat == 1:
            await (asyncio.to_thread(ninth.wait, 60) if comes else asyncio.Event().wait())
        found = await ready(self)
        begun.set() if self._seat == 1 else None
        return found

    def strike(request):
        if request.number == 9:
            ninth.set()
            assert not comes or begun.wait(60)  # a server that stands still

    monkeypatch.setattr(ShardWorker, "ready", late)
    server.faults = strike
    done = runs.sharded(concurrency=2)
    assert done.status == "done" and scores_of(done) == whole, done.errors
    missed, *never = runs.problems
    assert "workers have not begun: they start slowly, or wait for room" in missed
    assert never == ([] if comes else ["1 of 2 workers never began: the others did their work"])
    assert any(line.startswith("worker 2 has begun: ") for line in runs.lines) is comes


def test_an_error_ends_a_run_though_a_worker_never_comes_back(runs, server, monkeypatch):
    monkeypatch.setattr(sharded, "ENDING_SECONDS", 0.5)
    runs.words(*WORDS)

    def strike(request):
        if request.number == 6:
            runs.machines.workers[0]._make = Gone
            runs.machines.workers[0].kill()
        return faults.status(401) if request.number > 12 else None

    server.faults = strike
    server.latency = 0.02
    done = runs.sharded(concurrency=2)
    assert done.status == "failed" and "the model cannot be used" in str(done.errors[0])
    assert any("did not end by themselves" in line for line in runs.problems)
    assert len(current_lines(done.folder, "say")) >= 6


def test_a_worker_that_dies_as_the_run_is_stopped_asks_no_more(runs, server, monkeypatch):
    """It is called for its shards again, in a process that nobody told to stop."""
    runs.words(*(f"w {number}" for number in range(200)))
    stop, asked_before = ShardWorker.stop, []

    async def dies(self, error, at_once):
        if self._begun and self._queues and not asked_before:
            asked_before.append(server.count)
            next(one for one in runs.machines.workers if one.object is self).kill()
        await stop(self, error, at_once)

    monkeypatch.setattr(ShardWorker, "stop", dies)
    server.faults = lambda request: faults.status(401) if request.number == 20 else None
    server.latency = 0.05
    done = runs.sharded(concurrency=2)
    assert done.status == "failed"
    assert server.count <= asked_before[0] + 6


@pytest.mark.parametrize("bound", [40, 42, 44])
def test_answers_of_items_that_a_spent_share_left_are_not_asked_for_again(runs, server, bound):
    runs.words(*(f"w {n}" if n % 5 < 3 else f"twice {n}" for n in range(30)))
    begun = runs.sharded(max_calls=bound, use_store=False)
    assert "the budget of calls is spent" in str(begun.errors[0])
    assert server.count + server.asked_if_thinking == bound
    assert set(questions(server).values()) == {1}


def test_a_shard_that_ends_leaves_another_what_both_have_read(runs, server, monkeypatch):
    runs.words(*(f"twice {n}" for n in range(16)))
    begun = runs.sharded(workers=1, max_calls=16 + 2, use_store=False)
    first = set(questions(server))
    assert len(first) >= 14
    monkeypatch.setattr(lanes, "READY", 0)  # small shards, whose items wait for each other
    done = runs.sharded(workers=1, concurrency=1, use_store=False)
    assert (done.status, done.folder) == ("done", begun.folder), done.errors
    assert {questions(server)[text] for text in first} == {1}


def test_a_call_that_comes_again_to_a_process_that_lives_joins_the_first(runs, server, monkeypatch):
    """A connection that breaks looks like a death."""
    runs.words(*WORDS)
    call, first = Hosted.call, []

    async def again(self, method, *given):
        if method == "work" and not first:
            first.append(asyncio.ensure_future(call(self, method, *given)))
            await asyncio.sleep(0.1)
        return await call(self, method, *given)

    monkeypatch.setattr(Hosted, "call", again)
    server.latency = 0.05
    runs.finished(concurrency=2, use_store=False, max_calls=200)
    found = questions(server)
    assert [found[f"say {word}"] for word in WORDS] == [1] * len(WORDS)


def test_answers_of_an_attempt_without_a_record_outlive_the_command(runs, server, monkeypatch):
    """Its file of records is there though it is empty: attempts are counted by these files."""
    runs.words(*(f"twice {n}" for n in range(8)))
    collect, copied = Collector.collect, runs.folder / "left"

    async def killed_before(self, *given):
        if not copied.exists():
            shutil.copytree(runs.place, copied)
        return await collect(self, *given)

    monkeypatch.setattr(Collector, "collect", killed_before)
    runs.sharded(workers=1, max_calls=8 + 2, use_store=False)
    assert len(asked(server)) == 8
    done = runs.run("local", output_path=copied, use_store=False)
    assert done.status == "done" and done.folder.parent == copied, done.errors
    found = questions(server)
    assert {found[text] for text in found if text.startswith("say")} == {1}


def test_workers_hear_once_of_a_stage_that_is_given_up_and_again_in_a_new_process(
    runs, server, monkeypatch
):
    runs.words(*(f"w {number}" for number in range(2000)))
    give_up, told, given = ShardWorker.give_up, [], []

    async def dies(self, task, stage):
        told.append(server.count)
        if len(told) == 1:
            next(one for one in runs.machines.workers if one.object is self).kill()
        await give_up(self, task, stage)
        given.extend([await queue.next_text() for queue in self._queues])

    monkeypatch.setattr(ShardWorker, "give_up", dies)
    server.faults = faults.where("say", faults.status(400))
    server.latency = 0.01
    done = runs.sharded(concurrency=4, max_failures={"calls": 0.01})
    assert done.status == "too_many_failures"
    assert server.count <= told[0] + 3 * 36  # what was begun
    assert len(told) < 20
    assert given and not any(given)


def test_a_dear_question_that_was_answered_does_not_count_against_cheap_ones(
    runs, server, monkeypatch
):
    monkeypatch.setattr(lanes, "READY", 0)
    words = [f"{100 * 'a '} {n}" for n in range(15)]
    runs.words(*words[:2], f"dear {3000 * 'x'}", *words[2:])  # soon
    runs.finished(max_cost=0.0075, prices=PRICES, workers=1, concurrency=1)


def test_a_worker_that_dies_as_it_is_closed_fails_no_run(runs, server, monkeypatch):
    runs.words(*WORDS)
    call = Hosted.call

    async def unreachable(self, method, *given):
        if method == "close":
            raise ModelError("a worker cannot be reached any more")
        return await call(self, method, *given)

    monkeypatch.setattr(Hosted, "call", unreachable)
    assert runs.sharded().status == "done"


@pytest.mark.parametrize("where", ["_prepare", "_begin"])
def test_a_crash_of_a_worker_is_told_with_its_node_and_trace(runs, server, monkeypatch, where):
    def crashes(*given):
        raise OSError(5, "the disk is gone")

    runs.words(*WORDS)
    monkeypatch.setattr(ShardWorker, where, crashes)
    done = runs.sharded()
    assert (done.status, done.exit_code) == ("failed", 1)
    assert str(done.errors[0]).startswith("node ") and "the disk is gone" in str(done.errors[0])


@pytest.mark.parametrize("seconds", [0.02, 30.0])
def test_progress_counts_each_item_and_failure_once_whatever_dies(
    runs, server, monkeypatch, seconds
):
    """Whether anything was heard of an attempt before its worker died, or nothing."""
    monkeypatch.setattr(sharded, "NEWS_SECONDS", seconds)
    ended = {}
    monkeypatch.setattr(
        KeepingDisplay, "stage_ended", lambda self, one: ended.setdefault(one.stage, one)
    )
    runs.words(*(f"w {number}" for number in range(60)))
    moments = {22: 0, 26: 1, 50: 0}

    def strike(request):
        if request.number in moments:
            runs.machines.workers[moments[request.number]].kill()
        return faults.status(400) if request.number < 20 else None

    server.faults = strike
    server.latency = 0.05
    done = runs.sharded(concurrency=2, max_failures={"calls": 1.0}, use_store=False)
    failed = [line for line in current_lines(done.folder, "say") if "value" not in line["outcome"]]
    assert (done.status, ended["say"].done) == ("done", 60), done.errors
    assert ended["say"].failures.total() == len(failed) > 9
