"""Synthetic users drawn from the pooled histories of cohorts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from harness.chance import drawn, picked
from harness.hashing import stable_int
from harness_gistbench.records import SIGNALS, Signal
from harness_gistbench.synthesis.reading import SECONDS_A_DAY

if TYPE_CHECKING:
    from harness_gistbench.synthesis.cohorts import Cohort
    from harness_gistbench.synthesis.reading import Real
    from harness_gistbench.synthesis.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What was drawn for one synthetic user: numbers of engagements, in a random order.

    `wanted` is how many were meant to be; fewer are drawn where all of the `pooled` are too few.
    """

    rows: list[int]
    pooled: int
    wanted: int


@dataclass(frozen=True, kw_only=True)
class Row:
    """One engagement of a synthetic user, in the published layout."""

    user: int
    object: int
    text: str
    signal: Signal
    time: int


def draw(real: Real, cohort: Cohort, settings: Settings, *, number: int) -> Draw:
    """Engagements for the synthetic user of a cohort, none of them twice.

    How many is the length of one of its people's histories, times the factor.
    """
    rng = Random(stable_int("synthetic", settings.seed, number))
    spans = [(int(real.starts[one]), int(real.starts[one + 1])) for one in cohort.people]
    first, last = picked(rng, spans)
    wanted = max(1, round((last - first) * settings.factor))
    pool = [row for start, end in spans for row in range(start, end)]
    return Draw(rows=drawn(rng, pool, wanted), pooled=len(pool), wanted=wanted)


def rows_of(
    draws: Sequence[Draw], real: Real, texts: Mapping[str, str], settings: Settings
) -> Iterator[list[Row]]:
    """The rows of each synthetic user, under new ids and times, oldest first.

    Objects are numbered in the order in which they come up, times are seconds of the window.
    """
    numbers: dict[int, int] = {}
    for user, one in enumerate(draws, start=1):
        rng = Random(stable_int("times", settings.seed, user))
        times = sorted(int(rng.random() * settings.days * SECONDS_A_DAY) for _ in one.rows)
        objects, signals = real.object[one.rows].tolist(), real.signal[one.rows].tolist()
        yield [
            Row(
                user=user,
                object=numbers.setdefault(thing, len(numbers) + 1),
                text=texts[real.objects[thing]],
                signal=SIGNALS[signal],
                time=time,
            )
            for thing, signal, time in zip(objects, signals, times, strict=True)
        ]
