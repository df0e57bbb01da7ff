import math
from xml.etree import ElementTree

import numpy as np
import pytest
from builders.processes import run_here, run_python
from matplotlib.colors import to_hex

from harness.contracts.report import (
    LARGEST,
    Axis,
    Bars,
    Boxes,
    Figure,
    Grid,
    Line,
    Panels,
    Points,
    Rule,
    Spans,
)
from harness.reporting.figures import (
    COLOURS,
    MOST_CAPTIONS,
    STYLE,
    colours_of,
    draw,
    draw_marks,
    figure_bytes,
    legend_of,
    write_figures,
)

PLAIN = Axis(label="")
UNIT = Axis(label="share", low=0, high=1)
DIAGONAL = Line(label="y = x", x=(0, 1), y=(0, 1), dashed=True)


def figure(*marks, x=PLAIN, y=PLAIN, **more):
    return Figure(title="Title", x=x, y=y, marks=marks, **more)


def texts(data):
    """Every text of a drawing, in the order of the file; its XML is well formed."""
    root = ElementTree.fromstring(data)
    return ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]


def drawn(of):
    from matplotlib import rc_context

    with rc_context(STYLE):
        return draw(of)


def axes_with(of):
    from matplotlib.figure import Figure as Drawing

    axes = Drawing().add_subplot()
    draw_marks(of, axes)
    return axes


def test_text_stays_text_and_is_taken_literally():
    dots = Points(label="a", x=(0.5,), y=(0.5,), names=("$m$ <b>&\x1b[2J",))
    written = texts(figure_bytes(figure(dots, x=UNIT, y=Axis(label="score"), note="Of 3 users.")))
    assert {"Title", "share", "score", "Of 3 users.", "$m$ <b>&\\x1b[2J"} <= set(written)


def test_a_drawing_is_the_same_bytes_in_every_process():
    code = (
        "from harness.reporting.figures import figure_bytes\n"
        "from harness.contracts.report import *\n"
        "marks = (Points(label='a', x=(1, 2), y=(2, 1), names=('p', 'q')),\n"
        "         Line(label='b', x=(1, 2), y=(1, 2)), Rule(label='r', at=1.5))\n"
        "figure = Figure(title='T', x=Axis(label='x'), y=Axis(label='y'), marks=marks)\n"
        "kinds = ('svg', 'png', 'pdf')\n"
        "print(*(figure_bytes(figure, kind) for kind in kinds))"
    )
    shown = run_here(code)
    assert run_python(code, PYTHONHASHSEED="1") == shown
    assert all(start in shown for start in ("<svg", "PNG", "%PDF"))


def test_each_further_figure_has_a_file_beside_the_first(tmp_path):
    bars = figure(Bars(label="a", names=("x",), values=(1.0,)))
    written = write_figures([bars, bars, bars], tmp_path / "plot.SVG")
    assert written == [tmp_path / name for name in ("plot.SVG", "plot-2.SVG", "plot-3.SVG")]
    assert all("x" in texts(path.read_bytes()) for path in written)


