"""The data of a figure as tables, for people who cannot see it; reference lines are no data."""

from __future__ import annotations

from collections.abc import Iterator

from harness.contracts.report import (
    Bars,
    Boxes,
    Cell,
    Figure,
    Line,
    Mark,
    Panels,
    Points,
    Rule,
    Sheet,
    Spans,
)

MOST_ROWS = 500
"""A table of more rows helps nobody; a note says how many there are."""

DIGITS = 3


def figure_sheets(figure: Figure | Panels) -> list[Sheet]:
    """A table for each kind of mark in each panel, without lines that are a reference."""
    if isinstance(figure, Panels):
        return [sheet for panel in figure.figures for sheet in figure_sheets(panel)]
    by_columns: dict[tuple[str, ...], list[tuple[Cell, ...]]] = {}
    for mark in figure.marks:
        if not (isinstance(mark, Line) and mark.dashed):
            columns, rows = _table(mark, figure)
            by_columns.setdefault(columns, []).extend(rows)
    return [
        Sheet(
            title=figure.title, columns=columns, rows=tuple(cells[:MOST_ROWS]), digits=DIGITS,
            notes=(f"the first {MOST_ROWS:,} of {len(cells):,} rows",) * (len(cells) > MOST_ROWS),
        )
        for columns, cells in by_columns.items()
    ]  # fmt: skip


def _table(mark: Mark, figure: Figure) -> tuple[tuple[str, ...], Iterator[tuple[Cell, ...]]]:
    x, y = figure.x.label or "x", figure.y.label or "y"
    if isinstance(mark, Points | Line):
        if isinstance(mark, Points) and (mark.names or mark.sizes):
            names = mark.names or [""] * len(mark.x)
            sizes = mark.sizes or [None] * len(mark.x)
            dots = zip(names, mark.x, mark.y, sizes, strict=True)
            return ("", "name", x, y, "size"), ((mark.label, *dot) for dot in dots)
        return ("", x, y), ((mark.label, *dot) for dot in zip(mark.x, mark.y, strict=True))
    if isinstance(mark, Rule):
        return ("reference", "axis", "at"), iter(
            [(mark.label, x if mark.of == "x" else y, mark.at)]
        )
    if isinstance(mark, Bars):
        bars = zip(mark.names, mark.values, strict=True)
        return ("", x, y), ((mark.label, name, value) for name, value in bars)
    if isinstance(mark, Boxes):
        from statistics import median

        boxes = zip(mark.names, mark.values, strict=True)
        return ("", x, "values", "least", "middle", "largest"), (
            (
                mark.label, name, len(values), min(values, default=None),
                median(values) if values else None, max(values, default=None),
            )
            for name, values in boxes
        )  # fmt: skip
    if isinstance(mark, Spans):
        spans = zip(mark.names, mark.low, mark.value, mark.high, strict=True)
        return ("", "name", "low", x, "high"), ((mark.label, *span) for span in spans)
    rows = zip(mark.down, mark.values, strict=True)
    return (mark.label, *mark.across), ((name, *values) for name, values in rows)
