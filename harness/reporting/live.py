"""The live display on a terminal. Imports rich, so it is itself imported only when it is shown."""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from harness.calls.pricing import together
from harness.pipeline.progress import RunProgress, StageProgress
from harness.reporting.pace import Pace
from harness.reporting.run_lines import UNKNOWN, money, paid, throttled, tokens
from harness.reporting.text import causes, clean_text, count, counted, duration, share, time_left

REFRESHES_PER_SECOND = 2.0
LATELY = 5.0
"""A stage counts as moving for this many seconds after its last move."""

LONGEST_BAR = 30
LEAST_BAR = 5
LOW = 10
"""A terminal of fewer lines is spared the line on model and folder."""


class LiveDisplay:
    """A picture of the run, redrawn twice a second and gone after `stop`.

    A thread draws, so the picture moves while the run computes.
    """

    def __init__(self, stream: TextIO, *, console: Console | None = None) -> None:
        self._console = console or Console(file=stream, markup=False, highlight=False, emoji=False)
        self._picture: Picture | None = None
        self._live: Live | None = None
        self._lock = threading.Lock()

    def start(self, progress: RunProgress) -> None:
        """Start to draw."""
        self._picture = Picture(progress, time.monotonic())
        self._live = Live(
            get_renderable=self._draw,
            console=self._console,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
        )
        atexit.register(self.stop)
        self._live.start()

    def show_line(self, text: str, *, problem: bool = False) -> None:
        """Show the text above the picture."""
        self._console.print(Text(clean_text(text, lines=True), style="yellow" if problem else ""))

    def stage_started(self, stage: StageProgress) -> None:
        """The next picture shows it."""

    stage_ended = stage_started

    def stop(self) -> None:
        """Remove the picture and restore the terminal; further calls do nothing."""
        with self._lock:
            live, self._live = self._live, None
        if live is not None:
            atexit.unregister(self.stop)
            live.stop()

    def _draw(self) -> Group:
        if self._picture is None:
            return Group()
        width, height = self._console.size
        return self._picture.draw(time.monotonic(), width=width, height=height)


class Picture:
    """The picture of a run at a moment; remembers its pace, and when each stage last moved."""

    def __init__(self, progress: RunProgress, began: float) -> None:
        self._progress, self._began = progress, began
        self._pace = Pace(progress.stages)
        self._moved: dict[StageProgress, tuple[int, float]] = {}

    def draw(self, now: float, *, width: int, height: int) -> Group:
        """The picture for a terminal of this size: the whole, stages that move, the other ones."""
        stages = self._progress.stages
        self._pace.look(now)
        moving = [stage for stage in stages if self._moves(stage, now)]
        head = Text().append(clean_text(self._progress.model), style="bold")
        head.append(f"  {clean_text(str(self._progress.folder))}", style="dim")
        resumed = sum(stage.resumed for stage in stages)
        head.append(f"  {resumed:,} resumed" if resumed else "", style="cyan")
        lines = [head] if height >= LOW else []
        lines += [self._whole(now, width), self._sums(), self._cluster()]
        failures = sum((Counter(dict(stage.failures)) for stage in stages), Counter())
        lines.append(Text(f"missing {causes(failures)}" if failures else "", style="yellow"))
        lines.append(Text(throttled(self._progress.limits()) or "", style="yellow"))
        lines = [line for line in lines if line]
        room = max(height - len(lines) - 2, 0)  # a line on the other stages, and the cursor
        lines += _rows(moving[:room], width)
        lines.append(_others(stages, moving, hidden=len(moving[room:])))
        lines = [line for line in lines if line][: max(height - 1, 1)]
        for line in lines:
            line.truncate(width, overflow="ellipsis")
            line.no_wrap = True
        return Group(*lines)

    def _moves(self, stage: StageProgress, now: float) -> bool:
        if stage.started is None or stage.ended is not None:
            return False
        done, last = self._moved.get(stage, (0, now - LATELY))
        if stage.in_flight or stage.done != done:
            last = now
        self._moved[stage] = stage.done, last
        return stage.total is None or now - last < LATELY  # its items are being made

    def _whole(self, now: float, width: int) -> Text:
        """One bar for all stages; those of unknown size are drawn at the mean of the others."""
        stages = self._progress.stages
        done = sum(stage.done for stage in stages)
        sized = [
            stage.done if stage.ended is not None else stage.total
            for stage in stages
            if stage.ended is not None or stage.total is not None
        ]
        known = sum(size or 0 for size in sized)
        least = "" if len(sized) == len(stages) else "at least "
        left = time_left(self._pace.seconds_left(), at_least=self._pace.unsized())
        spent = duration(now - self._began)
        facts = f"{left}, {done:,} of {least}{known:,} items, {spent} so far"
        part = done * len(sized) / (known * len(stages)) if known else 0.0
        return _bar(part, min(width - cell_len(facts) - 2, LONGEST_BAR)).append(facts)

    def _sums(self) -> Text:
        stages = self._progress.stages
        calls = sum(stage.calls for stage in stages)
        stored = sum(stage.calls_from_store for stage in stages)
        sent = sum(stage.prompt_tokens for stage in stages)
        received = sum(stage.completion_tokens for stage in stages)
        unreported = sum(stage.unreported for stage in stages)
        parts = [f"{calls:,} calls"]
        if costs := tuple(self._progress.costs().values()):
            cost = together("", costs)
            most = self._progress.max_cost
            of = "" if most is None else f" of {money(most)}"
            parts.insert(0, f"paid {paid(cost)}{of} {clean_text(cost.currency)}")
        if stored:
            parts.append(f"{share(stored, calls)} from the store")
        if sent or received:
            sums = tokens(sent, unreported), tokens(received, unreported)
            parts.append(f"tokens {sums[0]} in, {sums[1]} out")
            if speed := self._pace.tokens_per_second():
                parts.append(f"{tokens(speed, unreported)}/s")
        elif unreported:
            parts.append(f"tokens {UNKNOWN}")
        return Text(", ".join(parts))

    def _cluster(self) -> Text:
        cluster = self._progress.cluster
        if cluster is None:
            return Text()
        opening = f" of {cluster.workers + cluster.opening:,}" if cluster.opening else ""
        workers = counted(cluster.workers, "worker")
        parts = [f"{cluster.workers:,}{opening} workers" if opening else workers]
        parts += [counted(cluster.engines, "engine")] if cluster.engines else []
        parts += [f"{counted(cluster.lost, 'worker')} lost"] if cluster.lost else []
        in_flight = sum(stage.in_flight for stage in self._progress.stages)
        return Text(", ".join([*parts, f"{counted(in_flight, 'item')} in flight"]))