def test_bars_of_several_labels_stand_side_by_side_at_each_name():
    one = Bars(label="one", names=("x", "y"), values=(3.0, 4.0), texts=("three", "four"))
    axes = axes_with(figure(one, Bars(label="all", names=("y", "z"), values=(5.0, 6.0))))
    centres = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
    assert centres == pytest.approx([-0.2, 0.8, 1.2, 2.2])
    assert [bar.get_height() for bar in axes.patches] == [3.0, 4.0, 5.0, 6.0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["x", "y", "z"]
    assert [text.get_text() for text in axes.texts] == ["three", "four"]


def test_spans_and_boxes_are_drawn_from_what_they_have_and_those_without_a_value_are_said():
    spans = Spans(
        label="a", names=("p", "q", "r"),
        low=(0.1, None, None), value=(0.2, 0.5, None), high=(0.3, None, None),
    )  # fmt: skip
    axes = axes_with(figure(spans))
    lines, dots = axes.collections
    assert [path.vertices.tolist() for path in lines.get_paths()] == [[[0.1, 0], [0.3, 0]]]
    assert dots.get_offsets().tolist() == [[0.2, 0], [0.5, 1], [None, None]]
    assert [(text.get_text(), text.get_position()[1]) for text in axes.texts] == [("no value", 2)]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["p", "q", "r"]
    boxes = Boxes(label="F1", names=("a", "b"), values=((1.0, 2.0, 3.0, 4.0, 5.0), ()))
    axes = axes_with(figure(boxes))
    [box] = axes.patches
    assert sorted({y for _, y in box.get_path().vertices.tolist()}) == [2.0, 4.0]
    assert [(text.get_text(), text.get_position()[0]) for text in axes.texts] == [("no values", 1)]


def test_a_grid_has_a_colour_and_its_value_at_each_place_unless_these_are_very_many():
    grid = Grid(label="a", across=("p", "q"), down=("r", "s"), values=((0.4, -0.2), (None, 0)))
    axes = axes_with(figure(grid))
    # -0.2 is half as far from 0 as the farthest value: half of the colour below 0, half white.
    squares = [list(map(to_hex, row)) for row in axes.collections[0].get_array()]
    assert squares == [["#0072b2", "#eaae80"], ["#f2f2f2", "#ffffff"]]
    found = [(text.get_text(), text.get_position()) for text in axes.texts]
    assert found == [("0.40", (0, 0)), ("-0.20", (1, 0)), ("0.00", (1, 1))]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["p", "q"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["r", "s"]
    assert axes.yaxis_inverted()
    names = tuple(f"n{number}" for number in range(30))
    values = (tuple(map(float, range(30))),) * 30
    axes = axes_with(figure(Grid(label="a", across=names, down=names, values=values)))
    assert not axes.texts


def test_marks_of_one_label_share_a_colour_and_twenty_labels_have_twenty():
    of = figure(
        Line(label="y = x", x=(0, 1), y=(0, 1), dashed=True),
        Points(label="b", x=(0,), y=(0,), faint=True),
        Points(label="a", x=(0,), y=(0,)),
        Points(label="b", x=(0,), y=(0,), shape="diamond"),
        Rule(label="limit", at=0.5),
    )
    assert colours_of(of) == {"b": COLOURS[0], "a": COLOURS[1]}
    of = figure(*(Line(label=str(number), x=(0,), y=(0,)) for number in range(20)))
    assert len(set(colours_of(of).values())) == 20


def inside(box, other, radius=0.0):
    """Whether a box with a margin is within another one."""
    (left, low), (right, high) = other.get_points()
    return (
        left <= box.x0 - radius and box.x1 + radius <= right
        and low <= box.y0 - radius and box.y1 + radius <= high
    )  # fmt: skip


CORNERS = {"x": (0.0, 1.0, 0.0, 1.0), "y": (0.0, 0.0, 1.0, 1.0)}


@pytest.mark.parametrize(
    ("mark", "x", "y"),
    [
        (Points(label="a", **CORNERS), UNIT, UNIT),
        (Points(label="a", **CORNERS, sizes=(1.0,) * 4), PLAIN, UNIT),
        (Line(label="a", **CORNERS), UNIT, Axis(label="upside down", low=1, high=0)),
    ],
)
def test_marks_at_the_limits_are_drawn_whole(mark, x, y):
    from matplotlib.transforms import Bbox

    drawing = drawn(figure(mark, x=x, y=y))
    axes = drawing.axes[0]
    if isinstance(mark, Points) and not mark.faint:
        [area] = set(axes.collections[0].get_sizes())
        radius = math.sqrt(area / math.pi)
    else:
        radius = axes.lines[0].get_markersize() / 2
    for centre in axes.transData.transform(list(zip(*CORNERS.values(), strict=True))):
        assert inside(Bbox([centre, centre]), axes.bbox, radius * drawing.dpi / 72)


def test_a_reference_that_ends_at_the_edge_is_named_outside_where_no_mark_can_be():
    dots = Points(label="a", x=(1.0, 0.98), y=(1.0, 1.0))
    wide = Axis(label="", low=0, high=1, ticks=(0.5,))
    drawing = drawn(figure(DIAGONAL, Rule(label="limit", at=0.5), dots, x=UNIT, y=wide))
    axes = drawing.axes[0]
    for name, height in (("y = x", 1.0), ("limit", 0.5)):
        [text] = [each for each in axes.texts if each.get_text() == name]
        box = text.get_window_extent()
        assert box.x0 > axes.bbox.x1
        assert inside(box, drawing.bbox)
        _, middle = axes.transData.transform((1.0, height))
        assert (box.y0 + box.y1) / 2 == pytest.approx(middle, abs=2)


def test_the_stamp_stands_above_everything_and_within_the_drawing():
    reasons = ", ".join(f"reason {number}" for number in range(30))
    lines = [
        Line(label=f"the model number {number}", x=(0, 1), y=(0, number)) for number in range(9)
    ]
    drawing = drawn(figure(*lines, stamp=f"NOT COMPARABLE: {reasons}"))
    plain = drawn(figure(*lines))
    stamp = drawing._suptitle
    assert stamp.get_text().replace("\n", " ") == f"NOT COMPARABLE: {reasons}"
    box = stamp.get_window_extent()
    assert inside(box, drawing.bbox)
    axes, [legend] = drawing.axes[0], drawing.legends
    assert box.y0 >= axes.title.get_window_extent().y1
    assert box.x1 <= legend.get_window_extent().x0
    assert axes.bbox.height >= 0.95 * plain.axes[0].bbox.height


def test_panels_stand_in_rows_and_share_colours_legend_and_note():
    three = [
        figure(Line(label="a", x=(0, 1), y=(0, 1))),
        figure(Line(label="b", x=(0, 1), y=(0, 1)), Line(label="a", x=(0, 1), y=(1, 2))),
        figure(Line(label="b", x=(0, 1), y=(0, 1))),
    ]
    panels = Panels(
        title="Three", figures=tuple(three), across=2, note="Of 3 users.", stamp="NOT COMPARABLE"
    )
    drawing = drawn(panels)
    colours = [[to_hex(line.get_color()) for line in axes.lines] for axes in drawing.axes]
    assert colours == [[COLOURS[0]], [COLOURS[1], COLOURS[0]], [COLOURS[1]]]
    first, second, third = (axes.bbox for axes in drawing.axes)
    assert first.x1 < second.x0 and first.y0 == second.y0
    assert third.y1 < first.y0 and third.x0 == first.x0
    [legend] = drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    assert [drawing._suptitle.get_text(), drawing._supxlabel.get_text()] == [
        "NOT COMPARABLE", "Of 3 users.",
    ]  # fmt: skip
    assert all(inside(axes.get_tightbbox(), drawing.bbox) for axes in drawing.axes)
    assert legend.get_window_extent().x0 >= max(axes.bbox.x1 for axes in drawing.axes)


def one(label, *, names=()):
    return Points(label=label, x=(0,), y=(0,), names=names)


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ([one("a")], []),
        ([one("a"), one("b")], ["a", "b"]),
        ([one("a", names=("a",)), one("b")], ["b"]),
        ([one("a"), Rule(label="limit", at=1)], []),
    ],
)
def test_a_legend_tells_what_nothing_else_does(marks, told):
    assert legend_of(figure(*marks)) == told


