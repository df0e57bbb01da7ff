"""Text within a drawing: names next to dots, and labels at the ends of reference lines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from harness.contracts.report import Figure, Line, Points, Rule
from harness.reporting.figure_marks import REFERENCE, area, largest_size
from harness.reporting.text import clean_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 200
"""The most names that are written: more are unreadable."""

GAP = 3.0
"""Points between a dot and its name."""

EDGE = 0.9
"""Reference lines that end beyond this share of the x axis are labelled right of the axes."""


def write_captions(figure: Figure, axes: Axes, renderer: Any) -> None:
    """Write the names of dots above them, moved sideways where they would leave the axes.

    The axes must have their final size and limits.
    """
    largest = largest_size(figure)
    dots = [
        (name, (mark.x[index], mark.y[index]), area(mark, index, largest))
        for mark in figure.marks
        if isinstance(mark, Points) and not mark.faint
        for index, name in enumerate(mark.names)
        if name
    ]
    for name, place, size in dots[:MOST]:
        text = axes.annotate(
            clean_text(name), place, xytext=(0, math.sqrt(size / math.pi) + GAP),
            textcoords="offset points", ha="center", va="bottom", fontsize=8, zorder=4,
            annotation_clip=False,
        )  # fmt: skip
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.6})
        text.set_in_layout(False)
        box = text.get_window_extent(renderer)
        missing = max(axes.bbox.x0 - box.x0, 0.0) + min(axes.bbox.x1 - box.x1, 0.0)
        text.set_x(missing / renderer.points_to_pixels(1.0))


def label_references(figure: Figure, axes: Axes) -> None:
    """Label the dashed lines and rules: right of the axes if they end there, else on the line.

    The axes must have their final limits.
    """
    for mark in figure.marks:
        if not mark.label:
            continue
        if isinstance(mark, Rule) and mark.of == "x":
            _label(mark.label, axes, (mark.at, 1.0), ("data", "axes fraction"), 90)
        elif isinstance(mark, Rule):
            _label(mark.label, axes, (1.0, mark.at), ("axes fraction", "data"))
        elif isinstance(mark, Line) and mark.dashed and (end := _last_inside(mark, axes)):
            _label(mark.label, axes, end, "axes fraction")


def _label(
    label: str, axes: Axes, place: tuple[float, float], coordinates: Any, rotation: int = 0
) -> None:
    """Write a label at the end of a reference; outside of the axes, room is made for it."""
    outside = not rotation and place[0] >= EDGE
    if outside:
        place = 1.0, place[1]
    text = axes.annotate(
        clean_text(label), place, xycoords=coordinates, textcoords="offset points",
        xytext=(GAP if outside else 0.0, 0.0), ha="left" if outside else "right",
        va="top" if rotation else "center", rotation=rotation, fontsize=7.5, color=REFERENCE,
        bbox=None if rotation else {"facecolor": "white", "edgecolor": "none", "pad": 1.0},
        zorder=1.8, annotation_clip=False,
    )  # fmt: skip
    text.set_in_layout(outside)


def _last_inside(mark: Line, axes: Axes) -> tuple[float, float] | None:
    """The last point of a line within the limits, as shares of the axes."""
    to_shares = axes.transScale + axes.transLimits
    for x, y in reversed(to_shares.transform(list(zip(mark.x, mark.y, strict=True)))):
        if 0.0 <= x <= 1.0 and 0.0 <= y <= 1.0:
            return float(x), float(y)
    return None
