"""What an analysis or a data tool found: tables and figures as plain data, drawn elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sized
from typing import Literal, TypeAlias

import msgspec

Cell: TypeAlias = str | int | float | None

LARGEST = 1e100
"""What figures can be drawn of: the differences and squares of far larger numbers are none."""


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """One table. A cell that is None is shown as `—`, so NaN is refused.

    `digits` are those of fractions: one number for the table, or one for each column.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    digits: int | tuple[int, ...] = 1

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
    """One axis of a figure; its ends are those of the data unless given.

    Where `ticks` are given, numbers stand at these alone.
    """

    label: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    ticks: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        what = f"the axis {self.label!r}"
        ends = [end for end in (self.low, self.high, *self.ticks) if end is not None]
        _drawable(what, ends)
        if self.log and any(end <= 0 for end in ends):
            raise ValueError(f"{what} is logarithmic, and its ends {ends} are not all above 0")


class Points(msgspec.Struct, frozen=True, kw_only=True, tag="points"):
    """Dots of one colour. `sizes` are areas in relation to all of the figure's points.

    `names` stand beside the dots; faint dots are small and see-through, for hundreds of them.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    sizes: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    shape: Literal["circle", "diamond", "square", "triangle"] = "circle"
    faint: bool = False

    def __post_init__(self) -> None:
        what = f"the points {self.label!r}"
        _same_length(f"{what}: x and y", self.x, self.y)
        _same_length(f"{what}: x and sizes", self.x, self.sizes or self.x)
        _same_length(f"{what}: x and names", self.x, self.names or self.x)
        _drawable(what, (*self.x, *self.y, *self.sizes))


class Line(msgspec.Struct, frozen=True, kw_only=True, tag="line"):
    """A line through points; a dashed one is a reference, has no dots and its label at its end."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False

    def __post_init__(self) -> None:
        what = f"the line {self.label!r}"
        _same_length(f"{what}: x and y", self.x, self.y)
        _drawable(what, (*self.x, *self.y))


class Rule(msgspec.Struct, frozen=True, kw_only=True, tag="rule"):
    """A dashed reference line across the whole figure, at a value of the axis `of`."""

    label: str
    at: float
    of: Literal["x", "y"] = "y"

    def __post_init__(self) -> None:
        _drawable(f"the rule {self.label!r}", (self.at,))


class Bars(msgspec.Struct, frozen=True, kw_only=True, tag="bars"):
    """A bar a name; bars of one name and several labels stand side by side.

    `texts` stand above the bars.
    """

    label: str
    names: tuple[str, ...]
    values: tuple[float, ...]
    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        what = f"the bars {self.label!r}"
        _same_length(f"{what}: names and values", self.names, self.values)
        _same_length(f"{what}: names and texts", self.names, self.texts or self.names)
        _drawable(what, self.values)


class Boxes(msgspec.Struct, frozen=True, kw_only=True, tag="boxes"):
    """A box with whiskers a name, drawn from all its values."""

    label: str
    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        what = f"the boxes {self.label!r}"
        _same_length(f"{what}: names and values", self.names, self.values)
        _drawable(what, (value for values in self.values for value in values))


class Spans(msgspec.Struct, frozen=True, kw_only=True, tag="spans"):
    """A horizontal interval a name, with a dot at its value: a forest."""

    label: str
    names: tuple[str, ...]
    low: tuple[float, ...]
    value: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        what = f"the spans {self.label!r}"
        for each in (self.low, self.value, self.high):
            _same_length(f"{what}: names and values", self.names, each)
        _drawable(what, (*self.low, *self.value, *self.high))


class Grid(msgspec.Struct, frozen=True, kw_only=True, tag="grid"):
    """A heat map: a coloured square for each pair of names, with its value written in it.

    `values` hold a row for each name of `down`, from the top; None leaves its place empty. What is
    below 0 has another colour than what is above. Values as far from 0 as `deepest`, that of the
    farthest unless given, have the deepest colour: with the same one, grids can be compared.
    """

    label: str
    across: tuple[str, ...]
    down: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    deepest: float | None = None
    digits: int = 2

    def __post_init__(self) -> None:
        what = f"the grid {self.label!r}"
        if not (self.across and self.down):
            raise ValueError(f"{what} has no places, and so nothing to draw")
        _same_length(f"{what}: names down and rows", self.down, self.values)
        for row in self.values:
            _same_length(f"{what}: names across and values of a row", self.across, row)
        every = (self.deepest, *(value for row in self.values for value in row))
        _drawable(what, (value for value in every if value is not None))
        if self.deepest is not None and self.deepest <= 0:
            raise ValueError(f"{what} has {self.deepest} as its deepest, which is not above 0")


Mark: TypeAlias = Points | Line | Rule | Bars | Boxes | Spans | Grid


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure. Marks of the same label share a colour; `note` stands below.

    The names of bars and boxes are on the x axis at 0, 1, 2 …, those of spans on the y axis from
    the top down, so that neither can be with the other in one figure. A grid has names on both and
    stands alone.
    """

    title: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    note: str = ""

    def __post_init__(self) -> None:
        kinds = {type(mark) for mark in self.marks}
        if Spans in kinds and kinds & {Bars, Boxes}:
            raise ValueError(f"the figure {self.title!r} has spans among bars or boxes")
        if Grid in kinds and len(self.marks) > 1:
            raise ValueError(f"the figure {self.title!r} has a grid among other marks")


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was found. `notes` are what a reader must know before all of it."""

    sheets: tuple[Sheet, ...]
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()


def _same_length(what: str, one: Sized, other: Sized) -> None:
    if len(one) != len(other):
        raise ValueError(f"{what} differ in number: {len(one)} and {len(other)}")


def _finite(what: str, values: Iterable[float]) -> None:
    for value in values:
        if not math.isfinite(value):
            raise ValueError(f"{what} holds {value}, which is no value: leave it out, or None")


def _drawable(what: str, values: Iterable[float]) -> None:
    found = tuple(values)
    _finite(what, found)
    for value in found:
        if abs(value) > LARGEST:
            raise ValueError(f"{what} holds {value}, which is too large to be drawn")
