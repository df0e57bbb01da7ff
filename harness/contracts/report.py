"""The report of an analysis or data tool: tables and figures as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sized
from itertools import chain
from typing import Any, Literal, TypeAlias

import msgspec

Cell: TypeAlias = str | int | float | None

LARGEST = 1e100
"""The largest number in a figure: differences and squares of much larger ones overflow."""


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """One table: `Sheet(title="recall by size", columns=("size", "recall"), rows=((10, 0.5),))`."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    """The rows, each with a cell for every column; None is shown as `—`, NaN is refused."""

    notes: tuple[str, ...] = ()
    digits: int | tuple[int, ...] = 1
    """The digits of fractions: one number for the table, or one for each column."""

    def __post_init__(self) -> None:
        what = f"the sheet {self.title!r}"
        if not self.columns:
            raise ValueError(f"{what} has no columns")
        for row in self.rows:
            _same_length(f"{what}: columns and cells of a row", self.columns, row)
            _finite(what, (cell for cell in row if isinstance(cell, float)))
        if isinstance(self.digits, tuple):
            _same_length(f"{what}: columns and digits", self.columns, self.digits)


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """One axis of a figure: `Axis(label="recall", low=0, high=1)`."""

    label: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    ticks: tuple[float, ...] = ()
    """The only values that are labelled; chosen automatically if empty."""

    def __post_init__(self) -> None:
        what = f"the axis {self.label!r}"
        ends = [end for end in (self.low, self.high, *self.ticks) if end is not None]
        _drawable(what, ends)
        if self.log and any(end <= 0 for end in ends):
            raise ValueError(f"{what} is logarithmic, and its ends {ends} are not all above 0")


class _Columns(msgspec.Struct, frozen=True, kw_only=True):
    """A mark of columns: those that are there are of one length, and their numbers can be drawn."""

    label: str

    def __post_init__(self) -> None:
        what = f"the {self.__struct_config__.tag} {self.label!r}"
        first, numbers = "", list[Any]()
        for field in msgspec.structs.fields(self):
            column = getattr(self, field.name)
            if isinstance(column, (str, bool)) or not (field.required or len(column)):
                continue
            first = first or field.name
            _same_length(f"{what}: {first} and {field.name}", getattr(self, first), column)
            if field.name not in ("names", "texts"):
                nested = chain.from_iterable(column) if isinstance(self, Boxes) else column
                numbers += [one for one in nested if one is not None or not isinstance(self, Spans)]
        _drawable(what, numbers)


class Points(_Columns, frozen=True, kw_only=True, tag="points"):
    """Dots of one colour."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    sizes: tuple[float, ...] = ()
    """The areas of the dots, relative to all dots of the figure."""

    names: tuple[str, ...] = ()
    shape: Literal["circle", "diamond", "square", "triangle"] = "circle"
    faint: bool = False


class Line(_Columns, frozen=True, kw_only=True, tag="line"):
    """A line through points."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False
    """Whether it is a reference: dashed, without dots, its label at its end."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, tag="rule"):
    """A dashed reference line across the whole figure."""

    label: str
    at: float
    """Its value on the axis `of`."""

    of: Literal["x", "y"] = "y"

    def __post_init__(self) -> None:
        _drawable(f"the rule {self.label!r}", (self.at,))


class Bars(_Columns, frozen=True, kw_only=True, tag="bars"):
    """One bar for each name; bars with the same name and different labels are grouped."""

    names: tuple[str, ...]
    values: tuple[float, ...]
    texts: tuple[str, ...] = ()


class Boxes(_Columns, frozen=True, kw_only=True, tag="boxes"):
    """One box with whiskers for each name."""

    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


class Spans(_Columns, frozen=True, kw_only=True, tag="spans"):
    """One horizontal interval for each name, with a dot at its value: a forest plot.

    Without an interval there is a dot alone; a missing value is written as such.
    """

    names: tuple[str, ...]
    low: tuple[float | None, ...]
    value: tuple[float | None, ...]
    high: tuple[float | None, ...]


