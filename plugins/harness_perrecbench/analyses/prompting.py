"""The nine cells by method of prompting, as Table 2 has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec

from harness.results.report import Report, Sheet
from harness_perrecbench.analyses.layout import (
    NARROW,
    line_of,
    published_table,
    remarks,
    table,
)
from harness_perrecbench.analyses.rows import Row, by_model, cells_in, rows_of
from harness_perrecbench.analyses.settings import method_of, place_of_method
from harness_perrecbench.published import published, rows

if TYPE_CHECKING:
    from harness import KeptTask


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What may be asked of the analysis."""

    published: Annotated[bool, msgspec.Meta(description="show the paper's Table 2 below")] = False


COLUMNS = ("ptc", "ptc_published")


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """A table for each model and definition of tau, a row a method."""
    models = by_model(rows_of(tasks, COLUMNS))
    sheets = [of_model(model, found, name) for model, found in models.items() for name in COLUMNS]
    if options.published:
        sheets.append(published_table(published(rows.Prompting), first=("prompting",)))
    return Report(sheets=tuple(sheets))


def of_model(model: str, found: Sequence[Row], name: str) -> Sheet:
    """One model's methods in the order of Table 2, by one definition."""
    cells = cells_in(found, name)
    ordered = sorted(found, key=lambda row: place_of_method(row.first))
    lines = [line_of(row, name, cells, called=_called(row)) for row in ordered]
    notes = [
        told for row, line in zip(ordered, lines, strict=True) for told in remarks(row, name, line)
    ]
    return table(
        f"{model}: {name} by method, groups that cannot be read counted 0",
        lines,
        cells,
        first=("prompting",),
        notes=(NARROW, *notes),
    )


def _called(row: Row) -> str:
    method = method_of(row.first)
    return f"{method} ({row.apart})" if row.apart else method
