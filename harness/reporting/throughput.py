"""The pace of stages by their calls to models; resumed items and stored calls do not count."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from harness.pipeline.progress import StageProgress
from harness.reporting.text import duration

SPAN = 60.0
"""The pace is measured over this many past seconds, or longer where no more items were done in them
than are in flight: whole rounds of slow calls count."""


class _Moment(NamedTuple):
    at: float
    items: int
    asked: int
    tokens: int


class Pace:
    """The recent pace of some stages together; call `look` regularly with the current time."""

    def __init__(self, stages: Sequence[StageProgress]) -> None:
        self._stages = stages
        self._moments: deque[_Moment] = deque()
        self._now = 0.0

    def look(self, now: float) -> None:
        """Remember how far the stages are."""
        stages, moments = self._stages, self._moments
        started = [stage.started for stage in stages if stage.started is not None]
        if not started:
            return
        if not moments:
            moments.append(_Moment(min(started), 0, 0, 0))
        items = sum(_worked(stage) for stage in stages)
        asked = sum(stage.calls - stage.calls_from_store for stage in stages)
        tokens = sum(stage.completion_tokens for stage in stages)
        self._now = now
        if moments[-1][1:] != (items, asked, tokens):
            moments.append(_Moment(now, items, asked, tokens))
        round_of_items = sum(stage.in_flight for stage in stages)
        while (
            len(moments) > 2
            and moments[1].at <= now - SPAN
            and items - moments[1].items > round_of_items
        ):
            moments.popleft()

    def tokens_per_second(self) -> float | None:
        """Completion tokens per second; None before any time has passed."""
        if not self._seconds():
            return None
        return (self._moments[-1].tokens - self._moments[0].tokens) / self._seconds()

    def seconds_left(self) -> float | None:
        """Seconds until all stages of known size are done, if no further call is stored.

        None if unknown. Items of a stage that has done none need as many calls as those of others.
        """
        calls = sum(stage.calls for stage in self._stages)
        asking = sum(_worked(stage) for stage in self._stages if stage.calls)
        left = 0.0
        for stage in self._stages:
            if stage.total is None or stage.ended is not None:
                continue
            calls_per_item = calls / asking if asking else 1.0
            if calls and _worked(stage):
                calls_per_item = stage.calls / _worked(stage)
            left += (stage.total - stage.done) * calls_per_item
        if not self._seconds():
            return None
        first, last = self._moments[0], self._moments[-1]
        steps = last.asked - first.asked if calls else last.items - first.items
        return left * self._seconds() / steps if steps else None

    def left(self) -> str:
        """The time left as text; a lower bound while some stages have no size yet."""
        seconds = self.seconds_left()
        unsized = any(stage.total is None and stage.ended is None for stage in self._stages)
        if seconds is None or (unsized and not seconds):
            return "time left unknown"
        return f"{'at least ' if unsized else ''}{duration(seconds)} left"

    def _seconds(self) -> float:
        return self._now - self._moments[0].at if self._moments else 0.0


def tokens_per_second(stage: StageProgress) -> float | None:
    """Completion tokens per second over a whole stage; None unless it has ended."""
    if stage.started is None or stage.ended is None or stage.ended <= stage.started:
        return None
    return stage.completion_tokens / (stage.ended - stage.started)


def _worked(stage: StageProgress) -> int:
    return max(stage.done - stage.resumed, 0)
