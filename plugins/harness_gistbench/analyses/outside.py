"""Models' groundedness against any figure that they have elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec

from harness.errors import UsageError
from harness.results.beside import names_of, read_figures
from harness.results.report import Axis, Figure, Points, Report, Sheet
from harness_gistbench.analyses.comparing import (
    ComparisonOptions,
    by_dataset,
    comparable,
    oracle_notes,
    percent,
    rescored,
    results,
    withheld,
)

if TYPE_CHECKING:
    from harness import KeptTask
    from harness.results.report import Cell


class Options(ComparisonOptions, frozen=True, kw_only=True):
    """Where the figures are, and which of them count."""

    figures: Annotated[str, msgspec.Meta(description="table with a row a model")]
    column: Annotated[str, msgspec.Meta(description="the column that holds the figure")]
    model: Annotated[str, msgspec.Meta(description="the column that names the model")] = "model"
    above: Annotated[
        float | None,
        msgspec.Meta(description="correlate also over the models whose figure is above this"),
    ] = None
    published: Annotated[bool, msgspec.Meta(description="show the paper's table beside")] = False


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """One model on one dataset: its median IG F1 in per cent, and its figure elsewhere."""

    dataset: str
    model: str
    users: int
    ig_f1: float | None
    figure: float | None


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """Spearman's ρ over models of median IG F1 and the figures, all of them and above a cut."""
    from harness_gistbench.published import published_sheet, rows

    runs, left_out = comparable(tasks, options)
    figures = read_figures(options.figures, model=options.model, column=options.column)
    pairs: list[Pair] = []
    notes: list[str] = []
    for together in by_dataset(runs).values():
        for one, scores in rescored(together):
            found = results(one, scores)
            notes += withheld(one, found)
            names = names_of(one.model, one.task.summary.model)
            pairs.append(
                Pair(
                    dataset=one.dataset,
                    model=one.model,
                    users=found["ig_f1"].n,
                    ig_f1=percent(found["ig_f1"].value),
                    figure=next((figures[name] for name in names if name in figures), None),
                )
            )
    if all(pair.figure is None for pair in pairs):
        raise UsageError(
            "no model of the runs has a figure",
            where=options.figures,
            found=", ".join(figures),
            expected=", ".join(dict.fromkeys(pair.model for pair in pairs)),
            hint="name the models as the runs do",
        )
    sheets = [models_sheet(pairs, options.column, notes), correlations(pairs, options)]
    if options.published:
        sheets.append(published_sheet(rows.InstructionFollowing))
    return Report(
        sheets=tuple(sheets),
        figures=tuple(drawn(pairs, options.column)),
        notes=(*oracle_notes(runs), *left_out),
    )


def models_sheet(pairs: Sequence[Pair], column: str, notes: Sequence[str]) -> Sheet:
    """Table 6: both figures of each model."""
    without = [pair.model for pair in pairs if pair.figure is None]
    if without:
        names = ", ".join(dict.fromkeys(without))
        notes = (*notes, f"no figure, and so left out of the correlation: {names}")
    return Sheet(
        title=f"Median IG F1 in % and {column}",
        columns=("dataset", "model", "users", "IG F1", column),
        rows=tuple((one.dataset, one.model, one.users, one.ig_f1, one.figure) for one in pairs),
        notes=tuple(notes),
    )


def correlations(pairs: Sequence[Pair], options: Options) -> Sheet:
    """Spearman's ρ for each dataset, over all models and over those above the cut."""
    from harness.stats import Undefined, spearman

    rows: list[tuple[Cell, ...]] = []
    notes = []
    for dataset, both in both_known(pairs).items():
        groups = {"all": both}
        if options.above is not None:
            above = [pair for pair in both if pair[0] > options.above]
            groups[f"{options.column} above {options.above:g}"] = above
        for name, chosen in groups.items():
            rho = spearman([x for x, _ in chosen], [y for _, y in chosen])
            if isinstance(rho, Undefined):
                notes.append(f"{dataset}, {name}: no ρ: {rho.reason}")
            value = None if isinstance(rho, Undefined) else rho
            rows.append((dataset, name, len(chosen), value))
    return Sheet(
        title=f"Spearman's ρ of {options.column} and median IG F1, over models",
        columns=("dataset", "of", "models", "ρ"),
        rows=tuple(rows),
        notes=tuple(notes),
        digits=2,
    )


def both_known(pairs: Sequence[Pair]) -> Mapping[str, list[tuple[float, float]]]:
    """Figure and median of each model that has both, by dataset."""
    known: dict[str, list[tuple[float, float]]] = {}
    for pair in pairs:
        both = known.setdefault(pair.dataset, [])
        if pair.figure is not None and pair.ig_f1 is not None:
            both.append((pair.figure, pair.ig_f1))
    return known


def drawn(pairs: Sequence[Pair], column: str) -> Iterator[Figure]:
    """A dot a model."""
    for dataset in dict.fromkeys(pair.dataset for pair in pairs):
        marks = tuple(
            Points(label=one.model, x=(one.figure,), y=(one.ig_f1,), names=(one.model,))
            for one in pairs
            if one.dataset == dataset and one.figure is not None and one.ig_f1 is not None
        )
        if marks:
            yield Figure(
                title=f"{column} and median IG F1, {dataset}",
                x=Axis(label=column),
                y=Axis(label="median IG F1, %"),
                marks=marks,
            )
