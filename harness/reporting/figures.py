"""Figures of reports drawn with matplotlib, which is imported where it is used.

The same figure gives the same bytes: no date, no random id, and text stays text in SVG.
"""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from harness.base.errors import INSTALL_ANALYSIS, UsageError
from harness.contracts.report import Axis, Bars, Boxes, Figure, Panels, Spans
from harness.reporting.figure_marks import (
    draw_marks,
    grid_of,
    handle_of,
    is_reference,
    label_references,
    labels_of,
    legend_of,
    names_of,
    write_captions,
)
from harness.reporting.text import clean_text
from harness.runs.atomic_files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

METADATA: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}
"""The metadata of each format that name the time and the program; None leaves them out."""

MARGIN = 0.06
"""The share of an axis beyond its data or limits, so that all marks are drawn whole."""

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
    "font.size": 9.0,
    "text.color": "#222222",
    "text.parse_math": False,
    "axes.titlesize": 11.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10.0,
    "axes.labelcolor": "#222222",
    "axes.edgecolor": "#888888",
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.xmargin": MARGIN,
    "axes.ymargin": MARGIN,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "xtick.color": "#888888",
    "xtick.labelcolor": "#222222",
    "ytick.color": "#888888",
    "ytick.labelcolor": "#222222",
    "legend.frameon": False,
    "savefig.dpi": 160.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "harness",
    "pdf.fonttype": 42,
}

CHARACTERS_AN_INCH = 15
"""How many small letters of a note fit into an inch."""

WHOLE_DECADES = 1000.0
"""Log axes whose ends differ by a larger factor have numbers at powers of ten only."""

WARNING = "#b22222"

STAMP_LINE = 0.16
"""The height of a line of the stamp in inches."""

SMALL = 0.75
"""The size of a panel as a share of a figure that is drawn alone."""

LAYOUTS = 3
"""How often the layout of square axes is computed, which move their labels each time."""


def check_drawable(path: Path) -> None:
    """Raise UsageError if figures cannot be drawn into this file."""
    if path.suffix.lower().removeprefix(".") not in METADATA:
        raise UsageError(
            "figures cannot be drawn in this format",
            found=str(path),
            expected=f"a file name that ends in {', '.join(f'.{kind}' for kind in METADATA)}",
        )
    if not path.parent.is_dir():
        raise UsageError(
            "the folder for the figures does not exist",
            found=str(path.parent),
            expected="an existing folder",
            hint="create the folder, or choose another with --plot",
        )
    try:
        import matplotlib  # noqa: F401 - only checks that it is installed
    except ImportError as error:
        raise UsageError(
            "drawing figures needs matplotlib",
            found=str(error),
            hint=INSTALL_ANALYSIS,
        ) from error


def write_figures(figures: Sequence[Figure | Panels], path: Path) -> list[Path]:
    """The files that were drawn: the first figure as `path`, others as FILE-2, FILE-3, …"""
    check_drawable(path)
    written = []
    for number, figure in enumerate(figures, 1):
        place = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        data = figure_bytes(figure, path.suffix.lower().removeprefix("."))
        atomic_write(place, data, option="--plot")
        written.append(place)
    return written


def figure_bytes(figure: Figure | Panels, kind: str = "svg") -> bytes:
    """The content of the figure's file in a format: svg, png or pdf."""
    from matplotlib import rc_context

    with rc_context(STYLE), warnings.catch_warnings():
        # Names in scripts that the font lacks stay text in the file, for the viewer's fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        file = io.BytesIO()
        draw(figure).savefig(file, format=kind, metadata=METADATA[kind])
    return file.getvalue()


