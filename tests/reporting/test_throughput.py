"""Rates and the time left, worked out by hand."""

import pytest

from harness.pipeline.progress import StageProgress
from harness.reporting.throughput import Pace, tokens_per_second


def looked_at(stage, *moments):
    pace = Pace()
    for now, counters in moments:
        for name, value in counters.items():
            setattr(stage, name, value)
        pace.look(stage, now)
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

    assert looked_at(stage, (10.0, counters)).seconds_left(stage) == left


def test_only_the_last_minute_counts():
    stage = StageProgress(task="t", stage="s", total=1000, started=0.0)

    pace = looked_at(
        stage,
        (60.0, {"done": 600, "calls": 600, "completion_tokens": 6000}),
        (120.0, {"done": 660, "calls": 660, "completion_tokens": 6300}),
    )

    assert pace.seconds_left(stage) == 340.0  # 340 items at 1 a second
    assert pace.tokens_per_second() == 5.0


def test_nothing_is_said_before_anything_is_known():
    stage = StageProgress(task="t", stage="s", total=100)
    pace = looked_at(stage, (1.0, {}), (2.0, {"started": 2.0}))

    assert pace.seconds_left(stage) is None
    assert pace.tokens_per_second() is None
    assert looked_at(stage, (5.0, {"done": 50, "resumed": 50})).seconds_left(stage) is None


def test_a_stage_that_ended_has_its_average():
    stage = StageProgress(task="t", stage="s", completion_tokens=600, started=10.0, ended=40.0)

    assert tokens_per_second(stage) == 20.0
    assert tokens_per_second(StageProgress(task="t", stage="s")) is None
