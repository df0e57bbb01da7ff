"""The displays of a run: live on a terminal, plain lines elsewhere, problems only on request."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from harness.pipeline.progress import Display, RunProgress, StageProgress
from harness.reporting.pace import Pace, noted_progress, tokens_per_second
from harness.reporting.run_lines import throttled, tokens
from harness.reporting.text import causes, clean_text, counted, duration, share, time_left

PAUSE = 60.0
"""The seconds after which a stage that is still at work has another plain line."""


def make_display(
    *, quiet: bool = False, json: bool = False, stream: TextIO | None = None
) -> Display:
    """The display for these settings and this stream; the stream is standard error by default.

    With `json`, standard output is for the summaries, and progress is not shown.
    """
    return NotingDisplay(_display(stream or sys.stderr, quiet=quiet or json))


def _display(stream: TextIO, *, quiet: bool) -> Display:
    if quiet:
        return QuietDisplay(stream)
    unicode = (stream.encoding or "utf-8").lower().startswith("utf")
    if stream.isatty() and os.environ.get("TERM") != "dumb" and unicode:
        from harness.reporting.live import LiveDisplay

        return LiveDisplay(stream)
    return PlainDisplay(stream)


class NotingDisplay:
    """Another display, which also notes in the run folder how far the run is."""

    def __init__(self, shown: Display) -> None:
        self.shown = shown
        self._noted = contextlib.ExitStack()
        self.show_line = shown.show_line
        self.stage_started, self.stage_ended = shown.stage_started, shown.stage_ended

    def start(self, progress: RunProgress) -> None:
        """Begin to show and to note."""
        self._noted.enter_context(noted_progress(progress))
        self.shown.start(progress)

    def stop(self) -> None:
        """End both; further calls do nothing more."""
        self._noted.close()
        self.shown.stop()


class QuietDisplay:
    """Shows problems only."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def show_line(self, text: str, *, problem: bool = False) -> None:
        """Show a problem, and nothing else."""
        if problem:
            _print_line(self._stream, text)

    def _show_nothing(self, of: RunProgress | StageProgress | None = None) -> None: ...

    start = stage_started = stage_ended = stop = _show_nothing


class PlainDisplay:
    """Lines for logs: the start of the run, the end of each stage, the progress of long ones."""

    def __init__(self, stream: TextIO, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._running: dict[StageProgress, _Followed] = {}
        self._progress: RunProgress | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._ticker: threading.Thread | None = None

    def start(self, progress: RunProgress) -> None:
        """Show what runs where, and check the stages once a second from now on."""
        self._progress = progress
        again = " (resumed)" if progress.resumed else ""
        many = counted(len(progress.stages), "stage")
        self.show_line(f"{progress.model}: {many} in {progress.folder}{again}")
        self._ticker = threading.Thread(target=self._tick_on, name="harness-display", daemon=True)
        self._ticker.start()

    def show_line(self, text: str, *, problem: bool = False) -> None:
        """Show the text as a line."""
        _print_line(self._stream, ("! " if problem else "") + text)

    def stage_started(self, stage: StageProgress) -> None:
        """Follow the stage."""
        with self._lock:
            self._running[stage] = _Followed(stage, self._clock())

    def stage_ended(self, stage: StageProgress) -> None:
        """Show the result of the stage."""
        with self._lock:
            self._running.pop(stage, None)
        self.show_line(f"{stage.label}: {end_line(stage)}")

    def stop(self) -> None:
        """End the checks, and show how far the stages came that have not ended."""
        self._over.set()
        if self._ticker is not None and self._ticker is not threading.current_thread():
            self._ticker.join()
        with self._lock:
            stopped = [stage for stage in self._running if stage.done]
            self._running.clear()
        for stage in stopped:
            self.show_line(f"{stage.label}: {end_line(stage)}")

    def tick(self) -> None:
        """Show a line for each running stage whose next line is due."""
        now = self._clock()
        with self._lock:
            lines = [line for followed in self._running.values() if (line := followed.line(now))]
        for line in lines:
            self.show_line(line)
        if lines and self._progress and (slowed := throttled(self._progress.limits())):
            self.show_line(slowed)

    def _tick_on(self) -> None:
        while not self._over.wait(1.0):
            self.tick()


class _Followed:
    """A running stage and its last line."""

    def __init__(self, stage: StageProgress, now: float) -> None:
        self._stage, self._pace = stage, Pace([stage])
        self._shown_at, self._shown_done = now, stage.done

    def line(self, now: float) -> str | None:
        """The next line about the stage; None while it is not due."""
        stage = self._stage
        self._pace.look(now)
        idle = not stage.in_flight and stage.done == self._shown_done
        if idle or now - self._shown_at < PAUSE:
            return None
        self._shown_at, self._shown_done = now, stage.done
        parts = [f"{stage.done:,}"]
        if stage.total:
            parts = [f"{stage.done:,}/{stage.total:,}", share(stage.done, stage.total)]
        left = time_left(self._pace.seconds_left(), at_least=False)
        parts += [*_facts(stage, self._pace.tokens_per_second()), left]
        return f"{stage.label}: {'; '.join(parts)}"


def end_line(stage: StageProgress) -> str:
    """The result of a stage in one line."""
    parts = [f"{stage.done:,} done"]
    if stage.total is not None and stage.done < stage.total:
        parts = [f"stopped at {stage.done:,}/{stage.total:,}"]
    if stage.started is not None and stage.ended is not None:
        parts[0] += f" in {duration(stage.ended - stage.started)}"
    return "; ".join([*parts, *_facts(stage, tokens_per_second(stage))])


def _facts(stage: StageProgress, speed: float | None) -> Iterator[str]:
    if stage.resumed:
        yield f"{stage.resumed:,} resumed"
    if stage.calls:
        stored = share(stage.calls_from_store, stage.calls)
        yield f"{counted(stage.calls, 'call')} ({stored} from the store)"
    if stage.failures:
        yield f"missing {causes(dict(stage.failures))}"
    if speed:
        yield f"{tokens(speed, stage.unreported)} tokens/s"


def _print_line(stream: TextIO, text: str) -> None:
    # The reader of a pipe may have gone; the run is worth more than its lines.
    with contextlib.suppress(BrokenPipeError):
        print(clean_text(text, lines=True), file=stream, flush=True)
