"""The live display on a terminal. Imports rich, so it is itself imported only when it is shown."""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from harness.pipeline.progress import RunProgress, StageProgress
from harness.reporting.money import UNKNOWN, tokens
from harness.reporting.text import NOTHING, causes, clean_text, count, duration, share
from harness.reporting.throughput import Pace, tokens_per_second

REFRESHES_PER_SECOND = 2.0
LONGEST_BAR = 30
FRAME_LINES = 5
"""Lines around the rows: head, column names, count of hidden rows, foot, cursor."""


class LiveDisplay:
    """A row for each stage, redrawn twice a second; `stop` leaves the last picture on screen.

    A thread draws, so the picture moves while the run computes.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        clock: Callable[[], float] = time.monotonic,
        console: Console | None = None,
    ) -> None:
        self._console = console or Console(file=stream, markup=False, highlight=False, emoji=False)
        self._clock = clock
        self._picture: Picture | None = None
        self._live: Live | None = None
        self._lock = threading.Lock()

    def start(self, progress: RunProgress) -> None:
        """Start to draw."""
        self._picture = Picture(progress, self._clock())
        self._live = Live(
            get_renderable=self._draw,
            console=self._console,
            refresh_per_second=REFRESHES_PER_SECOND,
            redirect_stdout=sys.stdout.isatty(),
        )
        atexit.register(self.stop)
        self._live.start()

    def show_line(self, text: str, *, problem: bool = False) -> None:
        """Show the text above the rows."""
        self._console.print(Text(clean_text(text, lines=True), style="yellow" if problem else ""))

    def stage_started(self, stage: StageProgress) -> None:
        """The next picture shows it."""

    def stage_ended(self, stage: StageProgress) -> None:
        """The next picture shows it."""

    def stop(self) -> None:
        """Draw a last time and restore the terminal; further calls do nothing."""
        with self._lock:
            live, self._live = self._live, None
        if live is None:
            return
        atexit.unregister(self.stop)
        if self._picture is not None:
            self._picture.over = True
        live.stop()

    def _draw(self) -> Group:
        if self._picture is None:
            return Group()
        width, height = self._console.size
        return self._picture.draw(self._clock(), width=width, height=height)


class Picture:
    """The picture of a run at a moment; remembers the pace of each stage.

    Once the run is `over`, all rows are shown, and stages without an end count as stopped.
    """

    def __init__(self, progress: RunProgress, began: float) -> None:
        self.over = False
        self._progress = progress
        self._began = began
        self._paces: dict[StageProgress, Pace] = {}

    def draw(self, now: float, *, width: int, height: int) -> Group:
        """The picture for a terminal of this size."""
        stages = list(self._progress.stages)
        for stage in stages:
            if stage.started is not None and stage.ended is None:
                self._paces.setdefault(stage, Pace()).look(stage, now)
        layout = Layout.fit(width, stages)
        rows = [self._row(stage, layout) for stage in stages]
        shown: Sequence[int] = range(len(rows))
        if not self.over:
            shown = choose_rows(stages, [len(row) for row in rows], height - FRAME_LINES)
        lines = [self._head(), layout.names()]
        lines += [line for index in shown for line in rows[index]]
        if len(shown) < len(rows):
            lines.append(_left_out(stages, shown))
        lines.append(self._foot(stages, now))
        for line in lines:
            line.truncate(width, overflow="ellipsis")
            line.no_wrap = True
        return Group(*lines)

    def _head(self) -> Text:
        progress = self._progress
        head = Text(clean_text(progress.model), style="bold")
        head.append(f"  {clean_text(str(progress.folder))}", style="dim")
        if progress.resumed:
            head.append("  resumed", style="cyan")
        return head

    def _row(self, stage: StageProgress, layout: Layout) -> list[Text]:
        pace = self._paces.get(stage, Pace())
        stopped = self.over and stage.started is not None and stage.ended is None
        row = Text()
        row.append(*(("✗ ", "bold yellow") if stopped else _mark(stage)))
        row.append(layout.name(stage), style="dim" if stage.started is None else "")
        row.append_text(_bar(stage, layout.bar))
        for column in layout.columns:
            cell = _cell(column.name, stage, pace)
            if stopped and column.name == "time":
                cell = "stopped"
            row.append("  " + cell.rjust(column.width))
        notes = Text("    ")
        if stage.resumed:
            notes.append(f"{stage.resumed:,} resumed", style="cyan")
        failures = dict(stage.failures)
        if failures:
            notes.append("  " if stage.resumed else "")
            notes.append(f"missing {causes(failures)}", style="yellow")
        return [row, notes] if stage.resumed or failures else [row]

    def _foot(self, stages: Sequence[StageProgress], now: float) -> Text:
        calls = sum(stage.calls for stage in stages)
        stored = sum(stage.calls_from_store for stage in stages)
        sent = sum(stage.prompt_tokens for stage in stages)
        received = sum(stage.completion_tokens for stage in stages)
        unreported = sum(stage.unreported for stage in stages)
        spent = duration(now - self._began)
        parts = [f"in {spent}" if self.over else f"{spent} so far", f"{calls:,} calls"]
        if stored:
            parts.append(f"{share(stored, calls)} from the store")
        if sent or received:
            sums = tokens(sent, unreported), tokens(received, unreported)
            parts.append(f"tokens {sums[0]} in, {sums[1]} out")
        elif unreported:
            parts.append(f"tokens {UNKNOWN}")
        return Text("  " + ", ".join(parts), style="dim")


@dataclass(frozen=True)
class Column:
    """A column of numbers, flush right."""

    name: str
    width: int


@dataclass(frozen=True)
class Layout:
    """The parts of a row that fit into a width: the stage's name, a bar, some columns."""

    title: int
    bar: int
    columns: tuple[Column, ...]

    @staticmethod
    def fit(width: int, stages: Sequence[StageProgress]) -> Layout:
        """The layout that shows the most in this width."""
        columns = [Column("done", 11)]
        if width >= 50:
            columns.append(Column("calls", 6))
        if width >= 76:
            columns += [Column("tokens/s", 8), Column("stored", 6)]
        columns.append(Column("time", 12))
        room = width - 2 - sum(column.width + 2 for column in columns)
        longest = max((cell_len(clean_text(stage.label)) for stage in stages), default=5)
        title = max(min(longest, room - 8 if width >= 50 else room), 5)
        bar = min(room - title - 2, LONGEST_BAR)
        return Layout(title, bar if bar >= 5 else 0, tuple(columns))

    def names(self) -> Text:
        """The line of column names."""
        line = Text(" " * (2 + self.title + (self.bar + 2 if self.bar else 0)), style="dim")
        for column in self.columns:
            line.append("  " + column.name.rjust(column.width))
        return line

    def name(self, stage: StageProgress) -> str:
        """The stage's name, cut in its middle if it is too long."""
        label = clean_text(stage.label)
        if cell_len(label) > self.title:
            tail = min(len(label) - label.rfind("/"), self.title - 5)
            label = label[: self.title - tail - 1] + "…" + label[len(label) - tail :]
        return set_cell_size(label, self.title)


