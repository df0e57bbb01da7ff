"""Figures of reports drawn with matplotlib, which is imported where it is used.

The same figure gives the same bytes: no date, no random id, and text stays text in SVG.
"""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from harness.base.errors import UsageError
from harness.contracts.report import (
    Axis,
    Bars,
    Boxes,
    Figure,
    Grid,
    Line,
    Mark,
    Panels,
    Points,
    Rule,
    Spans,
)
from harness.reporting.text import clean_text
from harness.runs.atomic_files import atomic_write

if TYPE_CHECKING:
    from matplotlib.artist import Artist
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
        axes.set_title(clean_text(each.title))
        axes.set_xlabel(clean_text(each.x.label))
        axes.set_ylabel(clean_text(each.y.label))
        axes.set(**{f"{name}scale": "log" for name in "xy" if getattr(each, name).log})
        if _is_square(each):
            axes.set_aspect("equal", adjustable="box")
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


ABOVE, BELOW = "#0072b2", "#d55e00"
"""The deepest colours of a grid, for what is above and below 0."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#595959")
"""Colours that colour-blind people can distinguish, after Okabe and Ito.

Further labels get darker shades, then lighter ones."""

REFERENCE = "#777777"
DASHED: dict[str, Any] = {
    "color": REFERENCE, "linewidth": 1.0, "linestyle": (0, (4, 3)), "zorder": 1.5,
}  # fmt: skip
EMPTY = "#f2f2f2"
SHAPES = {"circle": "o", "diamond": "D", "square": "s", "triangle": "^"}

DOT = 30.0
FAINT_DOT = 9.0
LARGEST_DOT = 400.0
"""Areas of dots in square points."""

GROUP = 0.8
"""The share of a name's place that its bars, boxes or spans take."""

MOST_DOTTED = 30
"""Lines with more points are drawn without dots."""

DARK = 0.6
"""Cells of a grid that are deeper than this share get white letters."""

MOST_WRITTEN = 600
"""Grids with more cells show no values."""

MOST_TICKS = 60
"""Of more names, the axis shows only some."""

RASTER = 20_000
"""More faint dots than this become an image, as the drawing would be huge otherwise."""

MOST_CAPTIONS = 200
"""The most names that are written: more are unreadable."""

GAP = 3.0
"""Points between a dot and its name."""

EDGE = 0.9
"""Reference lines that end beyond this share of the x axis are labelled right of the axes."""


def colours_of(figure: Figure | Panels) -> dict[str, str]:
    """A colour for each label except references, in the order of the marks."""
    labels = dict.fromkeys(mark.label for mark in figure.marks if not is_reference(mark))
    found = {}
    for number, label in enumerate(labels):
        rounds, place = divmod(number, len(COLOURS))
        darker = mixed(COLOURS[place], "#000000" if rounds % 2 else "#ffffff", 0.5)
        found[label] = darker if rounds else COLOURS[place]
    return found


def names_of(figure: Figure, *kinds: type[Bars | Boxes | Spans]) -> list[str]:
    """The names on the axis of the marks of these kinds, each once."""
    marks = (mark for mark in figure.marks if isinstance(mark, kinds))
    return list(dict.fromkeys(name for mark in marks for name in mark.names))


def labels_of(figure: Figure, *kinds: type[Bars | Boxes | Spans]) -> list[str]:
    """The labels of the marks of these kinds, each once; they share the room of a name."""
    return list(dict.fromkeys(mark.label for mark in figure.marks if isinstance(mark, kinds)))


def grid_of(figure: Figure) -> Grid | None:
    """The grid of a figure, if it has one."""
    return next((mark for mark in figure.marks if isinstance(mark, Grid)), None)


def legend_of(figure: Figure | Panels) -> list[str]:
    """The labels that a legend must explain: none if there is one label or all dots have names."""
    named: dict[str, bool] = {}
    for mark in figure.marks:
        if not is_reference(mark):
            by_name = isinstance(mark, Points) and set(mark.names) == {mark.label}
            named[mark.label] = by_name or named.get(mark.label, False)
    return [label for label in named if not named[label]] if len(named) > 1 else []


