"""What an analysis or a data tool found: tables and figures as plain data, drawn elsewhere."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

Cell: TypeAlias = str | int | float | None


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """One table. A cell that is None is shown as `—`; `digits` are those of its fractions."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    digits: int = 1


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """One axis of a figure; its ends are those of the data unless given."""

    label: str
    low: float | None = None
    high: float | None = None


class Points(msgspec.Struct, frozen=True, kw_only=True, tag="points"):
    """Dots of one colour. `sizes` are areas in relation to one another; `names` stand beside."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    sizes: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    shape: str = "circle"
    faint: bool = False


class Line(msgspec.Struct, frozen=True, kw_only=True, tag="line"):
    """A line through points; a dashed one is a reference and has no dots."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dashed: bool = False


class Bars(msgspec.Struct, frozen=True, kw_only=True, tag="bars"):
    """A bar a name."""

    label: str
    names: tuple[str, ...]
    values: tuple[float, ...]


class Boxes(msgspec.Struct, frozen=True, kw_only=True, tag="boxes"):
    """A box with whiskers a name, drawn from all its values."""

    label: str
    names: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


class Spans(msgspec.Struct, frozen=True, kw_only=True, tag="spans"):
    """A horizontal interval a name, with a dot at its value: a forest."""

    label: str
    names: tuple[str, ...]
    low: tuple[float, ...]
    value: tuple[float, ...]
    high: tuple[float, ...]


Mark: TypeAlias = Points | Line | Bars | Boxes | Spans


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure. Marks of the same label share a colour; bars and boxes stand on the x axis."""

    title: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was found. `notes` are what a reader must know before all of it."""

    sheets: tuple[Sheet, ...]
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
