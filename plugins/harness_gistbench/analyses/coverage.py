"""How much of the taxonomy the named interests reach, and how few categories hold most of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Annotated

import msgspec

from harness.analysis.percentages import share
from harness.base.errors import UsageError, one_of
from harness.contracts.report import Axis, Bars, Figure, Line, Report, Rule, Sheet
from harness_gistbench.analyses.compared_runs import Run, TableOptions, compare, grouped, published
from harness_gistbench.categories import categories, describe_taxonomy
from harness_gistbench.interests import folded

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

HELD = (50, 80, 90)
DISTINCT = (
    "distinct interests are strings, case and spaces aside, that have a category; those that could "
    "not be mapped are beside them and reach nothing"
)
CONCENTRATION_NOTES = (
    "categories from the largest on, as a share of the whole taxonomy, empty ones included",
    "each user's interest counts once, however many users have it; unmapped ones do not count",
)


class CoverageOptions(TableOptions, frozen=True, kw_only=True):
    """Which model is compared with all."""

    model: Annotated[
        str | None,
        msgspec.Meta(description="held against all; the one that reaches most unless given"),
    ] = None


@dataclass(frozen=True)
class Reach:
    """The distinct interests that were mapped, the categories they are in, and those unmapped."""

    interests: set[str] = field(default_factory=set)
    categories: set[int] = field(default_factory=set)
    unmapped: set[str] = field(default_factory=set)


def coverage(tasks: Sequence[FinishedTask], options: CoverageOptions) -> Report:
    """Categories with an interest, verified or not: by model, and of one model against all."""
    compared = compare(tasks, options)
    size = taxonomy_size(compared.runs)
    models = {model: reach(group) for model, group in compared.by_model().items()}
    chosen = options.model
    if chosen is None:
        chosen = max(models, key=lambda model: len(models[model].categories))
    one_of(chosen, models, f"there is no model {chosen!r} among the runs", listed="one of {}")
    together = {dataset: reach(group) for dataset, group in compared.by_dataset().items()}
    alone = grouped((run for run in compared.runs if run.model == chosen), lambda run: run.dataset)
    single = {dataset: reach(group) for dataset, group in alone.items()}
    sheets = [
        Sheet(
            title="Categories by model, all datasets",
            columns=(
                "model",
                "distinct interests",
                "categories",
                f"% of {size}",
                "unmapped interests",
            ),
            rows=tuple(
                (model, len(of.interests), *reached(of, size), len(of.unmapped))
                for model, of in models.items()
            ),
            notes=(DISTINCT,),
        ),
        dataset_sheet(chosen, single, together, size),
        *published(options, "coverage", "dataset_coverage"),
    ]
    figures = (
        bars("categories by model", models, size),
        bars(f"categories by dataset, {chosen} alone", single, size),
        bars("categories by dataset, all models", together, size),
    )
    return compared.report(sheets, figures, recall=False)


def reach(runs: Iterable[Run]) -> Reach:
    """What the interests of all users of some runs reach together."""
    found = Reach()
    for interest in (interest for run in runs for interest in run.interests()):
        if interest.category is None:
            found.unmapped.add(folded(interest.name))
        else:
            found.interests.add(folded(interest.name))
            found.categories.add(interest.category)
    return found


def taxonomy_size(runs: Iterable[Run]) -> int:
    """How many categories there are; UsageError where the runs have different ones."""
    used = {one.options.taxonomy for one in runs}
    if len(used) != 1:
        raise UsageError(
            "the runs use different taxonomies",
            found=", ".join(sorted(map(describe_taxonomy, used))) or "no run",
            expected="runs of one taxonomy",
        )
    return len(categories(used.pop()))


def reached(of: Reach, size: int) -> tuple[int, float | None]:
    """How many categories are reached, and what share of the taxonomy that is in %."""
    return len(of.categories), share(len(of.categories), size)


def dataset_sheet(
    chosen: str, single: Mapping[str, Reach], together: Mapping[str, Reach], size: int
) -> Sheet:
    """A row a dataset: one model alone, where it has a run, and all together."""
    rows: list[tuple[Cell, ...]] = []
    for dataset, every in together.items():
        alone = single.get(dataset)
        cells = (None, None) if alone is None else reached(alone, size)
        gain = None if alone is None else len(every.categories) - len(alone.categories)
        rows.append((dataset, *cells, *reached(every, size), gain))
    return Sheet(
        title=f"Categories by dataset: {chosen} and all models",
        columns=("dataset", "alone", f"alone % of {size}", "all", f"all % of {size}", "gain"),
        rows=tuple(rows),
    )


def bars(title: str, reached: Mapping[str, Reach], size: int) -> Figure:
    """A bar each, under the line of the whole taxonomy."""
    counts = {name: float(len(found.categories)) for name, found in reached.items()}
    return Figure(
        title=title,
        x=Axis(label=""),
        y=Axis(label="categories", low=0.0),
        marks=(
            Bars(label="categories", names=tuple(counts), values=tuple(counts.values())),
            Rule(label=f"all {size}", at=float(size)),
        ),
    )


def concentration(tasks: Sequence[FinishedTask], options: TableOptions) -> Report:
    """The shares of categories that hold 50, 80 and 90 % of the interests, by model and in all."""
    compared = compare(tasks, options)
    size = taxonomy_size(compared.runs)
    counts = {
        model: Counter(
            interest.category
            for run in group
            for interest in run.interests()
            if interest.category is not None
        )
        for model, group in compared.by_model().items()
    }
    if len(counts) > 1:
        counts["all models"] = sum(counts.values(), start=Counter[int]())
    largest = {model: sorted(of.values(), reverse=True) for model, of in counts.items()}
    rows: list[tuple[Cell, ...]] = []
    for model, one in largest.items():
        shares = (100 * holding(one, held) / size if one else None for held in HELD)
        rows.append((model, sum(one), *shares, gini(one, size) if one else None))
    sheet = Sheet(
        title="Concentration of interests, all datasets",
        columns=("model", "interests", *(f"% holding {held} %" for held in HELD), "Gini"),
        rows=tuple(rows),
        notes=CONCENTRATION_NOTES,
        digits=2,
    )
    figure = Figure(
        title="interests held by the largest categories",
        x=Axis(label="categories, %", low=0.0, high=100.0),
        y=Axis(label="interests, %", low=0.0, high=100.0),
        marks=tuple(curve(model, one, size) for model, one in largest.items() if one),
    )
    return compared.report([sheet, *published(options, "concentration")], [figure], recall=False)


def holding(counts: Sequence[int], percent: int) -> int:
    """How many of the largest categories hold at least that share of all interests."""
    enough = percent * sum(counts)
    return 1 + sum(100 * upto < enough for upto in accumulate(counts))


def gini(counts: Sequence[int], size: int) -> float:
    """The Gini coefficient over all categories of the taxonomy: 0 where all hold the same."""
    total = sum(counts)
    weighted = sum((size - rank) * count for rank, count in enumerate(counts))
    return (2 * weighted / total - size - 1) / size


def curve(model: str, counts: Sequence[int], size: int) -> Line:
    """From nothing to all interests."""
    total = sum(counts)
    return Line(
        label=model,
        x=tuple(100 * rank / size for rank in range(len(counts) + 1)),
        y=(0.0, *(100 * upto / total for upto in accumulate(counts))),
    )
