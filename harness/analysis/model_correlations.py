"""Two numbers of each model beside each other: their rank correlation, and a dot a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.contracts.report import Axis, Figure, Points, Sheet
from harness.scoring.grouping import grouped

if TYPE_CHECKING:
    from harness.contracts.report import Cell


def correlation_sheet(
    what: str, groups: Mapping[tuple[str, str], Sequence[tuple[float, float]]]
) -> Sheet:
    """Spearman's ρ over the models of each group, named by dataset and part."""
    from harness.scoring.stats import Undefined, spearman

    rows: list[tuple[Cell, ...]] = []
    notes = []
    for (dataset, part), pairs in groups.items():
        rho = spearman([x for x, _ in pairs], [y for _, y in pairs])
        if isinstance(rho, Undefined):
            notes.append(f"{dataset}, {part}: no ρ: {rho.reason}")
        rows.append((dataset, part, len(pairs), None if isinstance(rho, Undefined) else rho))
    return Sheet(
        title=f"Spearman's ρ of {what}, over models",
        columns=("dataset", "of", "models", "ρ"),
        rows=tuple(rows),
        notes=tuple(notes),
        digits=2,
    )


def model_dots(
    title: str, models: Iterable[tuple[str, str, float | None, float | None]], *, x: str, y: str
) -> Iterator[Figure]:
    """A figure a dataset with a dot for each model that has both numbers."""
    dots = grouped(
        (dataset, Points(label=model, x=(across,), y=(up,), names=(model,)))
        for dataset, model, across, up in models
        if across is not None and up is not None
    )
    for dataset, marks in dots.items():
        yield Figure(
            title=title.format(dataset), x=Axis(label=x), y=Axis(label=y), marks=tuple(marks)
        )
