"""The gap of each setting, all together and by part, with slopes and inflection points.

Imports numpy; the hooks of the plugin import analyses when they are used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, compress
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from harness.contracts.report import Report, Sheet
from harness.reporting.text import causes
from harness.scoring.stats import Interval, NoInterval, bootstrap_interval, relation_interval
from harness_behaviour.analyses.curves import curves_of, inflections
from harness_behaviour.analyses.results import PROXY_NAMES, Page, Panel, Ranking, mean_of, pages_of
from harness_behaviour.curve import slope_of
from harness_behaviour.metrics import AS_RANDOM
from harness_behaviour.records import RANKED

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell
    from harness_behaviour.analyses.results import Truths
    from harness_behaviour.curve import Floats

HEADS = {"users": "|u_h|", "entropy": "third of H"}
"""The slices that tables name in another way."""

GAP_NOTES = (
    "gap: mean of the cross-entropy minus H; what a ranking rules out gets 1e-6 or 1e-3; "
    "displaced: the true mass of that, in %, whatever it gets",
    "to ideal: how much of the gap of popular a ranking closes, in %, on the prompts of both; a "
    "model that is not clearly above 0 has not shown more than a rule without a model",
    "slope: of the cross-entropy on H, 1 if the gap is the same everywhere; low and high: "
    "bootstrap over prompts",
    "popular, popular in group: without the users behind a prompt, whose choices are the answer; "
    "in group in setting a alone: b shows no demography, and in c nobody else is in the group",
)
PART_NOTE = (
    "gap with what is ruled out at 1e-6; |u_h|: users behind a prompt; thirds of H are cut over "
    "the prompts of the task"
)
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
        sheets += [gaps(page, panels), *(parts(page, panel) for panel in panels)]
        sheets.append(inflections(page, panels, [curves_of(panel) for panel in panels]))
    return Report(sheets=tuple(sheets))


def gaps(page: Page, panels: Sequence[Panel]) -> Sheet:
    """A sheet with the gaps, the displaced mass and the slope of each ranking in each setting."""
    missing = [(panel, one) for panel in panels for one in panel.models if not one.read.all()]
    rows, changed = [], []
    for panel in panels:
        chance, popular, *_ = panel.baselines
        for one in panel.rankings:
            cells: list[Cell] = [panel.setting, one.name, int(one.read.sum())]
            cells += _mean(one.gap, one, "gap")
            if missing:
                cells.append(float(np.where(one.read, one.gap, chance.gap).mean()))
            cells += _mean(one.gap_1e3, one, "gap_1e3")[:1]
            cells += _mean(100 * one.column("displaced"), one, "displaced")[:1]
            cells += _related(one, popular.gap, one.gap, closed, "to_ideal")
            rows.append((*cells, *_related(one, one.prompts.entropy, one.cross, slope_of, "slope")))
        changed += [f"{panel.setting} {pair}" for pair in reordered(panel)]
    return Sheet(
        title=f"{page.title}: generalisation gap",
        columns=("setting", "ranking", "prompts", "gap 1e-6", "low", "high",
                 *((COUNTED,) if missing else ()), "gap 1e-3", "displaced %",
                 "to ideal %", "low", "high", "slope", "low", "high"),
        rows=tuple(rows),
        notes=(*_answers(panels), _changed(changed), _band(panels), *GAP_NOTES,
               *((COUNTED_NOTE,) if missing else ()),
               *(_unread(panel, one) for panel, one in missing)),
        digits=(*(0,) * 3, *(3,) * (4 + bool(missing)), 1, *(0,) * 3, *(2,) * 3),
    )  # fmt: skip


def parts(page: Page, panel: Panel) -> Sheet:
    """A sheet with the gaps of one setting by proxy, history, users and third of H."""
    rows, changed = [], []
    for way, name, part in panel.parts():
        head = HEADS.get(way, way), PROXY_NAMES.get(name, name)
        cells: list[Cell] = [*head, int(part.sum())]
        for one in panel.models:
            cells += _mean(one.gap[part], one, "gap", way, name)
        rows.append((*cells, *(mean_of(one.gap[part]) for one in panel.baselines)))
        changed += [f"{' '.join(head)} {pair}" for pair in reordered(panel, part)]
    return Sheet(
        title=f"{page.title}, setting {panel.setting}: gap by part",
        columns=("by", "part", "prompts",
                 *(head for one in panel.models for head in (one.name, "low", "high")),
                 *(one.name for one in panel.baselines)),
        rows=tuple(rows),
        notes=(PART_NOTE, _changed(changed)),
        digits=3,
    )  # fmt: skip


def closed(popular: Floats, gap: Floats) -> float:
    """How much of the gap of `popular` another gap closes, in percent; NaN if there is none."""
    whole = float(popular.mean())
    return 100 * (1 - float(gap.mean()) / whole) if whole else float("nan")


def reordered(panel: Panel, part: Truths | None = None) -> Iterator[str]:
    """The pairs of rankings whose mean gaps on the prompts of both change order with epsilon."""
    for one, other in combinations(panel.rankings, 2):
        both = one.read & other.read & (True if part is None else part)
        apart = (one.gap - other.gap)[both], (one.gap_1e3 - other.gap_1e3)[both]
        if both.any() and apart[0].mean() * apart[1].mean() < 0:
            yield f"{one.name} and {other.name}"


def _related(
    ranking: Ranking, x: Floats, y: Floats, relation: Callable[[Floats, Floats], float], name: str
) -> list[float | None]:
    """A relation of two numbers of each prompt that has both, and its interval over prompts."""
    there = np.isfinite(x) & np.isfinite(y)
    x, y = x[there], y[there]
    value = relation(x, y) if len(x) else float("nan")
    draw = partial(relation_interval, x, y, range(len(x)), relation)  # type: ignore[arg-type]
    return [value if np.isfinite(value) else None, *_bounds(draw, ranking, name)]


def _mean(values: Floats, ranking: Ranking, metric: str, *part: str) -> list[float | None]:
    """The mean of the values that are there, and its interval over prompts.

    Over all prompts, it is that of the metric in the table of the run.
    """
    known = values[np.isfinite(values)]
    draw = partial(bootstrap_interval, known, np.arange(len(known)))
    metric = "_".join(filter(None, (metric, ranking.baseline)))
    return [mean_of(values), *_bounds(draw, ranking, metric, *part)]


def _bounds(
    draw: Callable[..., Interval | NoInterval], ranking: Ranking, *what: str
) -> tuple[float | None, float | None]:
    """The ends of an interval that is drawn as the task says; None without one."""
    how = msgspec.structs.asdict(ranking.task.task.interval)
    drawn = draw(seed=ranking.seed(*what), **how)
    return (drawn.low, drawn.high) if isinstance(drawn, Interval) else (None, None)


def _answers(panels: Sequence[Panel]) -> Iterator[str]:
    """How much of each model's answers was filled, and how many answers name no candidate."""
    for setting, one in ((panel.setting, one) for panel in panels for one in panel.models):
        filled = one.prompts.column("filled")[one.read]
        if filled.any():
            yield (
                f"{setting}, {one.name}: {filled.mean() / RANKED:.1%} of the places were filled at "
                f"random; {(filled == RANKED).sum():,} of {len(filled):,} answers name no candidate"
            )


def _changed(pairs: Sequence[str]) -> str:
    return f"in another order at 1e-3 than at 1e-6: {', '.join(pairs) or 'no two rankings'}"


def _band(panels: Sequence[Panel]) -> str:
    bands = []
    for panel in panels:
        chance = panel.baselines[0]
        gaps = (chance.draws - chance.prompts.entropy).mean(axis=1)
        bands.append(f"{panel.setting} {gaps.min():.3f} to {gaps.max():.3f} ({len(gaps)} draws)")
    return f"random: one draw of each prompt, as in the paper; other draws: {', '.join(bands)}"


def _unread(panel: Panel, ranking: Ranking) -> str:
    scores = compress(ranking.prompts.scores, ~ranking.read)
    counts = Counter(score.missing.get("gap", "unreadable") for score in scores)
    return f"{panel.setting}, {ranking.name}: without an answer: {causes(counts)}"
