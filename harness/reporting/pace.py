"""The pace of stages by their calls to models; resumed items and stored calls do not count."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

import msgspec

from harness.base import clock
from harness.calls.pricing import together
from harness.pipeline.progress import RunProgress, StageProgress
from harness.runs.atomic_files import UNFINISHED
from harness.runs.progress_file import PROGRESS, ProgressNote, StageNote

NOTE_SECONDS = 5.0
"""The time between two notes of a run's progress in its folder."""

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
        if not steps or (not left and self.unsized()):
            return None
        return left * self._seconds() / steps

    def unsized(self) -> bool:
        """Whether stages of unknown size are still to end: the time left is a lower bound."""
        return any(stage.total is None and stage.ended is None for stage in self._stages)

    def items_per_second(self) -> float | None:
        """Items per second; None before any was done."""
        done = self._moments[-1].items - self._moments[0].items if self._moments else 0
        return done / self._seconds() if done and self._seconds() else None

    def _seconds(self) -> float:
        return self._now - self._moments[0].at if self._moments else 0.0


def tokens_per_second(stage: StageProgress) -> float | None:
    """Completion tokens per second over a whole stage; None unless it has ended."""
    if stage.started is None or stage.ended is None or stage.ended <= stage.started:
        return None
    return stage.completion_tokens / (stage.ended - stage.started)


def _worked(stage: StageProgress) -> int:
    return max(stage.done - stage.resumed, 0)


@contextmanager
def noted_progress(progress: RunProgress) -> Iterator[None]:
    """Note in the run folder, every few seconds, how far the run is; the note goes at the end.

    A thread does it, so that a run that computes says so too.
    """
    over, pace = threading.Event(), Pace(progress.stages)
    file = progress.folder / PROGRESS
    unfinished = file.with_name(f".{PROGRESS}{UNFINISHED}")

    def go_on() -> None:
        while not over.wait(NOTE_SECONDS):
            pace.look(clock.seconds())
            with suppress(OSError):  # what the disk refuses, the records tell
                unfinished.write_bytes(msgspec.json.encode(_note(progress, pace)))
                unfinished.replace(file)

    thread = threading.Thread(target=go_on, name="harness-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with suppress(OSError):
            file.unlink(missing_ok=True)


def _note(progress: RunProgress, pace: Pace) -> ProgressNote:
    costs = tuple(progress.costs().values())
    return ProgressNote(
        stages=tuple(
            StageNote(
                task=stage.task,
                stage=stage.stage,
                done=stage.done,
                total=stage.total,
                missing=sum(dict(stage.failures).values()),
            )
            for stage in progress.stages
            if stage.started is not None and stage.ended is None
        ),
        items_per_second=pace.items_per_second(),
        seconds_left=pace.seconds_left(),
        at_least=pace.unsized(),
        cost=together("", costs) if costs else None,
    )