def _rows(stages: Sequence[StageProgress], width: int) -> list[Text]:
    counts = [_done(stage) for stage in stages]
    column = max(map(len, counts), default=0)
    longest = max((cell_len(clean_text(stage.label)) for stage in stages), default=0)
    room = width - column - 4
    title = max(min(longest, room), 5)
    rows = []
    for stage, items in zip(stages, counts, strict=True):
        label = clean_text(stage.label)
        if cell_len(label) > title:
            tail = set_cell_size(label[label.rfind("/") :], min(len(label), title // 2)).rstrip()
            label = set_cell_size(label, title - cell_len(tail) - 1) + "…" + tail
        row = Text().append("▸ ", style="cyan").append(set_cell_size(label, title) + "  ")
        part = stage.done / stage.total if stage.total else 0.0
        row.append_text(_bar(part, min(room - title - 2, LONGEST_BAR // 2)))
        row.append(items.rjust(column))
        missing = sum(dict(stage.failures).values())
        row.append(f"  {missing:,} missing" if missing else "", style="yellow")
        rows.append(row)
    return rows


def _others(stages: Sequence[StageProgress], moving: Sequence[StageProgress], hidden: int) -> Text:
    others = [stage for stage in stages if stage not in moving]
    ended = [stage for stage in others if stage.ended is not None]
    done = sum(
        stage.started is not None and (stage.total is None or stage.done >= stage.total)
        for stage in ended
    )
    parts = [
        (hidden, "more running"),
        (done, "done"),
        (len(ended) - done, "stopped"),
        (len(others) - len(ended), "waiting"),
    ]
    counts = ", ".join(f"{many} {what}" for many, what in parts if many)
    return Text(f"  {counts}" if counts else "", style="dim")


def _bar(part: float, width: int) -> Text:
    if width < LEAST_BAR:
        return Text()
    filled = min(int(part * width), width)
    bar = Text().append("━" * filled, style="cyan")
    return bar.append("─" * (width - filled) + "  ", style="dim")


def _done(stage: StageProgress) -> str:
    if stage.total is None:
        return f"{stage.done:,}"
    exact = f"{stage.done:,}/{stage.total:,}"
    return exact if len(exact) <= 11 else f"{count(stage.done)}/{count(stage.total)}"
