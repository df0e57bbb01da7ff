"""Cross-entropy over entropy, as in Figures 2 and 3, and over the number of users behind a prompt.

Imports numpy; the hooks of the plugin import analyses when they are used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harness.contracts.report import Axis, Figure, Line, Panels, Points, Report, Sheet
from harness.scoring.stats import Undefined, pearson
from harness_behaviour.analyses.results import SETTINGS, Page, Panel, Ranking, mean_of, pages_of
from harness_behaviour.curve import FEWEST, Curve, NoCurve, Resampled, curve_of, resampled

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell
    from harness_behaviour.curve import Floats

DRAWN = (
    "dots: moving means, of random those of all its draws; lines: fitted curves; diamonds: "
    "inflection points; dashed: the target"
)
DRAWN_STEPS = 100
"""The points of a curve that are drawn."""

CAUTION = (
    "caution: on the prompts of Algorithm 1 H grows as groups shrink, against the paper's reading "
    "(on real data the correlation of H with log |u_h| is about -0.9), so a low inflection point "
    "does not mean small groups; here the correlation is: {}"
)
TRAILING = (
    "the moving means are trailing (window=trailing): each stands at the largest H of its bins, "
    "so that points and curves lie to the right of where they belong, and X=Y does not bound them"
)
VERDICTS = {
    "left": "≤ {:.2f}, no inversion seen",
    "inside": "{:.2f}",
    "right": "≥ {:.2f}, inverted throughout",
}
"""What stands for a lowest point, by its place on the curve."""

NOTES = (
    "inflection: the H at which the curve is lowest; ≤: the curve is lowest at its left end, which "
    "is best; ≥: at its right end, which is worst; either end is a bound and no number; undecided: "
    "fewer than {:.0%} of the resamples are lowest at the same end, or at none, as the curve is",
    "interval: Bayesian bootstrap over prompts; left, right: the shares of resamples with the "
    "lowest point at an end",
)


class Found(NamedTuple):
    """The curve of a ranking and the lowest points of its resamples if it has one.

    `band` are the curves of several random rankings, for `random` alone.
    """

    ranking: Ranking
    curve: Curve | NoCurve
    drawn: Resampled | None
    band: tuple[Curve, ...]


def run(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `behaviour-curve`: the inflection points, and a figure for each domain."""
    sheets, figures = list[Sheet](), list[Panels]()
    for page in pages_of(tasks):
        panels = page.panels()
        found = [curves_of(panel) for panel in panels]
        sheets += [inflections(page, panels, found), by_users(page, panels)]
        figures.append(
            Panels(
                title=f"{page.title}: cross-entropy over entropy and over users",
                figures=(*over_entropy(page, panels, found), *over_users(page, panels)),
                across=len(panels),
                note="; ".join((DRAWN, *_window(panels), caution(panels))),
            )
        )
    return Report(sheets=tuple(sheets), figures=tuple(figures))


def curves_of(panel: Panel) -> list[Found]:
    """The curve of each ranking of a panel, with its resamples."""
    found = []
    for one in panel.rankings:
        how, window = one.task.task.interval, one.task.options.window
        prompts = *one.points, panel.edges
        curve, drawn = curve_of(*prompts, window=window), None
        if isinstance(curve, Curve):
            seed, draws = one.seed("curve"), how.draws
            drawn = resampled(
                *prompts, window=window, seed=seed, draws=draws, confidence=how.confidence
            )
        entropy = one.prompts.entropy
        curves = [curve_of(entropy, draw, panel.edges, window=window) for draw in one.draws]
        band = tuple(each for each in curves if isinstance(each, Curve))
        found.append(Found(one, curve, drawn, band))
    return found


def inflections(page: Page, panels: Sequence[Panel], found: Sequence[Sequence[Found]]) -> Sheet:
    """A sheet with the lowest point of each curve, its interval, and the resamples at an end."""
    rows, bands = list[tuple["Cell", ...]](), list[str]()
    for panel, several in zip(panels, found, strict=True):
        for one in several:
            rows.append((panel.setting, one.ranking.name, one.curve.bins, *_cells(one)))
            if one.band:
                points = [each.lowest for each in one.band]
                at = Counter(each.place for each in one.band)
                bands.append(
                    f"{panel.setting} {min(points):.2f} to {max(points):.2f}, of {len(points)} "
                    f"draws {at['left']} at the left end and {at['right']} at the right"
                )
    confidence = panels[0].models[0].task.task.interval.confidence
    return Sheet(
        title=f"{page.title}: inflection points",
        columns=("setting", "ranking", "bins", "inflection", "interval", "left %", "right %"),
        rows=tuple(rows),
        notes=(*([f"random draws, their own lowest points: {'; '.join(bands)}"] if bands else ()),
               *(note.format(confidence) for note in NOTES), *_window(panels), caution(panels)),
    )  # fmt: skip


def _cells(found: Found) -> tuple[Cell, ...]:
    """The lowest point in words, its interval, and the shares of resamples at an end."""
    curve, drawn = found.curve, found.drawn
    if isinstance(curve, NoCurve) or drawn is None:
        return f"no curve: fewer than {FEWEST} bins", None, None, None
    point = VERDICTS[curve.place].format(curve.lowest) if drawn.agrees(curve) else "undecided"
    tail = (1 - drawn.confidence) / 2
    left, right = drawn.shares["left"], drawn.shares["right"]
    low = f"≤ {drawn.low:.2f}" if left > tail else f"{drawn.low:.2f}"
    high = f"≥ {drawn.high:.2f}" if right > tail else f"{drawn.high:.2f}"
    return point, f"{low} to {high}", 100 * left, 100 * right


