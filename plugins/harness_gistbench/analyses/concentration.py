"""How few categories hold most interests: cumulated shares and Gini coefficients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from harness.results.report import Axis, Cell, Figure, Line, Report, Sheet
from harness_gistbench.analyses.comparing import Run, TableOptions, by_model, comparable, people
from harness_gistbench.analyses.coverage import taxonomy_size
from harness_gistbench.published import published_sheet, rows

if TYPE_CHECKING:
    from harness import KeptTask

Options = TableOptions

HELD = (50, 80, 90)
NOTES = (
    "categories from the largest on, as a share of the whole taxonomy, empty ones included",
    "each user's interest counts once, however many users have it; unmapped ones do not count",
)


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """The shares of categories that hold 50, 80 and 90 % of the interests, by model and in all."""
    runs, notes = comparable(tasks, options)
    size = taxonomy_size(runs)
    counts = {model: interests(group) for model, group in by_model(runs).items()}
    if len(counts) > 1:
        counts["all models"] = sum(counts.values(), start=Counter[int]())
    largest = {model: sorted(of.values(), reverse=True) for model, of in counts.items()}
    sheets = [table(largest, size)]
    if options.published:
        sheets.append(published_sheet(rows.Concentration))
    return Report(sheets=(*sheets, people(runs)), figures=(figure(largest, size),), notes=notes)


def interests(runs: Iterable[Run]) -> Counter[int]:
    """How many interests of all users each category holds."""
    return Counter(
        interest.category
        for one in runs
        for _, profile in one.profiles()
        for interest in profile.interests
        if interest.category is not None
    )


def table(largest: Mapping[str, Sequence[int]], size: int) -> Sheet:
    """A row a model."""
    return Sheet(
        title="Concentration of interests, all datasets",
        columns=("model", "interests", *(f"% holding {held} %" for held in HELD), "Gini"),
        rows=tuple(row(model, counts, size) for model, counts in largest.items()),
        notes=NOTES,
        digits=2,
    )


def row(model: str, counts: Sequence[int], size: int) -> tuple[Cell, ...]:
    """The cells of one model's counts, largest first."""
    if not counts:
        return (model, 0, *(None for _ in HELD), None)
    shares = (100 * holding(counts, held) / size for held in HELD)
    return (model, sum(counts), *shares, gini(counts, size))


def holding(counts: Sequence[int], percent: int) -> int:
    """How many of the largest categories hold at least that share of all interests."""
    enough = percent * sum(counts)
    return 1 + sum(100 * upto < enough for upto in accumulate(counts))


def gini(counts: Sequence[int], size: int) -> float:
    """The Gini coefficient over all categories of the taxonomy: 0 where all hold the same."""
    total = sum(counts)
    weighted = sum((size - rank) * count for rank, count in enumerate(counts))
    return (2 * weighted / total - size - 1) / size


def figure(largest: Mapping[str, Sequence[int]], size: int) -> Figure:
    """The cumulated share of interests over that of categories, a curve a model."""
    return Figure(
        title="interests held by the largest categories",
        x=Axis(label="categories, %", low=0.0, high=100.0),
        y=Axis(label="interests, %", low=0.0, high=100.0),
        marks=tuple(curve(model, counts, size) for model, counts in largest.items() if counts),
    )


def curve(model: str, counts: Sequence[int], size: int) -> Line:
    """From nothing to all interests."""
    total = sum(counts)
    return Line(
        label=model,
        x=tuple(100 * rank / size for rank in range(len(counts) + 1)),
        y=(0.0, *(100 * upto / total for upto in accumulate(counts))),
    )
