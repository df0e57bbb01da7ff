"""Reports and figures as HTML: inline SVG from `harness.reporting.figures`, and its data.

A page allows no style but its own, so the styles of a drawing become attributes.
"""

from __future__ import annotations

import re
from hashlib import sha256
from xml.etree import ElementTree

from harness.base.errors import INSTALL_ANALYSIS
from harness.contracts.report import Figure, Panels, Report
from harness.reporting.figure_marks import grid_of
from harness.reporting.html.figure_data import figure_sheets
from harness.reporting.html.markup import Html, element, joined, shown
from harness.reporting.html.sheet_html import in_words, notes_html, sheet_html

SVG = "http://www.w3.org/2000/svg"
DRAWN = frozenset({"svg", "g", "defs", "clipPath", "path", "rect", "text", "tspan", "use", "image"})
"""The elements of a drawing; others are dropped."""

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
        element("details", element("summary", f"The data of “{figure.title}”"), *data,
                open=drawn is None) if data else None,
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
