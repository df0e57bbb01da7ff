"""Sheets as HTML: tables that a reader can sort."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.contracts.report import Cell, Sheet
from harness.reporting.html.markup import Html, breakable, element, joined
from harness.reporting.report_tables import digits_of, format_cell, has_numbers

LONG = 40
"""A longer text has a wide column, so that its row is not high on a phone."""


def sheet_html(sheet: Sheet, *, level: int = 4, marks: Sequence[str] = ()) -> Html:
    """A sheet below its title; `marks` are the classes of its rows, such as `published`.

    A reader sorts it by any column, and a wide one scrolls within the page.
    """
    table = table_html(sheet, marks)
    return joined([
        element(f"h{level}", sheet.title) if sheet.title else None,
        table if sheet.rows else element("p", "no rows", class_="note"),
        notes_html(sheet.notes),
    ])  # fmt: skip


def table_html(sheet: Sheet, marks: Sequence[str] = ()) -> Html:
    """The table of a sheet, whose first column names the rows."""
    rows = [[_entry(sheet, column, cell) for column, cell in enumerate(row)] for row in sheet.rows]
    numbers = [has_numbers(sheet, column) for column in range(len(sheet.columns))]
    return entries_html(sheet.title, sheet.columns, rows, numbers=numbers, marks=marks)


class Entry(NamedTuple):
    """What a cell shows, and the number that it is sorted by if that is not the text itself."""

    shown: str | Html
    sort: float | None = None


def entries_html(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Entry]],
    *,
    numbers: Sequence[bool],
    marks: Sequence[str] = (),
) -> Html:
    """A table that a reader can sort by each column; a wide one scrolls within the page."""
    heads = [
        element("th", element("button", name, type="button"), scope="col", class_=_kind(number))
        for name, number in zip(columns, numbers, strict=True)
    ]
    lines = [
        element("tr", *map(_cell, range(len(row)), row, numbers), class_=mark or None)
        for row, mark in zip(rows, marks or [""] * len(rows), strict=True)
    ]
    table = element(
        "table",
        element("caption", title, class_="hidden") if title else None,
        element("thead", element("tr", *heads)),
        element("tbody", *lines),
        class_="sortable",
    )
    return element("div", table, class_="wide", tabindex="0", role="region",
                   aria_label=title or "table")  # fmt: skip


def notes_html(notes: Iterable[str]) -> Html:
    """Each note as a paragraph; one that says that results are not comparable is a stamp."""
    return joined(
        element("p", note, class_="stamp" if note.startswith("NOT COMPARABLE") else "note")
        for note in notes
    )


def _entry(sheet: Sheet, column: int, cell: Cell) -> Entry:
    sort = cell if isinstance(cell, (int, float)) else None
    return Entry(format_cell(cell, digits_of(sheet, column)), sort)


def _cell(column: int, entry: Entry, number: bool) -> Html:
    """A cell; that of the first column names the row."""
    sort = None if entry.sort is None else repr(entry.sort)
    text = entry.shown
    long = len(text) > LONG
    if not (isinstance(text, Html) or long):
        text = breakable(text)
    if column:
        kind = _kind(number) or ("long" if long else None)
        return element("td", text, class_=kind, data_sort=sort)
    return element("th", text, scope="row", class_=_kind(number), data_sort=sort)


def _kind(number: bool) -> str | None:
    return "number" if number else None
