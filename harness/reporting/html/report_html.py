"""Reports as HTML: tables that a reader can sort, and figures as inline SVG with their data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple
from xml.etree import ElementTree

from harness.base.errors import INSTALL_ANALYSIS
from harness.contracts.report import (
    Bars,
    Boxes,
    Cell,
    Figure,
    Line,
    Mark,
    Panels,
    Points,
    Report,
    Rule,
    Sheet,
    Spans,
)
from harness.reporting.figures import grid_of
from harness.reporting.grid import digits_of, format_cell, has_numbers
from harness.reporting.html.markup import Html, breakable, details_html, element, joined, shown

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


SVG = "http://www.w3.org/2000/svg"
DRAWN = frozenset({"svg", "g", "defs", "clipPath", "path", "rect", "text", "tspan", "use", "image"})
"""The elements of a drawing; others are dropped."""

MOST_ROWS = 500
"""A table of more rows helps nobody; a note says how many there are."""

DIGITS = 3

_FONT = re.compile(r"(?:(?P<weight>bold|\d{3}) )?(?P<size>[\d.]+px) (?P<family>.+)")


def report_html(report: Report) -> Html:
    """The report's notes, its figures and its sheets."""
    return joined([
        notes_html(report.notes),
        *(figure_html(figure) for figure in report.figures),
        *(sheet_html(sheet) for sheet in report.sheets),
    ])  # fmt: skip


def figure_html(figure: Figure | Panels) -> Html:
    """The figure with its caption, the warning above it, and its data in a table to be opened."""
    drawn = _drawn(figure)
    data = [sheet_html(sheet, level=5) for sheet in figure_sheets(figure)]
    missing = f"The figure is missing, as matplotlib is not installed: {INSTALL_ANALYSIS}"
    drawings = figure.figures if isinstance(figure, Panels) else (figure,)
    grid = any(grid_of(each) is not None for each in drawings)
    return element(
        "figure",
        element("p", in_words(figure.stamp), class_="stamp") if figure.stamp else None,
        drawn or element("p", missing, class_="note"),
        element("figcaption", element("strong", figure.title), " ", figure.note),
        details_html(f"The data of “{figure.title}”", *data, open=drawn is None) if data else None,
        class_="light" if grid else None,
    )  # fmt: skip


def _drawn(figure: Figure | Panels) -> Html | None:
    """The drawing, whose stamp and note are text of the page; None without matplotlib."""
    from msgspec.structs import replace

    try:
        import matplotlib  # noqa: F401 - only checks that it is installed
    except ImportError:
        return None
    from harness.reporting.figures import figure_bytes

    svg = figure_bytes(replace(figure, stamp="", note=""))
    # Its ids are those of no other drawing.
    mark = f"f{sha256(svg).hexdigest()[:8]}-"
    named = {"role": "img", "aria-label": figure.title}
    return _element(ElementTree.fromstring(svg), mark, named)


def _element(node: ElementTree.Element, mark: str, more: dict[str, str]) -> Html:
    space, _, name = node.tag.rpartition("}")
    if name not in DRAWN or space != f"{{{SVG}":
        return Html("")
    found: dict[str, str] = {}
    for key, value in node.attrib.items():
        attribute = key.rpartition("}")[2]
        if attribute == "style":
            found |= _style(value)
        elif attribute == "id":
            found["id"] = mark + value
        elif attribute == "href" and value.startswith("#"):
            found[attribute] = f"#{mark}{value[1:]}"
        elif attribute != "href" or value.startswith("data:image/png;"):
            found[attribute] = value
    if name == "svg":
        found.pop("height", None)  # it follows from the width, which may shrink
    attributes = {key: value.replace("url(#", f"url(#{mark}") for key, value in found.items()}
    text = shown(node.text) if node.text and node.text.strip() else None
    inside = (_element(child, mark, {}) for child in node)
    return element(name, text, *inside, **(attributes | more))


def _style(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(";"):
        name, _, value = (one.strip() for one in part.partition(":"))
        if name == "font" and (font := _FONT.fullmatch(value)):
            found |= {"font-size": font["size"], "font-family": font["family"]}
            found |= {"font-weight": font["weight"]} if font["weight"] else {}
        elif name and value:
            found[name] = value
    return found


def figure_sheets(figure: Figure | Panels) -> list[Sheet]:
    """A table for each kind of mark in each panel, without lines that are a reference."""
    if isinstance(figure, Panels):
        return [sheet for panel in figure.figures for sheet in figure_sheets(panel)]
    by_columns: dict[tuple[str, ...], list[tuple[Cell, ...]]] = {}
    for mark in figure.marks:
        if not (isinstance(mark, Line) and mark.dashed):
            columns, rows = _data_of(mark, figure)
            by_columns.setdefault(columns, []).extend(rows)
    return [
        Sheet(
            title=figure.title, columns=columns, rows=tuple(cells[:MOST_ROWS]), digits=DIGITS,
            notes=(f"the first {MOST_ROWS:,} of {len(cells):,} rows",) * (len(cells) > MOST_ROWS),
        )
        for columns, cells in by_columns.items()
    ]  # fmt: skip


def _data_of(mark: Mark, figure: Figure) -> tuple[tuple[str, ...], Iterator[tuple[Cell, ...]]]:
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