@pytest.mark.parametrize(
    ("ends", "numbers"),
    [
        ((3, 8), {"5"}),
        ((1, 90), {"1", "2", "5", "10", "20", "50"}),
        ((0.001, 1000), {"0.001", "0.1", "10", "1,000"}),
    ],
)
def test_a_log_axis_of_any_length_has_plain_numbers_only(ends, numbers):
    line = Line(label="a", x=ends, y=(1, 2))
    axis = drawn(figure(line, x=Axis(label="", log=True))).axes[0].xaxis
    low, high = sorted(axis.get_view_interval())
    texts = [
        tick.label1.get_text()
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        if low <= tick.get_loc() <= high
    ]
    written = {text for text in texts if text}
    assert numbers <= written
    assert all(set(text) <= set("0123456789.,") for text in written)


def test_numbers_stand_at_the_ticks_that_are_given_alone():
    sizes = Axis(label="users", low=1.8, high=4.2, ticks=(2, 3, 4))
    line = Line(label="a", x=(2, 3, 4), y=(10, 20, 30))
    written = texts(figure_bytes(figure(line, x=sizes, y=Axis(label="", ticks=(15,)))))
    assert [text for text in written if text[:1].isdigit()] == ["2", "3", "4", "15"]


def test_of_very_many_names_some_are_written():
    names = tuple(f"n{number}" for number in range(325))
    axes = axes_with(figure(Bars(label="a", names=names, values=(1.0,) * 325)))
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert shown[:3] == ["n0", "n6", "n12"]
    assert len(axes.patches) == 325
    many = range(MOST_CAPTIONS + 5)
    names = tuple(f"dot {number}" for number in many)
    dots = Points(label="a", x=tuple(many), y=tuple(many), names=names)
    written = texts(figure_bytes(figure(dots)))
    assert [text for text in written if text.startswith("dot")] == list(names[:MOST_CAPTIONS])