def draw_marks(figure: Figure, axes: Axes, panels: Panels | None = None) -> None:
    """Draw every mark of the figure, references below all others."""
    colours = colours_of(panels or figure)
    largest = largest_size(figure)
    faint = sum(len(mark.x) for mark in _points(figure) if mark.faint)
    for mark in figure.marks:
        colour = colours.get(mark.label, REFERENCE)
        if isinstance(mark, Points):
            _draw_points(mark, axes, colour, largest=largest, raster=faint > RASTER)
        elif isinstance(mark, Line):
            dots = {"marker": "o" if len(mark.x) <= MOST_DOTTED else "", "markersize": 4}
            own = {"color": colour, "linewidth": 1.6, "zorder": 2.5, **dots}
            axes.plot(mark.x, mark.y, **(DASHED if mark.dashed else own))
        elif isinstance(mark, Grid):
            _draw_grid(mark, axes)
        elif isinstance(mark, Rule):
            across = axes.axhline if mark.of == "y" else axes.axvline
            across(mark.at, **DASHED)
        else:
            kinds = (Spans,) if isinstance(mark, Spans) else (Bars, Boxes)
            labels = labels_of(figure, *kinds)
            where = {name: place for place, name in enumerate(names_of(figure, *kinds))}
            # Marks of several labels stand next to one another at each name.
            width = GROUP / len(labels)
            offset = (labels.index(mark.label) - (len(labels) - 1) / 2) * width
            places = [where[name] + offset for name in mark.names]
            if isinstance(mark, Bars):
                drawn = axes.bar(places, mark.values, width=width * 0.94, color=colour, zorder=2)
                if mark.texts:
                    texts = [clean_text(text) for text in mark.texts]
                    axes.bar_label(drawn, texts, padding=2, fontsize=7.5)
            elif isinstance(mark, Boxes):
                _draw_boxes(mark, axes, colour, places=places, width=width)
            else:
                _draw_spans(mark, axes, colour, places=places)
    _name_ticks(figure, axes)


def handle_of(label: str, figure: Figure | Panels) -> Artist:
    """The symbol next to a label in the legend."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colour = colours_of(figure)[label]
    mark = [each for each in figure.marks if each.label == label][-1]
    text = clean_text(label)
    if isinstance(mark, (Bars, Boxes)):
        return Patch(facecolor=colour, label=text)
    if isinstance(mark, Points):
        return Line2D(
            [], [], color=colour, marker=SHAPES[mark.shape], markersize=math.sqrt(DOT),
            linestyle="", label=text,
        )  # fmt: skip
    return Line2D([], [], color=colour, marker="o", markersize=4, label=text)


def largest_size(figure: Figure) -> float:
    """The largest size of a figure's dots, by which all are scaled."""
    return max((size for mark in _points(figure) for size in mark.sizes), default=0.0) or 1.0


def area(mark: Points, index: int, largest: float) -> float:
    """The area of a dot in square points."""
    if mark.sizes:
        return max(LARGEST_DOT * mark.sizes[index] / largest, 2.0)
    return FAINT_DOT if mark.faint else DOT


def _draw_points(mark: Points, axes: Axes, colour: str, *, largest: float, raster: bool) -> None:
    shape = SHAPES[mark.shape]
    if mark.faint:
        axes.plot(
            mark.x, mark.y, linestyle="", marker=shape, markersize=math.sqrt(FAINT_DOT),
            color=colour, alpha=0.3, markeredgewidth=0, rasterized=raster, zorder=2,
        )  # fmt: skip
        return
    axes.scatter(
        mark.x, mark.y, s=[area(mark, index, largest) for index in range(len(mark.x))],
        marker=shape, color=colour, alpha=0.8 if mark.sizes else 1.0, linewidths=0.8,
        edgecolors="white", zorder=3,
    )  # fmt: skip


def _draw_grid(mark: Grid, axes: Axes) -> None:
    from matplotlib.colors import to_rgb

    values = [value for row in mark.values for value in row if value is not None]
    deepest = mark.deepest or max(map(abs, values), default=0.0) or 1.0
    axes.pcolormesh(
        *([place - 0.5 for place in range(len(names) + 1)] for names in (mark.across, mark.down)),
        [[to_rgb(_shade(value, deepest)) for value in row] for row in mark.values],
        edgecolors="white", linewidth=1.5,
    )  # fmt: skip
    if len(mark.across) * len(mark.down) > MOST_WRITTEN:
        return
    for down, row in enumerate(mark.values):
        for across, value in enumerate(row):
            if value is not None:
                axes.text(
                    across, down, f"{value:z.{mark.digits}f}", ha="center", va="center",
                    fontsize=8, color="white" if abs(value) > DARK * deepest else "#222222",
                )  # fmt: skip


