"""What the workers of a run share: budgets, concurrency, equal questions and memos."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from builders.clusters import living_workers
from builders.toys import asked, current_lines

from harness.runs.journal_parts import journal_parts
from harness.testing import faults

WORDS = [f"w{number % 7} {number}" for number in range(40)]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_exactly_as_many_calls_are_sent_as_the_budget_has(runs, serve, workers):
    """Attempts that fail count too, and each session has a budget of its own."""
    busy = faults.status(503, headers={"retry-after": "0"})
    server = serve(faults=lambda one: busy if one.number % 5 == 4 else None, latency=0.005)
    runs.words(*WORDS)
    for so_far in (23, 46) if workers == 2 else (23,):
        done = runs.run("ray", workers=workers, max_calls=23)
        assert done.status == "failed" and "23 calls used" in str(done.errors[0])
        assert server.count + server.asked_if_thinking == so_far
    assert runs.run("local").status == "done"
    # No item was paid for twice, and no question that items share.
    assert sum(server.answered.values()) == 40 + 7


@pytest.mark.parametrize(("concurrency", "workers"), [(8, 4), (4, 3)])
def test_workers_share_the_concurrency(runs, serve, concurrency, workers):
    server = serve(latency=0.2)
    runs.words(*(f"w {number}" for number in range(10 * concurrency)))
    done = runs.run("ray", workers=workers, concurrency=concurrency)
    assert done.status == "done"
    assert concurrency / 2 <= server.most_in_flight <= concurrency


def test_equal_questions_are_asked_once_by_all_workers(runs, serve):
    """Without a store: the questions of all workers are there at once."""

    def wait_for_all(asked):
        while asked.number == 0 and len(living_workers()) < 4:
            time.sleep(0.05)

    server = serve(faults=wait_for_all, latency=2.0)
    runs.words(*WORDS)
    done = runs.run("ray", workers=4, store=None, use_store=False)
    assert done.status == "done"
    counted = Counter(asked(server))
    judged = {one: counted[one] for one in counted if one.startswith("judge")}
    assert judged == {f"judge w{number}": 1 for number in range(7)}
    assert len(counted) == 40 + 7
    calls = [line["calls"][0] for line in current_lines(done.folder, "judge")]
    assert len(calls) == 40
    # One of those who asked paid, and only one.
    assert sum(call.get("source", "model") == "model" for call in calls) == 7


def test_items_that_a_slow_worker_has_not_begun_are_worked_by_another(runs, serve):
    """One worker waits until all items are done that it has not begun: 1 + 32 of 300."""

    def go(asked):
        if asked.number == 300 - 33 - 1:
            (runs.package / "go").touch()

    server = serve(faults=go)
    runs.words(*(f"w {number}" for number in range(300)))
    (runs.package / "slow").touch()
    try:
        done = runs.run("ray", workers=2, concurrency=2)
    finally:
        (runs.package / "go").unlink(missing_ok=True)
    assert done.status == "done", done.errors
    assert sorted(asked(server)) == sorted(["judge w", *(f"say w {n}" for n in range(300))])
    parts = journal_parts(done.folder / "toys" / "1-say.jsonl")
    assert sorted(len(part.read_text().splitlines()) for part in parts)[-2:] == [33, 267]
    assert len(current_lines(done.folder, "say")) == 300


def test_each_worker_gets_its_share_of_a_small_stage(runs, serve):
    """The first worker that is ready has room for all items, and leaves half of them."""
    serve(latency=2.0)  # so that both workers are ready before one alone has done everything
    runs.words(*WORDS[:16])
    done = runs.run("ray", workers=2, concurrency=100)
    assert done.status == "done"
    parts = [path.read_bytes() for path in done.folder.glob("*/?-say.*.jsonl")]
    assert len([part for part in parts if part]) == 2