class Grid(msgspec.Struct, frozen=True, kw_only=True, tag="grid"):
    """A heat map: a square for each pair of names, coloured by the value written in it.

    Values below 0 have another colour than values above.
    """

    label: str
    across: tuple[str, ...]
    down: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    """One row for each name of `down`; None leaves a square empty."""

    deepest: float | None = None
    """The distance from 0 with the deepest colour, by default the largest in the grid; give the
    same one to grids that are compared."""

    digits: int = 2

    def __post_init__(self) -> None:
        what = f"the grid {self.label!r}"
        if not (self.across and self.down):
            raise ValueError(f"{what} has no names, so there is nothing to draw")
        _same_length(f"{what}: names down and rows", self.down, self.values)
        for row in self.values:
            _same_length(f"{what}: names across and values of a row", self.across, row)
        every = (self.deepest, *(value for row in self.values for value in row))
        _drawable(what, (value for value in every if value is not None))
        if self.deepest is not None and self.deepest <= 0:
            raise ValueError(f"{what} has {self.deepest} as its deepest, which is not above 0")


Mark: TypeAlias = Points | Line | Rule | Bars | Boxes | Spans | Grid


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: `Figure(title="recall", x=Axis(label="size"), y=Axis(label="recall"), marks=…)`.

    Bars and boxes have their names on the x axis at 0, 1, 2 …; spans have them on the y axis, so
    the two cannot share a figure. A grid has names on both axes and shares its figure with no mark.
    """

    title: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    """The marks to draw; marks with the same label share a colour."""

    note: str = ""
    stamp: str = ""
    """The warning above the figure: that its results are not comparable, and why."""

    def __post_init__(self) -> None:
        kinds = {type(mark) for mark in self.marks}
        if Spans in kinds and kinds & {Bars, Boxes}:
            raise ValueError(f"the figure {self.title!r} has spans among bars or boxes")
        if Grid in kinds and len(self.marks) > 1:
            raise ValueError(f"the figure {self.title!r} has a grid among other marks")


class Panels(msgspec.Struct, frozen=True, kw_only=True):
    """Figures that are drawn in one file: `Panels(title="recall by model", figures=(one, other))`.

    They have one legend: a label has the same colour in each of them.
    """

    title: str
    """The name in lists of figures; what is drawn are the titles of the panels."""

    figures: tuple[Figure, ...]
    """The panels, row by row; the note and stamp of all of them are those given here."""

    across: int = 3
    note: str = ""
    stamp: str = ""
    """The warning above the panels: that its results are not comparable, and why."""

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks of all panels."""
        return tuple(mark for figure in self.figures for mark in figure.marks)

    def __post_init__(self) -> None:
        what = f"the panels {self.title!r}"
        if not self.figures or self.across < 1:
            raise ValueError(f"{what} need a figure, and one or more in a row")
        if any(figure.note or figure.stamp for figure in self.figures):
            raise ValueError(f"{what} have a figure with a note or stamp, which are not drawn")


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an analysis or data tool: `Report(sheets=(sheet,), figures=(figure,))`."""

    sheets: tuple[Sheet, ...]
    figures: tuple[Figure | Panels, ...] = ()
    """The figures, each drawn in a file of its own."""

    notes: tuple[str, ...] = ()
    """Lines above the tables: what a reader must know before using them."""


def _same_length(what: str, one: Sized, other: Sized) -> None:
    if len(one) != len(other):
        raise ValueError(f"{what} differ in number: {len(one)} and {len(other)}")


def _finite(what: str, values: Iterable[float]) -> None:
    for value in values:
        if not math.isfinite(value):
            raise ValueError(f"{what} holds {value}: leave it out or give None")


def _drawable(what: str, values: Iterable[float]) -> None:
    found = tuple(values)
    _finite(what, found)
    for value in found:
        if abs(value) > LARGEST:
            raise ValueError(f"{what} holds {value}, which is too large to draw")
