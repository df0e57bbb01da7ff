"""Cross-entropy and entropy by proxy, by history, and of each proxy by history: Figures 4 to 15.

Imports numpy; the hooks of the plugin import analyses when they are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from harness.analysis.distributions import thinned
from harness.contracts.report import Axis, Boxes, Figure, Panels, Report, Sheet
from harness_behaviour.analyses.results import PROXY_NAMES, SETTINGS, Page, pages_of
from harness_behaviour.records import LENGTHS, PROXIES

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell
    from harness_behaviour.analyses.results import Answers
    from harness_behaviour.curve import Floats

Box: TypeAlias = "tuple[str | None, int | None]"
"""The proxy and the length of the history of the prompts behind a box; None for every one."""

TARGET = "H of the target"
RANDOM = "random"
DEFAULT = "(Def)"

NOTE = (
    f"boxes: quartiles, with whiskers up to 1.5 times their distance; {DEFAULT}: prompts without "
    "history, of each proxy where boxes are by proxy, of all together where they are by history"
)


@dataclass(frozen=True, eq=False)
class Sample:
    """Values of prompts, with the proxy and the length of the history of each prompt."""

    values: Floats
    proxies: Any
    lengths: Any

    def of(self, box: Box) -> Floats:
        """The values of a box; every length leaves out the prompts without history."""
        proxy, length = box
        there = self.lengths > 0 if length is None else self.lengths == length
        values: Floats = self.values[there if proxy is None else there & (self.proxies == proxy)]
        return values


def run(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `behaviour-boxes`: for each domain a table of medians, and its figures."""
    sheets, figures = [], []
    for page in pages_of(tasks):
        samples = samples_of(page)
        known = [one for one in PROXIES[page.domain] if one in samples[TARGET].proxies]
        lengths = [one for one in LENGTHS if one in samples[TARGET].lengths]
        by_proxy = {name_of(proxy, length): (proxy, length)
                    for proxy in known for length in (0, None)}  # fmt: skip
        by_history = {name_of(None, length): (None, length) for length in lengths}
        sheets.append(medians(page, samples, [*by_proxy.values(), *by_history.values()]))
        figures.append(
            Panels(
                title=f"{page.title}: cross-entropy by proxy and by history",
                figures=(
                    figure(f"{page.title}, by proxy", samples, by_proxy),
                    figure(f"{page.title}, by items in the history", samples, by_history),
                ),
                across=1,
                note=NOTE,
            )
        )
        for name in [*samples][1:]:
            both = {TARGET: samples[TARGET], name: samples[name]}
            figures.append(
                Panels(
                    title=f"{page.title}, {name}: cross-entropy of each proxy by history",
                    figures=tuple(
                        figure(
                            f"{page.title}, {PROXY_NAMES[proxy]}",
                            both,
                            {name_of(None, length): (proxy, length) for length in lengths},
                        )
                        for proxy in known
                    ),
                    note=f"{name}, by items in the history; {NOTE}",
                )
            )
    return Report(sheets=tuple(sheets), figures=tuple(figures))


def samples_of(page: Page) -> dict[str, Sample]:
    """The entropies, then the cross-entropies of each model and of random rankings.

    They are over the settings that all models have; if they share none, over those of each.
    """
    shared = [
        setting for setting in SETTINGS if all(setting in answers for _, answers in page.members)
    ]
    models = {
        row.name: [answers[one] for one in shared or answers] for row, answers in page.members
    }
    first = next(iter(models.values()))
    return {
        TARGET: _sample(first, "entropy"),
        **{name: _sample(several, "cross") for name, several in models.items()},
        RANDOM: _sample(first, f"cross_{RANDOM}"),
    }


def medians(page: Page, samples: Mapping[str, Sample], boxes: Sequence[Box]) -> Sheet:
    """A sheet with the number of prompts behind each box, and the median of each sample."""
    rows: list[tuple[Cell, ...]] = []
    for proxy, length in boxes:
        values = [sample.of((proxy, length)) for sample in samples.values()]
        rows.append((
            "every" if proxy is None else PROXY_NAMES[proxy],
            "every" if length is None else name_of(None, length),
            len(values[0]),
            *(float(np.median(one)) if len(one) else None for one in values),
        ))  # fmt: skip
    return Sheet(
        title=f"{page.title}: medians of entropy and cross-entropy by proxy and by history",
        columns=("proxy", "history", "prompts", *samples),
        rows=tuple(row for row in rows if row[2]),
        notes=(f"{DEFAULT}: without history; every: with any history but none",),
        digits=2,
    )


def figure(title: str, samples: Mapping[str, Sample], boxes: Mapping[str, Box]) -> Figure:
    """A figure with a box for each sample at each name that has prompts.

    Its y axis covers the samples whole, so that figures of parts of them can be compared.
    """
    every = np.concatenate([sample.values for sample in samples.values()])
    there = {name: box for name, box in boxes.items() if len(samples[TARGET].of(box))}
    return Figure(
        title=title,
        x=Axis(label=""),
        y=Axis(label="cross-entropy and entropy", low=float(every.min()), high=float(every.max())),
        marks=tuple(
            Boxes(
                label=label,
                names=tuple(there),
                values=tuple(thinned(sample.of(box)) for box in there.values()),
            )
            for label, sample in samples.items()
        ),
    )


def name_of(proxy: str | None, length: int | None) -> str:
    """The name of a box."""
    of = "" if length is None else str(length) if length else DEFAULT
    return f"{PROXY_NAMES[proxy] if proxy else ''} {of}".strip()


def _sample(several: Sequence[Answers], column: str) -> Sample:
    """The values that are there."""
    values = np.concatenate([of.column(column) for of in several])
    fits = [score.details for of in several for score in of.scores]
    there = np.isfinite(values)
    return Sample(
        values[there],
        np.array([fit.proxy for fit in fits])[there],
        np.array([fit.length for fit in fits])[there],
    )
