"""The rows of the published tables. Models are called as in Table 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from harness_perrecbench.records import MEMBERS, Ask, Level

if TYPE_CHECKING:
    from collections.abc import Mapping

ASKS: tuple[Ask, ...] = ("pointwise", "pairwise", "listwise")


class Cells(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What Tables 1 to 3 have behind the names of a row; None is a dash.

    Fields for keywords alone stand behind the others, so that rows name themselves first.
    """

    easy_pointwise: float
    easy_pairwise: float
    easy_listwise: float | None
    medium_pointwise: float
    medium_pairwise: float
    medium_listwise: float | None
    hard_pointwise: float
    hard_pairwise: float
    hard_listwise: float | None
    average: float | None

    @property
    def cells(self) -> Mapping[tuple[Level, Ask], float | None]:
        """The nine cells by level and way of asking."""
        return {(level, ask): getattr(self, f"{level}_{ask}") for level in MEMBERS for ask in ASKS}


class Result(Cells, frozen=True, array_like=True):
    """Table 1: one model."""

    model: str
    kind: Literal["open", "proprietary"]


class Prompting(Cells, frozen=True, array_like=True):
    """Table 2: GPT-4o-mini prompted in one way."""

    prompting: str


class Tuning(Cells, frozen=True, array_like=True):
    """Table 3: one model after one kind of training."""

    base: str
    training: str


class Statistic(msgspec.Struct, frozen=True, array_like=True):
    """Table 4: one number of both parts of the data."""

    statistic: str
    held_out: int
    test: int


class Number(msgspec.Struct, frozen=True, array_like=True):
    """A number that stands in no table."""

    what: str
    value: float
    where: str
