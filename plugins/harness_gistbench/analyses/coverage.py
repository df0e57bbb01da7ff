"""How much of the taxonomy the named interests reach: by model, and of one model against all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import msgspec

from harness.errors import UsageError, did_you_mean
from harness.results.report import Axis, Bars, Cell, Figure, Report, Rule, Sheet
from harness_gistbench.analyses.comparing import (
    Run,
    TableOptions,
    by_dataset,
    by_model,
    comparable,
    people,
    share,
)
from harness_gistbench.interests import folded
from harness_gistbench.published import published_sheet, rows
from harness_gistbench.taxonomy import categories, told

if TYPE_CHECKING:
    from harness import KeptTask


class Options(TableOptions, frozen=True, kw_only=True):
    """What may be asked of the analysis."""

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


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """Categories with an interest, verified or not."""
    runs, notes = comparable(tasks, options)
    size = taxonomy_size(runs)
    models = {model: reach(group) for model, group in by_model(runs).items()}
    chosen = chosen_model(models, options.model)
    together = {dataset: reach(group) for dataset, group in by_dataset(runs).items()}
    alone = by_dataset(one for one in runs if one.model == chosen)
    single = {dataset: reach(group) for dataset, group in alone.items()}
    sheets = [model_sheet(models, size), dataset_sheet(chosen, single, together, size)]
    if options.published:
        sheets += [published_sheet(rows.Coverage), published_sheet(rows.DatasetCoverage)]
    return Report(
        sheets=(*sheets, people(runs)),
        figures=(
            bars("categories by model", models, size),
            bars(f"categories by dataset, {chosen} alone", single, size),
            bars("categories by dataset, all models", together, size),
        ),
        notes=notes,
    )


def reach(runs: Iterable[Run]) -> Reach:
    """What the interests of all users of some runs reach together."""
    found = Reach()
    for one in runs:
        for _, profile in one.profiles():
            for interest in profile.interests:
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
            found=", ".join(sorted(map(told, used))) or "no run",
            expected="runs of one taxonomy",
        )
    return len(categories(used.pop()))


def chosen_model(models: Mapping[str, Reach], asked: str | None) -> str:
    """The model asked for; of all the one that reaches most, the first where several do."""
    if asked is None:
        return max(models, key=lambda model: len(models[model].categories))
    if asked not in models:
        raise UsageError(
            f"there is no model {asked!r} among the runs",
            expected=f"one of {', '.join(models)}",
            hint=did_you_mean(asked, models),
        )
    return asked


def model_sheet(models: Mapping[str, Reach], size: int) -> Sheet:
    """A row a model, over all datasets."""
    return Sheet(
        title="Categories by model, all datasets",
        columns=("model", "distinct interests", "categories", f"% of {size}", "unmapped interests"),
        rows=tuple(
            (
                model,
                len(of.interests),
                len(of.categories),
                share(len(of.categories), size),
                len(of.unmapped),
            )
            for model, of in models.items()
        ),
        notes=(
            "distinct interests are strings, case and spaces aside, that have a category; those "
            "that could not be mapped are beside them and reach nothing",
        ),
    )


def dataset_sheet(
    chosen: str, single: Mapping[str, Reach], together: Mapping[str, Reach], size: int
) -> Sheet:
    """A row a dataset: one model alone, where it has a run, and all together."""

    def row(dataset: str) -> tuple[Cell, ...]:
        every = len(together[dataset].categories)
        if dataset not in single:
            return (dataset, None, None, every, share(every, size), None)
        alone = len(single[dataset].categories)
        return (dataset, alone, share(alone, size), every, share(every, size), every - alone)

    return Sheet(
        title=f"Categories by dataset: {chosen} and all models",
        columns=("dataset", "alone", f"alone % of {size}", "all", f"all % of {size}", "gain"),
        rows=tuple(row(dataset) for dataset in together),
    )


def bars(title: str, reached: Mapping[str, Reach], size: int) -> Figure:
    """A bar each, under the line of the whole taxonomy."""
    counts = {name: len(found.categories) for name, found in reached.items()}
    return Figure(
        title=title,
        x=Axis(label=""),
        y=Axis(label="categories", low=0.0),
        marks=(
            Bars(
                label="categories",
                names=tuple(counts),
                values=tuple(float(count) for count in counts.values()),
            ),
            Rule(label=f"all {size}", at=float(size)),
        ),
    )
