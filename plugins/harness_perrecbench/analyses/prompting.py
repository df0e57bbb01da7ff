"""The nine cells by method of prompting, as Table 2 has them."""

from __future__ import annotations

from collections import Counter
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
from harness_perrecbench.analyses.rows import Row, by_label, cells_in, rows_of
from harness_perrecbench.analyses.settings import method_of
from harness_perrecbench.published import published, rows

if TYPE_CHECKING:
    from harness import KeptTask


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What may be asked of the analysis."""

    published: Annotated[bool, msgspec.Meta(description="show the paper's Table 2 below")] = False


COLUMNS = ("ptc", "ptc_published")


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """A table for each model and definition of tau, a row a method."""
    models = by_label(rows_of(tasks, COLUMNS))
    sheets = [of_model(label, found, name) for label, found in models.items() for name in COLUMNS]
    if options.published:
        sheets.append(published_table(published(rows.Prompting), first=("prompting",)))
    return Report(sheets=tuple(sheets))


def of_model(label: str, found: Sequence[Row], name: str) -> Sheet:
    """One model's methods, by one definition."""
    cells = cells_in(found, name)
    methods = [method_of(row.first) for row in found]
    times = Counter(methods)
    lines = [
        line_of(row, name, cells, called=method if times[method] == 1 else row.name)
        for row, method in zip(found, methods, strict=True)
    ]
    notes = [
        told for row, line in zip(found, lines, strict=True) for told in remarks(row, name, line)
    ]
    return table(
        f"{label}: {name} by method, groups that cannot be read counted 0",
        lines,
        cells,
        first=("prompting",),
        notes=(NARROW, *notes),
    )
