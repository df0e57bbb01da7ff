"""Rates and the time left, worked out by hand."""

import pytest

from harness.calls.pricing import Price, Spend, cost_of
from harness.pipeline.progress import RunProgress, StageProgress
from harness.reporting import pace as module
from harness.reporting.pace import Pace, noted_progress, tokens_per_second
from harness.runs.progress_file import StageNote, read_progress


def looked_at(stage, *moments):
    pace = Pace([stage])
    for now, counters in moments:
        for name, value in counters.items():
            setattr(stage, name, value)
        pace.look(now)
    return pace


@pytest.mark.parametrize(
    ("counters", "left"),
    [
        # 80 items at 2 a second
        pytest.param({"done": 20, "calls": 20}, 40.0, id="calls asked"),
        # 90 items of 3 calls at 3 calls a second
        pytest.param({"done": 10, "calls": 30}, 90.0, id="several calls an item"),
        # 40 items at 1 a second
        pytest.param({"done": 60, "resumed": 50, "calls": 10}, 40.0, id="resumed items"),
        # 40 items at 1 asked call a second
        pytest.param(
            {"done": 60, "calls": 60, "calls_from_store": 50}, 40.0, id="answers from the store"
        ),
        # 50 items at 5 a second
        pytest.param({"done": 50}, 10.0, id="no calls"),
    ],
)
def test_the_time_left_follows_from_the_calls_asked_or_else_the_items(counters, left):
    stage = StageProgress(task="t", stage="s", total=100, started=0.0)
    assert looked_at(stage, (10.0, counters)).seconds_left() == left


def test_only_the_last_minute_counts():
    stage = StageProgress(task="t", stage="s", total=1000, started=0.0)
    pace = looked_at(
        stage,
        (60.0, {"done": 600, "calls": 600, "completion_tokens": 6000}),
        (120.0, {"done": 660, "calls": 660, "completion_tokens": 6300}),
    )
    assert pace.seconds_left() == 340.0  # 340 items at 1 a second
    assert pace.tokens_per_second() == 5.0


def test_nothing_is_said_before_anything_is_known():
    stage = StageProgress(task="t", stage="s", total=100)
    pace = looked_at(stage, (1.0, {}), (2.0, {"started": 2.0}))
    assert pace.seconds_left() is None
    assert pace.tokens_per_second() is None
    assert looked_at(stage, (5.0, {"done": 50, "resumed": 50})).seconds_left() is None
    stage = StageProgress(task="t", stage="s", completion_tokens=600, started=10.0, ended=40.0)
    assert tokens_per_second(stage) == 20.0
    assert tokens_per_second(StageProgress(task="t", stage="s")) is None


def test_a_round_that_arrives_bit_by_bit_counts_as_a_whole():
    stage = StageProgress(task="t", stage="s", total=31, started=0.0, in_flight=10)
    # An answer every ten seconds from 210 to 300 and from 510 to 600: the last 11 came in 310.
    ends = [*range(210, 310, 10), *range(510, 610, 10)]
    moments = [(float(end), {"done": n, "calls": n}) for n, end in enumerate(ends, 1)]
    assert looked_at(stage, *moments).seconds_left() == 310.0


def left(*stages, now=10.0):
    """The seconds left of several stages, and whether they are a lower bound."""
    pace = Pace(stages)
    pace.look(now)
    return pace.seconds_left(), pace.unsized()


def test_the_time_left_of_several_stages_follows_from_their_calls_together():
    started = {"total": 60, "started": 0.0}
    pairs = StageProgress(task="t", stage="pairs", done=10, calls=20, **started)
    single = StageProgress(task="t", stage="single", done=20, calls=20, **started)
    unworked = StageProgress(task="t", stage="unworked", **started)
    by_rule = StageProgress(task="t", stage="by_rule", done=59, **started)
    ended = StageProgress(task="t", stage="ended", done=10, calls=10, ended=5.0, **started)
    # 50 of two calls, 40 of one, 60 of the mean of 50 calls over 40 items: 215 at 5 a second.
    assert left(pairs, single, unworked, by_rule, ended) == (43.0, False)


def test_stages_of_unknown_size_make_the_time_left_a_bound():
    first = StageProgress(task="t", stage="a", total=20, done=10, calls=10, started=0.0)
    later = StageProgress(task="t", stage="b")
    assert left(first, later) == (10.0, True)
    first.done = first.calls = 20
    assert left(first, later) == (None, True)
    later.ended = 10.0  # given up
    assert left(first, later) == (0.0, False)


def test_a_run_notes_in_its_folder_what_it_works_at_until_it_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "NOTE_SECONDS", 0.01)
    at_work = StageProgress(task="t", stage="a", total=20, done=10, calls=10, started=0.0)
    at_work.failures["timeout"] = 2
    stages = [StageProgress(task="t", stage="b"), at_work]
    price = Price(input=1.0, output=1.0)
    cost = cost_of("m", price, "USD", paid=Spend(calls=1, prompt_tokens=2_000_000), saved=Spend())
    progress = RunProgress(
        folder=tmp_path, model="m", resumed=False, stages=stages, costs=lambda: {"a": cost}
    )
    with noted_progress(progress):
        while (note := read_progress(tmp_path)) is None:
            pass
    assert note.stages == (StageNote(task="t", stage="a", done=10, total=20, missing=2),)
    assert note.items_per_second * note.seconds_left == pytest.approx(10)
    assert (note.at_least, note.cost.paid) == (True, 2.0)
    assert not [*tmp_path.iterdir()]