def _draw_spans(mark: Spans, axes: Axes, colour: str, *, places: Sequence[float]) -> None:
    for place, value in zip(places, mark.value, strict=True):
        if value is None:
            axes.text(
                0.01, place, "no value", transform=axes.get_yaxis_transform(),
                va="center", fontsize=7.5, color=colour,
            )  # fmt: skip
    ends = zip(places, mark.low, mark.high, strict=True)
    lines = [(place, low, high) for place, low, high in ends if None not in (low, high)]
    if lines:
        axes.hlines(*zip(*lines, strict=True), color=colour, linewidth=1.8, zorder=2)
    # A missing value is NaN, which has no dot.
    axes.scatter(
        [math.nan if value is None else value for value in mark.value], places,
        s=DOT, color=colour, zorder=3,
    )  # fmt: skip


def _draw_boxes(
    mark: Boxes, axes: Axes, colour: str, *, places: Sequence[float], width: float
) -> None:
    there = [number for number, values in enumerate(mark.values) if values]
    for place in (places[number] for number, values in enumerate(mark.values) if not values):
        axes.text(
            place, 0.02, "no values", transform=axes.get_xaxis_transform(),
            rotation=90, ha="center", va="bottom", fontsize=7.5, color=REFERENCE,
        )  # fmt: skip
    if not there:
        return
    line = {"color": colour, "linewidth": 1.2}
    axes.boxplot(
        [mark.values[number] for number in there],
        positions=[places[number] for number in there],
        widths=width * 0.75,
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": mixed(colour, "#ffffff", 0.7), "edgecolor": colour},
        medianprops={"color": colour, "linewidth": 2.2},
        whiskerprops=line,
        capprops=line,
        flierprops={"marker": "o", "markersize": 2.5, "markerfacecolor": colour,
                    "markeredgecolor": "none", "alpha": 0.4},
    )  # fmt: skip


def _name_ticks(figure: Figure, axes: Axes) -> None:
    if grid := grid_of(figure):
        axes.set_xticks(*_ticks(grid.across))
        axes.set_yticks(*_ticks(grid.down))
        axes.set_xlim(-0.5, len(grid.across) - 0.5)
        axes.set_ylim(len(grid.down) - 0.5, -0.5)
        axes.grid(False)
        axes.tick_params(length=0)
        _turn_long(grid.across, axes)
    elif names := names_of(figure, Spans):
        axes.set_yticks(*_ticks(names))
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
    elif names := names_of(figure, Bars, Boxes):
        axes.set_xticks(*_ticks(names))
        axes.set_xlim(-0.6, len(names) - 0.4)
        axes.grid(False, axis="x")
        axes.tick_params(axis="x", length=0)
        _turn_long(names, axes)


def _turn_long(names: Sequence[str], axes: Axes) -> None:
    place = axes.get_subplotspec()
    across = place.get_gridspec().ncols if place else 1
    inches = axes.get_figure().get_figwidth() / across / len(names)  # type: ignore[union-attr]
    if max(map(len, names)) * 0.08 > inches:
        for tick in axes.get_xticklabels():
            tick.set(rotation=35, ha="right", rotation_mode="anchor")


def _ticks(names: Sequence[str]) -> tuple[list[int], list[str]]:
    step = math.ceil(len(names) / MOST_TICKS)
    shown = list(range(0, len(names), step))
    return shown, [clean_text(names[number]) for number in shown]


def _points(figure: Figure) -> Iterable[Points]:
    return (mark for mark in figure.marks if isinstance(mark, Points))


def is_reference(mark: Mark) -> bool:
    """Whether a mark is a dashed line or rule with a label of its own, in no legend."""
    return isinstance(mark, Rule) or (isinstance(mark, Line) and mark.dashed)


def _shade(value: float | None, deepest: float) -> str:
    if value is None:
        return EMPTY
    return mixed("#ffffff", ABOVE if value > 0 else BELOW, min(abs(value) / deepest, 1.0))


def mixed(colour: str, other: str, share: float) -> str:
    """A colour mixed with a share of another."""
    pairs = [(int(colour[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(one + (two - one) * share):02x}" for one, two in pairs)


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
    for name, place, size in dots[:MOST_CAPTIONS]:
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