def draw(figure: Figure | Panels) -> Drawing:
    """The figure as a drawing with its final layout, in the style that is in force."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawing

    panels = figure if isinstance(figure, Panels) else None
    width, height = _whole_size(figure)
    stamp = _wrapped(figure.stamp, width - _legend_width(figure))
    lines = stamp.count("\n") + 1 if stamp else 0
    drawing = Drawing(figsize=(width, height + STAMP_LINE * lines), layout="constrained")
    if stamp:
        drawing.suptitle(stamp, x=0.01, ha="left", fontsize=8, color=WARNING)
    canvas: Any = FigureCanvasAgg(drawing)
    for number, each in enumerate(_figures(figure), 1):
        axes = drawing.add_subplot(*_places(figure), number)
        _set_axes(each, axes)
        draw_marks(each, axes, panels)
        _set_limits(each, axes)
        label_references(each, axes)
    if labels := legend_of(figure):
        handles = [handle_of(label, figure) for label in labels]
        drawing.legend(handles=handles, loc="outside right upper", fontsize=8)
    if figure.note:
        note = _wrapped(figure.note, drawing.get_figwidth())
        drawing.supxlabel(note, x=0.01, ha="left", fontsize=8, color="#666666")
    # The axes get their final places, and no layout is left that would move them later.
    engine: Any = drawing.get_layout_engine()
    for _ in range(LAYOUTS if any(map(_is_square, _figures(figure))) else 1):
        engine.execute(drawing)
        for axes in drawing.axes:
            axes.apply_aspect()
    drawing.set_layout_engine(None)
    for each, axes in zip(_figures(figure), drawing.axes, strict=True):
        write_captions(each, axes, canvas.get_renderer())
    return drawing


def _figures(figure: Figure | Panels) -> tuple[Figure, ...]:
    return figure.figures if isinstance(figure, Panels) else (figure,)


def _places(figure: Figure | Panels) -> tuple[int, int]:
    if not isinstance(figure, Panels):
        return 1, 1
    across = min(figure.across, len(figure.figures))
    return math.ceil(len(figure.figures) / across), across


def _set_axes(figure: Figure, axes: Axes) -> None:
    axes.set_title(clean_text(figure.title))
    axes.set_xlabel(clean_text(figure.x.label))
    axes.set_ylabel(clean_text(figure.y.label))
    if figure.x.log:
        axes.set_xscale("log")
    if figure.y.log:
        axes.set_yscale("log")
    if _is_square(figure):
        axes.set_aspect("equal", adjustable="box")


def _plain_number(value: float, _: float) -> str:
    return f"{value:,.6g}"


def _set_limits(figure: Figure, axes: Axes) -> None:
    """Set the limits and ticks that the figure gives, except on an axis of names.

    Bars stand on the lower limit itself, all other marks have a margin.
    """
    if grid_of(figure):
        return
    margin = 0.0 if names_of(figure, Bars) else MARGIN
    if not names_of(figure, Bars, Boxes):
        axes.set_xlim(*_limits(figure.x, axes.xaxis, axes.get_xlim(), margin))
        _set_ticks(figure.x, axes.xaxis)
    if not names_of(figure, Spans):
        axes.set_ylim(*_limits(figure.y, axes.yaxis, axes.get_ylim(), margin))
        _set_ticks(figure.y, axes.yaxis)


def _limits(
    axis: Axis, drawn_axis: Any, automatic: tuple[float, float], margin: float
) -> tuple[float, float]:
    """The limits that are given with a margin beyond each, and the automatic ones."""
    given = axis.low, axis.high
    ends = [auto if end is None else end for end, auto in zip(given, automatic, strict=True)]
    scale = drawn_axis.get_transform()
    low, high = scale.transform(ends)
    margins = [0.0 if end is None else margin * (high - low) for end in given]
    low, high = scale.inverted().transform([low - margins[0], high + margins[1]])
    return float(low), float(high)


def _set_ticks(axis: Axis, drawn_axis: Any) -> None:
    """Number the given ticks, or those of a log axis; by default, numbers are plain text."""
    from matplotlib.ticker import LogLocator, NullFormatter

    if axis.log:
        low, high = sorted(drawn_axis.get_view_interval())
        steps = (1.0,) if high / low > WHOLE_DECADES else (1.0, 2.0, 5.0)
        drawn_axis.set_major_locator(LogLocator(subs=steps))
        drawn_axis.set_major_formatter(_plain_number)
        drawn_axis.set_minor_formatter(NullFormatter())
    if axis.ticks:
        drawn_axis.set_ticks(axis.ticks, [_plain_number(tick, 0) for tick in axis.ticks])


def _wrapped(text: str, inches: float) -> str:
    return "\n".join(textwrap.wrap(clean_text(text), int(inches * CHARACTERS_AN_INCH)))


def _legend_width(figure: Figure | Panels) -> float:
    return max((len(label) for label in legend_of(figure)), default=-5) * 0.07 + 0.35


def _whole_size(figure: Figure | Panels) -> tuple[float, float]:
    if not isinstance(figure, Panels):
        return _size(figure)
    down, across = _places(figure)
    width = max(_size(each)[0] - _legend_width(each) for each in figure.figures)
    height = max(_size(each)[1] for each in figure.figures)
    return SMALL * across * width + _legend_width(figure), SMALL * down * height


def _size(figure: Figure) -> tuple[float, float]:
    references = [mark.label for mark in figure.marks if is_reference(mark)]
    legend = _legend_width(figure) + 0.06 * max(map(len, references), default=0)
    if grid := grid_of(figure):
        labels = max(map(len, grid.down), default=0) * 0.07
        across, down = 1.2 + 0.6 * len(grid.across), 1.2 + 0.4 * len(grid.down)
        return min(max(across + labels, 4.0), 14.0), min(max(down, 2.5), 30.0)
    if rows := names_of(figure, Spans):
        labels = max(map(len, rows)) * 0.07
        each = 0.2 + 0.1 * len(labels_of(figure, Spans))
        return 4.8 + labels + legend, min(max(1.5 + each * len(rows), 2.5), 30.0)
    if columns := names_of(figure, Bars, Boxes):
        each = 0.25 + 0.2 * len(labels_of(figure, Bars, Boxes))
        return min(max(1.2 + each * len(columns), 5.0), 14.0) + legend, 4.2
    return (5.2 + legend, 5.4) if _is_square(figure) else (6.6 + legend, 4.4)


def _is_square(figure: Figure) -> bool:
    """Whether both axes have the same limits, so that equal values lie on the diagonal."""
    x, y = figure.x, figure.y
    return x.low is not None and x.high is not None and x == replace(y, label=x.label)