def choose_rows(stages: Sequence[StageProgress], lines: Sequence[int], room: int) -> Sequence[int]:
    """The indexes of the stages that fit into `room` lines, in their order.

    Running stages are chosen first, then the latest to end, then the next to start.
    """
    if sum(lines) <= room:
        return range(len(stages))

    def urgency(index: int) -> tuple[int, float]:
        stage = stages[index]
        if stage.started is None:
            return 2, index
        return (0, index) if stage.ended is None else (1, -stage.ended)

    chosen: list[int] = []
    for index in sorted(range(len(stages)), key=urgency):
        if chosen and lines[index] > room:
            break
        chosen.append(index)
        room -= lines[index]
    return sorted(chosen)


def _left_out(stages: Sequence[StageProgress], shown: Sequence[int]) -> Text:
    hidden = [stage for index, stage in enumerate(stages) if index not in set(shown)]
    ended = sum(1 for stage in hidden if stage.ended is not None)
    waiting = sum(1 for stage in hidden if stage.started is None)
    running = len(hidden) - ended - waiting
    parts = [(ended, "done"), (running, "running"), (waiting, "waiting")]
    counts = ", ".join(f"{many} {what}" for many, what in parts if many)
    return Text(f"  … and {counts}", style="dim")


def _mark(stage: StageProgress) -> tuple[str, str]:
    if stage.started is None:
        return "· ", "dim"
    if stage.ended is None:
        return "▸ ", "bold cyan"
    if stage.total is not None and stage.done < stage.total:
        return "✗ ", "bold red"
    return "✓ ", "green"


def _bar(stage: StageProgress, width: int) -> Text:
    if not width:
        return Text()
    part = stage.done / stage.total if stage.total else float(stage.ended is not None)
    filled = min(int(part * width), width)
    bar = Text("  ")
    bar.append("━" * filled, style="green" if stage.ended is not None else "cyan")
    bar.append("─" * (width - filled), style="dim")
    return bar


def _cell(column: str, stage: StageProgress, pace: Pace) -> str:
    if column == "done":
        return _done(stage)
    if stage.started is None:
        return ""
    if column == "calls":
        return count(stage.calls)
    if column == "stored":
        return share(stage.calls_from_store, stage.calls)
    if stage.ended is not None:
        if column == "time":
            return f"in {duration(stage.ended - stage.started)}"
        speed = tokens_per_second(stage)
    elif column == "time":
        return f"{duration(pace.seconds_left(stage))} left"
    else:
        speed = pace.tokens_per_second()
    return tokens(speed, stage.unreported) if speed else NOTHING


def _done(stage: StageProgress) -> str:
    if stage.total is None:
        return f"{stage.done:,}" if stage.started is not None else "waiting"
    exact = f"{stage.done:,}/{stage.total:,}"
    return exact if len(exact) <= 11 else f"{count(stage.done)}/{count(stage.total)}"
