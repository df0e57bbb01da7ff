"""Text within a drawing: names next to dots, and labels at the ends of reference lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.contracts.report import Figure, Line, Points, Rule
from harness.reporting.figure_marks import REFERENCE, area, largest_size
from harness.reporting.text import clean_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (0.8, 0.8), (-0.8, 0.8), (0.8, -0.8), (-0.8, -0.8))
"""The sides of a dot where its name may be, in the order in which they are tried."""

MOST = 200
"""The most names that are written: more are unreadable, and each is compared with all others."""

GAP = 3.0
"""Points between a dot and its name."""


EDGE = 0.9
"""Reference lines that end beyond this share of the x axis are labelled right of the axes."""


def write_captions(figure: Figure, axes: Axes, labels: Sequence[Annotation], renderer: Any) -> None:
    """Write the names of dots, where possible without hiding dots and labels of references.

    The axes must have their final size and limits.
    """
    taken = [label.get_window_extent(renderer) for label in labels]
    dots = list(_dots(figure))
    taken += [_around(dot, axes) for dot in dots]
    for dot in [dot for dot in dots if dot.name][:MOST]:
        text = axes.annotate(
            clean_text(dot.name), (dot.x, dot.y), xytext=(0, 0), textcoords="offset points",
            fontsize=8, zorder=4, annotation_clip=False,
        )  # fmt: skip
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.6})
        text.set_in_layout(False)
        taken.append(_place(text, dot, taken, axes.bbox, renderer))


class _Dot(NamedTuple):
    x: float
    y: float
    area: float
    name: str


def _dots(figure: Figure) -> Iterator[_Dot]:
    marks = [mark for mark in figure.marks if isinstance(mark, Points)]
    largest = largest_size(figure)
    for mark in marks:
        for index, (x, y) in enumerate(zip(mark.x, mark.y, strict=True)):
            if not mark.faint:
                name = mark.names[index] if mark.names else ""
                yield _Dot(x, y, area(mark, index, largest), name)


def _place(text: Any, dot: _Dot, taken: list[Bbox], inside: Bbox, renderer: Any) -> Bbox:
    """Move a name to the side of its dot where it hides least, and return its box."""
    hidden = []
    for side in SIDES:
        _put(text, side, dot.area)
        hidden.append(_hidden(text.get_window_extent(renderer), taken, inside))
        if not hidden[-1]:
            break
    _put(text, SIDES[hidden.index(min(hidden))], dot.area)
    box: Bbox = text.get_window_extent(renderer)
    return box


def _put(text: Any, side: tuple[float, float], size: float) -> None:
    across, up = side
    away = math.sqrt(size / math.pi) + GAP
    text.set_position((across * away, up * away))
    text.set_ha("left" if across > 0 else "right" if across < 0 else "center")
    text.set_va("bottom" if up > 0 else "top" if up < 0 else "center")


def _hidden(box: Bbox, taken: list[Bbox], inside: Bbox) -> float:
    """The area of other boxes that a box hides, plus its own area outside `inside`."""
    hidden = sum(_overlap(box.extents, other.extents) for other in taken)
    shown = _overlap(box.extents, inside.extents)
    return float(hidden + max(box.width * box.height - shown - 1e-6, 0.0))


def _overlap(one: Sequence[float], other: Sequence[float]) -> float:
    """The area that two boxes share; each is given as left, low, right, high."""
    left, low, right, high = one
    across = min(right, other[2]) - max(left, other[0])
    up = min(high, other[3]) - max(low, other[1])
    return across * up if across > 0 and up > 0 else 0.0


def _around(dot: _Dot, axes: Axes) -> Bbox:
    from matplotlib.transforms import Bbox as Boxed

    across, up = axes.transData.transform((dot.x, dot.y))
    radius = math.sqrt(dot.area / math.pi) * axes.get_figure().dpi / 72  # type: ignore[union-attr]
    return Boxed.from_bounds(across - radius, up - radius, 2 * radius, 2 * radius)


def label_references(figure: Figure, axes: Axes) -> list[Annotation]:
    """Label the dashed lines and rules: right of the axes if they end there, else on the line.

    The axes must have their final limits.
    """
    labels = []
    for mark in figure.marks:
        if not mark.label:
            continue
        if isinstance(mark, Rule) and mark.of == "x":
            labels.append(_label(mark.label, axes, (mark.at, 1.0), ("data", "axes fraction"), 90))
        elif isinstance(mark, Rule):
            labels.append(_label(mark.label, axes, (1.0, mark.at), ("axes fraction", "data")))
        elif isinstance(mark, Line) and mark.dashed and (end := _last_inside(mark, axes)):
            labels.append(_label(mark.label, axes, end, "axes fraction"))
    return labels


def _label(
    label: str, axes: Axes, place: tuple[float, float], coordinates: Any, rotation: int = 0
) -> Annotation:
    """A label at the end of a reference; if it is outside of the axes, room is made for it."""
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
    return text


def _last_inside(mark: Line, axes: Axes) -> tuple[float, float] | None:
    """The last point of a line within the limits, as shares of the axes."""
    to_shares = axes.transScale + axes.transLimits
    for x, y in reversed(to_shares.transform(list(zip(mark.x, mark.y, strict=True)))):
        if 0.0 <= x <= 1.0 and 0.0 <= y <= 1.0:
            return float(x), float(y)
    return None
