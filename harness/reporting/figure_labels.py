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
    from matplotlib.transforms import Bbox

SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (0.8, 0.8), (-0.8, 0.8), (0.8, -0.8), (-0.8, -0.8))
"""The sides of a dot where its name may be, in the order in which they are tried."""

MOST = 200
"""The most names that are written: more are unreadable, and each is compared with all others."""

GAP = 3.0
"""Points between a dot and its name."""


def write_captions(figure: Figure, axes: Axes, renderer: Any) -> None:
    """Write all names and labels, where possible without hiding anything.

    The axes must have their final size and limits.
    """
    taken = _label_references(figure, axes, renderer)
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
    """The dots that no name should hide."""
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
    """The box of a dot on the drawing."""
    from matplotlib.transforms import Bbox as Boxed

    across, up = axes.transData.transform((dot.x, dot.y))
    radius = math.sqrt(dot.area / math.pi) * axes.get_figure().dpi / 72  # type: ignore[union-attr]
    return Boxed.from_bounds(across - radius, up - radius, 2 * radius, 2 * radius)


def _label_references(figure: Figure, axes: Axes, renderer: Any) -> list[Bbox]:
    """Label the dashed lines and rules, and return the boxes of the labels."""
    boxes = []
    for mark in figure.marks:
        if not mark.label:
            continue
        if isinstance(mark, Rule):
            boxes.append(_label_rule(mark, axes).get_window_extent(renderer))
        elif isinstance(mark, Line) and mark.dashed and (end := _last_inside(mark, axes)):
            text = _label(mark.label, axes, end, ha="right", va="center", backed=True)
            boxes.append(text.get_window_extent(renderer))
    return boxes


def _label_rule(mark: Rule, axes: Axes) -> Any:
    if mark.of == "y":
        across = axes.get_yaxis_transform()
        text = _label(mark.label, axes, (1.0, mark.at), ha="right", va="bottom")
    else:
        across = axes.get_xaxis_transform()
        text = _label(mark.label, axes, (mark.at, 1.0), ha="right", va="top", rotation=90)
    text.set_transform(across)
    return text


def _label(label: str, axes: Axes, place: tuple[float, float], **how: Any) -> Any:
    backed = how.pop("backed", False)
    text = axes.text(
        *place, clean_text(label), fontsize=7.5, color=REFERENCE, zorder=1.8, **how,
    )  # fmt: skip
    if backed:
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.0})
    text.set_in_layout(False)
    return text


def _last_inside(mark: Line, axes: Axes) -> tuple[float, float] | None:
    """The last point of a line within the limits of the axes."""
    low_x, high_x = sorted(axes.get_xlim())
    low_y, high_y = sorted(axes.get_ylim())
    for x, y in reversed(list(zip(mark.x, mark.y, strict=True))):
        if low_x <= x <= high_x and low_y <= y <= high_y:
            return x, y
    return None