def test_a_name_stands_above_its_dot_and_within_the_axes():
    dots = Points(label="a", x=(0, 0.5, 1), y=(0, 0.5, 1), names=("the first name", "b", "c" * 30))
    drawing = drawn(figure(dots, x=UNIT, y=UNIT))
    [axes] = drawing.axes
    for text, place in zip(axes.texts, ((0, 0), (0.5, 0.5), (1, 1)), strict=True):
        box = text.get_window_extent()
        across, up = axes.transData.transform(place)
        assert box.y0 > up
        assert box.x0 <= across <= box.x1
        assert inside(box, drawing.bbox)
        assert axes.bbox.x0 - 1 <= box.x0 and box.x1 <= axes.bbox.x1 + 1
    middle, (across, _) = axes.texts[1].get_window_extent(), axes.transData.transform((0.5, 0.5))
    assert (middle.x0 + middle.x1) / 2 == pytest.approx(across, abs=1)


@pytest.mark.filterwarnings("error")
def test_the_largest_numbers_that_are_taken_can_be_drawn():
    ends = Axis(label="", low=-LARGEST, high=LARGEST)
    dots = Points(label="a", x=(-LARGEST, LARGEST), y=(0, LARGEST), names=("p", "q"))
    for axis in (PLAIN, ends):
        assert "p" in texts(figure_bytes(figure(dots, x=axis, y=axis)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Points(label="a", x=(1, 2), y=(1,)),
        lambda: Points(label="a", x=(1,), y=(float("nan"),)),
        lambda: Points(label="a", x=(1,), y=(1,), names=("a", "b")),
        lambda: Axis(label="a", low=-1e308, high=1e308),
        lambda: Axis(label="a", low=0, high=1, log=True),
        lambda: Rule(label="a", at=float("inf")),
        lambda: Bars(label="a", names=("x",), values=()),
        lambda: Boxes(label="a", names=("x",), values=((1.0, float("nan")),)),
        lambda: Boxes(label="a", names=("x",), values=[[1.0, float("nan")]]),
        lambda: Line(label="a", x=np.array([1, 2]), y=np.array([1, np.nan])),
        lambda: Spans(label="a", names=("x",), low=(1,), value=(1,), high=()),
        lambda: Grid(label="a", across=("x",), down=("z",), values=()),
        lambda: Grid(label="a", across=("x",), down=("z",), values=((1,),), deepest=0),
        lambda: Grid(label="a", across=(), down=(), values=()),
        lambda: Panels(title="a", figures=()),
        lambda: Panels(title="a", figures=(figure(note="b"),)),
        lambda: figure(
            Bars(label="a", names=("x",), values=(1,)),
            Spans(label="a", names=("x",), low=(1,), value=(1,), high=(1,)),
        ),
        lambda: figure(
            Grid(label="a", across=("x",), down=("z",), values=((1,),)),
            Points(label="b", x=(1,), y=(1,)),
        ),
    ],
)
def test_marks_that_cannot_be_drawn_are_refused_when_they_are_made(make):
    with pytest.raises(
        ValueError,
        match=r"differ in number|leave it out|spans among|grid among|too large|above 0|no names|"
        "need a figure|not drawn",
    ):
        make()
