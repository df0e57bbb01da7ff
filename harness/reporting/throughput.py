"""The pace of a stage by its calls to models; resumed items and stored calls do not count."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from harness.pipeline.progress import StageProgress

SPAN = 60.0
"""The pace of a running stage is measured over this many past seconds."""


class _Moment(NamedTuple):
    at: float
    steps: int
    tokens: int


class Pace:
    """The recent pace of one stage; call `look` regularly with the current time."""

    def __init__(self) -> None:
        self._moments: deque[_Moment] = deque()

    def look(self, stage: StageProgress, now: float) -> None:
        """Remember how far the stage is."""
        if stage.started is None:
            return
        if not self._moments:
            self._moments.append(_Moment(stage.started, 0, 0))
        self._moments.append(_Moment(now, _steps(stage), stage.completion_tokens))
        while len(self._moments) > 2 and self._moments[1].at <= now - SPAN:
            self._moments.popleft()

    def tokens_per_second(self) -> float | None:
        """Completion tokens per second; None before any time has passed."""
        first, last, seconds = self._stretch()
        return (last.tokens - first.tokens) / seconds if seconds else None

    def seconds_left(self, stage: StageProgress) -> float | None:
        """Seconds until the stage is done, if no further call is stored; None if unknown."""
        first, last, seconds = self._stretch()
        fresh = stage.done - stage.resumed
        if stage.total is None or not seconds or not fresh or last.steps == first.steps:
            return None
        steps_per_item = stage.calls / fresh if stage.calls else 1.0
        return (stage.total - stage.done) * steps_per_item * seconds / (last.steps - first.steps)

    def _stretch(self) -> tuple[_Moment, _Moment, float]:
        if not self._moments:
            nothing = _Moment(0.0, 0, 0)
            return nothing, nothing, 0.0
        first, last = self._moments[0], self._moments[-1]
        return first, last, last.at - first.at


def tokens_per_second(stage: StageProgress) -> float | None:
    """Completion tokens per second over a whole stage; None unless it has ended."""
    if stage.started is None or stage.ended is None or stage.ended <= stage.started:
        return None
    return stage.completion_tokens / (stage.ended - stage.started)


def _steps(stage: StageProgress) -> int:
    """Calls to models, or the items that were worked if the stage makes no calls."""
    if stage.calls:
        return stage.calls - stage.calls_from_store
    return stage.done - stage.resumed
