"""The gap of each setting, all together and by part, with slopes and inflection points.

Imports numpy; the hooks of the plugin import analyses when they are used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from harness.contracts.report import Report, Sheet
from harness.reporting.text import causes
from harness.scoring.stats import Interval, bootstrap_interval, relation_interval
from harness_behaviour.analyses.curves import curves_of, inflections
from harness_behaviour.analyses.results import (
    PROXY_NAMES,
    Page,
    Panel,
    Ranking,
    pages_of,
)
from harness_behaviour.curve import slope_of
from harness_behaviour.metrics import AS_RANDOM

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell
    from harness_behaviour.curve import Floats

HEADS = {"users": "|u_h|", "entropy": "third of H"}
"""The slices that tables name in another way."""

GAP_NOTES = (
    "gap: mean of the cross-entropy minus H; what a ranking rules out gets 1e-6 or 1e-3, which "
    "decides the size of the gap; displaced: the true mass of that, in %, whatever it gets",
    "slope: of the cross-entropy on H, 1 if the gap is the same everywhere; low and high: "
    "bootstrap over prompts",
)
PART_NOTE = (
    "gap with what is ruled out at 1e-6; |u_h|: users behind a prompt; thirds of H are cut over "
    "the prompts of the task"
)
IN_GROUP_NOTES = {
    "b": "setting b: popular in group is popular, since no demography is shown",
    "c": "setting c: popular in group is the ideal by construction, since the target counts the "
    "same users; it is no result to be reached",
}
COUNTED = "with unread"
COUNTED_NOTE = (
    f"{COUNTED}: the gap with prompts that have no readable answer as {AS_RANDOM}; rankings "
    "without a model are of all prompts, so compare them with this column"
)


def main(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `behaviour`: for each domain its gaps, gaps by part, and inflection points."""
    sheets: list[Sheet] = []
    for page in pages_of(tasks):
        panels = page.panels()
        found = [curves_of(panel) for panel in panels]
        sheets.append(gaps(page, panels))
        sheets += [parts(page, panel) for panel in panels]
        sheets.append(inflections(page, panels, found))
    return Report(sheets=tuple(sheets))


def gaps(page: Page, panels: Sequence[Panel]) -> Sheet:
    """A sheet with the gaps, the displaced mass and the slope of each ranking in each setting."""
    missing = [(panel, one) for panel in panels for one in panel.models if not one.read.all()]
    rows = []
    for panel in panels:
        for one in panel.rankings:
            cells: list[Cell] = [panel.setting, one.name, int(one.read.sum())]
            cells += _mean(one.gap, one, "gap")
            if missing:
                cells.append(float(np.where(one.read, one.gap, panel.baselines[0].gap).mean()))
            cells += _mean(one.column("cross_1e3") - one.prompts.entropy, one, "gap_1e3")
            cells += _mean(100 * one.column("displaced"), one, "displaced")[:1]
            rows.append((*cells, *slope(one)))
    return Sheet(
        title=f"{page.title}: generalisation gap",
        columns=("setting", "ranking", "prompts", "gap 1e-6", "low", "high",
                 *((COUNTED,) if missing else ()), "gap 1e-3", "low", "high", "displaced %",
                 "slope", "low", "high"),
        rows=tuple(rows),
        notes=(*GAP_NOTES, *_in_group(panels), *((COUNTED_NOTE,) if missing else ()),
               *(_unread(panel, one) for panel, one in missing)),
        digits=(*(0,) * 3, *(3,) * (6 + bool(missing)), 1, *(2,) * 3),
    )  # fmt: skip


def parts(page: Page, panel: Panel) -> Sheet:
    """A sheet with the gaps of one setting by proxy, history, users and third of H."""
    baselines = {one.name: one.gap for one in panel.baselines}
    rows = []
    for way, name, part in panel.parts():
        cells: list[Cell] = [HEADS.get(way, way), PROXY_NAMES.get(name, name), int(part.sum())]
        for one in panel.models:
            cells += _mean(one.gap[part], one, "gap", way, name)
        rows.append((*cells, *(float(gap[part].mean()) for gap in baselines.values())))
    return Sheet(
        title=f"{page.title}, setting {panel.setting}: gap by part",
        columns=("by", "part", "prompts",
                 *(head for one in panel.models for head in (one.name, "low", "high")), *baselines),
        rows=tuple(rows),
        notes=(PART_NOTE, *_in_group([panel])),
        digits=3,
    )  # fmt: skip


def slope(ranking: Ranking) -> Iterator[float | None]:
    """The slope of the cross-entropy on H, and its interval over prompts."""
    x, y = ranking.points
    value = slope_of(x, y) if len(x) else float("nan")
    how = ranking.task.task.interval
    drawn = relation_interval(
        *(x, y, range(len(x)), slope_of),  # type: ignore[arg-type]
        seed=ranking.seed("slope"),
        draws=how.draws,
        confidence=how.confidence,
        method=how.method,
    )
    yield value if np.isfinite(value) else None
    yield from (drawn.low, drawn.high) if isinstance(drawn, Interval) else (None, None)


def _mean(
    values: Floats, ranking: Ranking, metric: str, *part: str
) -> tuple[float | None, float | None, float | None]:
    """The mean of the values that are there, and its interval over prompts.

    Over all prompts, it is that of the metric in the table of the run.
    """
    known = values[np.isfinite(values)]
    if not len(known):
        return None, None, None
    how = ranking.task.task.interval
    drawn = bootstrap_interval(
        known,
        np.arange(len(known)),
        seed=ranking.seed("_".join(filter(None, (metric, ranking.baseline))), *part),
        draws=how.draws,
        confidence=how.confidence,
        method=how.method,
    )
    bounds = (drawn.low, drawn.high) if isinstance(drawn, Interval) else (None, None)
    return float(known.mean()), *bounds


def _in_group(panels: Sequence[Panel]) -> Iterator[str]:
    """What `popular in group` is in settings where it is no baseline of its own."""
    return (IN_GROUP_NOTES[one.setting] for one in panels if one.setting in IN_GROUP_NOTES)


def _unread(panel: Panel, ranking: Ranking) -> str:
    """The causes of the answers of a model that could not be read."""
    scores = compress(ranking.prompts.scores, ~ranking.read)
    counts = Counter(score.missing.get("gap", "unreadable") for score in scores)
    return f"{panel.setting}, {ranking.name}: without an answer: {causes(counts)}"
