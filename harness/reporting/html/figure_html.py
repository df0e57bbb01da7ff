"""Reports and figures as HTML: inline SVG from `harness.reporting.figures`, and its data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
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
from harness.reporting.html.markup import Html, details_html, element, joined, shown
from harness.reporting.html.sheet_html import in_words, notes_html, sheet_html

SVG = "http://www.w3.org/2000/svg"
DRAWN = frozenset({"svg", "g", "defs", "clipPath", "path", "rect", "text", "tspan", "use", "image"})
"""The elements of a drawing; others are dropped."""

MOST_ROWS = 500
"""A table of more rows helps nobody; a note says how many there are."""

DIGITS = 3

_FONT = re.compile(r"(?:(?P<weight>bold|\d{3}) )?(?P<size>[\d.]+px) (?P<family>.+)")


def report_html(report: Report, *, level: int = 4) -> Html:
    """The report's notes, its figures and its sheets, whose titles are headings of this level."""
    return joined([
        notes_html(report.notes),
        *(figure_html(figure) for figure in report.figures),
        *(sheet_html(sheet, level=level) for sheet in report.sheets),
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
