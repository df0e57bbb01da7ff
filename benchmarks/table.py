"""The table of what was measured, and whether it holds what is promised."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

BEFORE = " before"
"""Ends the names of contenders that run the code of another checkout."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """The medians of one contender; `asked` is the seconds of the asking alone, where known."""

    part: str
    name: str
    count: int
    wall: float
    cpu: float
    memory: float
    asked: float | None

    @property
    def rate(self) -> float:
        """Items or requests a second, over the whole process."""
        return self.count / self.wall

    @property
    def cpu_each(self) -> float:
        """Milliseconds of processor time an item or request."""
        return 1000 * self.cpu / self.count


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One figure that is promised, beside what was measured."""

    what: str
    promised: float
    measured: float
    at_least: bool

    @property
    def kept(self) -> bool:
        """Whether the measured figure is as good as the promised one."""
        if self.at_least:
            return self.measured >= self.promised
        return self.measured <= self.promised


def promises(lines: Sequence[Line], *, latency: float, at_once: int) -> list[Promise]:
    """Every promise that the lines can tell about."""
    by_name = {(line.part, line.name): line for line in lines}
    return [
        *_startup(by_name),
        *_items([line for line in lines if line.part == "items"]),
        *_chat(by_name),
        *_latency(by_name, latency=latency, at_once=at_once),
    ]


def _startup(by_name: dict[tuple[str, str], Line]) -> Iterator[Promise]:
    for name, seconds in (("harness --help", 0.15), ("harness tasks", 0.4)):
        if line := by_name.get(("startup", name)):
            yield Promise(what=f"{name}, s", promised=seconds, measured=line.wall, at_least=False)


def _items(lines: Sequence[Line]) -> Iterator[Promise]:
    for line in lines:
        yield Promise(
            what=f"CPU of {line.name}, ms an item",
            promised=0.25,
            measured=line.cpu_each,
            at_least=False,
        )
        yield Promise(
            what=f"peak of {line.name}, MiB", promised=400, measured=line.memory, at_least=False
        )


def _chat(by_name: dict[tuple[str, str], Line]) -> Iterator[Promise]:
    own = by_name.get(("chat", "harness"))
    for name, times in (("bare openai", 1.8), ("lm-eval", 4.0), ("inspect_ai", 15.0)):
        if own and (other := by_name.get(("chat", name))):
            yield Promise(
                what=f"requests a second beside {name}, times",
                promised=times,
                measured=own.rate / other.rate,
                at_least=True,
            )


def _latency(
    by_name: dict[tuple[str, str], Line], *, latency: float, at_once: int
) -> Iterator[Promise]:
    line = by_name.get(("latency", "harness"))
    if line and line.asked:
        allowed = -(-line.count // at_once) * latency
        yield Promise(
            what="share of what the latency allows",
            promised=0.95,
            measured=allowed / line.asked,
            at_least=True,
        )


def gist_promises(lines: Sequence[Line], *, allowed: float) -> list[Promise]:
    """What is promised of GISTBench; `allowed` is the time that the latency alone takes."""
    found = []
    for line in lines:
        if line.part == "gist":
            found += [
                Promise(
                    what=f"CPU of {line.name}, ms a call, reading included",
                    promised=0.5,
                    measured=line.cpu_each,
                    at_least=False,
                ),
                Promise(
                    what=f"peak of {line.name}, MiB",
                    promised=600,
                    measured=line.memory,
                    at_least=False,
                ),
            ]
        elif line.part == "gist-latency" and "at once" in line.name:
            found.append(
                Promise(
                    what=f"time of {line.name}, times what the latency takes",
                    promised=1.15,
                    measured=line.wall / allowed,
                    at_least=False,
                )
            )
    return found


def perrec_promises(lines: Sequence[Line]) -> list[Promise]:
    """What is promised of PerRecBench; of groups, for the largest log and against the smallest."""
    found = [
        Promise(what=f"CPU of {line.name}, s", promised=30, measured=line.cpu, at_least=False)
        for line in lines
        if line.part == "perrec"
    ]
    built = sorted((line for line in lines if line.part == "perrec-groups"), key=lambda o: o.count)
    earlier = {line.count: line for line in built if line.name.endswith(BEFORE)}
    now = [line for line in built if not line.name.endswith(BEFORE)]
    if now:
        few, many = now[0], now[-1]
        found += [
            Promise(what=f"{many.name}, s", promised=300, measured=many.wall, at_least=False),
            Promise(
                what=f"peak of {many.name}, MiB",
                promised=600,
                measured=many.memory,
                at_least=False,
            ),
        ]
        for line, measure, most in (
            (few, "wall", 1.2),
            (many, "wall", 0.5),
            (many, "memory", 0.5),
        ):
            if before := earlier.get(line.count):
                ratio = getattr(line, measure) / getattr(before, measure)
                what = f"{measure} of {line.name}, times that before"
                found.append(Promise(what=what, promised=most, measured=ratio, at_least=False))
    return found


def render(lines: Sequence[Line]) -> str:
    """What was measured, as text."""
    titles = ("part", "contender", "n", "wall s", "n/s", "asking n/s", "CPU ms each", "peak MiB")
    rows = [
        (
            line.part,
            line.name,
            f"{line.count}",
            f"{line.wall:.2f}",
            f"{line.rate:.0f}",
            f"{line.count / line.asked:.0f}" if line.asked else "",
            f"{line.cpu_each:.3f}",
            f"{line.memory:.0f}",
        )
        for line in lines
    ]
    return columns(titles, rows)


def render_promises(kept: Sequence[Promise]) -> str:
    """What was promised beside what was measured, as text."""
    promised = [
        (
            promise.what,
            f"{'≥' if promise.at_least else '≤'} {promise.promised:g}",
            f"{promise.measured:.3g}",
            "kept" if promise.kept else "MISSED",
        )
        for promise in kept
    ]
    return columns(("promise", "promised", "measured", ""), promised)


def columns(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under their titles, each column as wide as it must be."""
    widths = [max(len(row[place]) for row in (titles, *rows)) for place in range(len(titles))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (titles, *rows)
    )


def plain(value: Any) -> dict[str, Any]:
    """A line, promise or cost as JSON values."""
    return dataclasses.asdict(value)