def _window(panels: Sequence[Panel]) -> Iterator[str]:
    """What to know of means that are not centred."""
    if any(one.task.options.window == "trailing" for each in panels for one in each.rankings):
        yield TRAILING


def by_users(page: Page, panels: Sequence[Panel]) -> Sheet:
    """A sheet with the mean cross-entropies by the number of users behind a prompt."""
    heads = dict.fromkeys(["H", *(one.name for panel in panels for one in panel.rankings)])
    rows: list[tuple[Cell, ...]] = []
    for panel in panels:
        means = means_of(panel)
        for name, part in panel.prompts.by("users").items():
            cells = (means.get(head, {}).get(name) for head in heads)
            rows.append((panel.setting, name, int(part.sum()), *cells))
    return Sheet(
        title=f"{page.title}: mean H and mean cross-entropies by |u_h|",
        columns=("setting", "|u_h|", "prompts", *heads),
        rows=tuple(rows),
        notes=("|u_h|: users behind a prompt; unread rankings are left out",),
        digits=2,
    )


def means_of(panel: Panel) -> dict[str, dict[str, float]]:
    """The mean entropies, then the mean cross-entropies of each ranking, by number of users."""
    crossed = {one.name: by_group(panel, one.cross) for one in panel.rankings}
    return {"H": by_group(panel, panel.prompts.entropy), **crossed}


def by_group(panel: Panel, values: Floats) -> dict[str, float]:
    """The mean of the values that are there, by the number of users behind their prompts."""
    parts = panel.prompts.by("users").items()
    return {name: mean for name, part in parts if (mean := mean_of(values[part])) is not None}


def caution(panels: Iterable[Panel]) -> str:
    """The caution on entropy and the size of groups, with the correlations that were measured."""
    relations = []
    for panel in panels:
        r = pearson(panel.prompts.entropy, np.log(panel.prompts.column("users")))
        relations.append(
            f"{panel.setting} {'undefined' if isinstance(r, Undefined) else f'{r:.2f}'}"
        )
    return CAUTION.format(", ".join(relations))


def over_entropy(
    page: Page, panels: Sequence[Panel], found: Sequence[Sequence[Found]]
) -> Iterator[Figure]:
    """A figure for each setting with the curves, or with the prompts if it has no curve."""
    drawn = [[mark for one in several for mark in _marks(one)] for several in found]
    heights = [y for marks in drawn for mark in marks for y in mark.y]
    heights += [float(panel.edges[0]) for panel in panels]
    for panel, marks in zip(panels, drawn, strict=True):
        ends = float(panel.edges[0]), float(panel.edges[-1])
        without = all(not isinstance(mark, Line) for mark in marks)
        yield Figure(
            title=f"{page.title}, {SETTINGS[panel.setting]}{', no curve' if without else ''}",
            x=Axis(label="entropy H of the target"),
            y=Axis(label="cross-entropy", low=min(heights), high=max(heights)),
            marks=(Line(label="X=Y", x=ends, y=ends, dashed=True), *marks),
        )


def _marks(found: Found) -> Iterator[Points | Line]:
    """The means, the curve and the lowest point of a ranking; without a curve its prompts."""
    ranking, curve = found.ranking, found.curve
    if isinstance(curve, NoCurve) or found.drawn is None:
        x, y = (tuple(values.tolist()) for values in ranking.points)
        yield Points(label=ranking.name, x=x, y=y, faint=True)
        return
    each = [one.means for one in found.band or (curve,)]
    x, y = (tuple(np.concatenate(values).tolist()) for values in zip(*each, strict=True))
    yield Points(label=ranking.name, x=x, y=y, faint=True)
    if curve.place == "inside" and found.drawn.agrees(curve):
        height = float(np.interp(curve.lowest, *curve.course))
        yield Points(label=ranking.name, x=(curve.lowest,), y=(height,), shape="diamond")
    x, y = (tuple(values[:: len(values) // DRAWN_STEPS].tolist()) for values in curve.course)
    yield Line(label=ranking.name, x=x, y=y)


def over_users(page: Page, panels: Sequence[Panel]) -> Iterator[Figure]:
    """A figure for each setting with the mean cross-entropies over the number of users."""
    means = [means_of(panel) for panel in panels]
    heights = [y for of in means for one in of.values() for y in one.values()]
    for panel, of in zip(panels, means, strict=True):
        logs = by_group(panel, np.log(panel.prompts.column("users")))
        places = {name: float(np.exp(value)) for name, value in logs.items()}
        yield Figure(
            title=f"{page.title}, {SETTINGS[panel.setting]}",
            x=Axis(label="|u_h|, users behind a prompt", log=True),
            y=Axis(label="mean cross-entropy", low=min(heights), high=max(heights)),
            marks=tuple(
                Line(label=label, x=tuple(places[name] for name in one), y=tuple(one.values()),
                     dashed=label == "H")
                for label, one in of.items()
            ),
        )  # fmt: skip
