"""Sheets as HTML: tables that a reader can sort."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.contracts.report import Sheet
from harness.reporting.grid import digits_of, format_cell, has_numbers
from harness.reporting.html.markup import Html, breakable, element, joined

LONG = 40
"""A longer text has a wide column, so that its row is not high on a phone."""


def sheet_html(sheet: Sheet, *, level: int = 4) -> Html:
    """A sheet below its title, in a table whose first column names the rows."""
    rows = [
        [
            Entry(
                format_cell(cell, digits_of(sheet, column)),
                cell if isinstance(cell, (int, float)) else None,
            )
            for column, cell in enumerate(row)
        ]
        for row in sheet.rows
    ]
    numbers = [has_numbers(sheet, column) for column in range(len(sheet.columns))]
    table = entries_html(sheet.title, sheet.columns, rows, numbers=numbers)
    return joined([
        element(f"h{level}", sheet.title) if sheet.title else None,
        table if sheet.rows else element("p", "no rows", class_="note"),
        notes_html(sheet.notes),
    ])  # fmt: skip


class Entry(NamedTuple):
    """What a cell shows, the number that it is sorted by if that is not its text, and its style."""

    shown: str | Html
    sort: float | None = None
    kind: str = ""


def entries_html(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Entry]],
    *,
    numbers: Sequence[bool],
    marks: Sequence[str] = (),
    foot: Sequence[Sequence[Entry]] = (),
) -> Html:
    """A table that a reader can sort by each column; a wide one scrolls within the page.

    A row of one cell spans all columns. A row with the mark `follows` stays behind the one before.
    """
    heads = [
        element("th", element("button", name, type="button"), scope="col", class_=_kind(number))
        for name, number in zip(columns, numbers, strict=True)
    ]
    lines = [
        element("tr", *_cells(row, numbers), class_=mark or None)
        for row, mark in zip(rows, marks or [""] * len(rows), strict=True)
    ]
    last = [element("tr", *_cells(row, numbers)) for row in foot]
    table = element(
        "table",
        element("caption", title, class_="hidden") if title else None,
        element("thead", element("tr", *heads)),
        element("tbody", *lines),
        element("tfoot", *last) if last else None,
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


def in_words(reason: str) -> str:
    """A reason why results are not comparable, as people say it."""
    return reason.replace("judged by rule: ", "judged by a rule, not by a model: ")


def _cells(row: Sequence[Entry], numbers: Sequence[bool]) -> Iterator[Html]:
    if len(row) == 1 < len(numbers):
        yield element("td", row[0].shown, colspan=len(numbers))
        return
    for column, (entry, number) in enumerate(zip(row, numbers, strict=True)):
        sort = None if entry.sort is None else repr(entry.sort)
        text, kinds = entry.shown, [_kind(number), entry.kind]
        if len(text) <= LONG and not isinstance(text, Html):
            text = breakable(text)
        elif column and not number and not isinstance(text, Html):
            kinds.append("long")
        kind = " ".join(filter(None, kinds)) or None
        scope = None if column else "row"
        name = "td" if column else "th"
        yield element(name, text, scope=scope, class_=kind, data_sort=sort)


def _kind(number: bool) -> str | None:
    return "number" if number else None
