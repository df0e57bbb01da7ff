"""The scores of all models on all datasets, as the paper's Tables 3 and 4 show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from harness.results.report import Report, Sheet
from harness_gistbench.analyses.comparing import (
    TITLES,
    TableOptions,
    by_dataset,
    comparable,
    oracle_notes,
    people,
    percent,
    rescored,
    results,
    withheld,
)
from harness_gistbench.published import Published, published, rows

if TYPE_CHECKING:
    from harness import KeptTask

Options = TableOptions

FIRST = ("ig_f1", "is")
SECOND = ("ig_p", "ig_r")


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """IG F1 with IS and IG P with IG R, against the oracle of the runs given."""
    runs, notes = comparable(tasks, options)
    cells: dict[tuple[str, str], dict[str, float | None]] = {}
    hidden: list[str] = []
    for together in by_dataset(runs).values():
        for one, scores in rescored(together):
            found = results(one, scores)
            hidden += withheld(one, found)
            cells[one.model, one.dataset] = {
                name: percent(result.value) for name, result in found.items()
            }
    sheets = [
        crossed("Groundedness and specificity, medians in %", cells, FIRST, hidden),
        crossed("Precision and recall, medians in %", cells, SECOND),
    ]
    if options.published:
        sheets += [
            published_crossed(published(rows.Scores), FIRST),
            published_crossed(published(rows.PrecisionRecall), SECOND),
        ]
    return Report(sheets=(*sheets, people(runs)), notes=(*oracle_notes(runs), *notes))


def crossed(
    title: str,
    cells: Mapping[tuple[str, str], Mapping[str, float | None]],
    scores: Sequence[str],
    notes: Sequence[str] = (),
) -> Sheet:
    """Models by datasets, a column for each of the scores; None where there is no such run."""
    models = dict.fromkeys(model for model, _ in cells)
    datasets = dict.fromkeys(dataset for _, dataset in cells)
    columns = [(dataset, name) for dataset in datasets for name in scores]
    return Sheet(
        title=title,
        columns=("model", *(f"{dataset} {TITLES[name]}" for dataset, name in columns)),
        rows=tuple(
            (model, *(cells.get((model, dataset), {}).get(name) for dataset, name in columns))
            for model in models
        ),
        notes=tuple(notes),
    )


def published_crossed(table: Published[Any], scores: Sequence[str]) -> Sheet:
    """A published table in the same form."""
    cells = {}
    for row in table.rows:
        model, dataset, *values = msgspec.structs.astuple(row)
        cells[model, dataset.replace("_", " ")] = dict(zip(scores, values, strict=True))
    title = f"Published, {table.source}: {table.title} ({table.units})"
    return crossed(title, cells, scores, table.notes)
