"""The rules of a data tool with what each one left, as a table for people and as JSON.

report = ToolReport(
    rules="users …",
    dropped="users",
    steps=(
        Step("in the file", {"users": 900, "ratings": 50_000}),
        Step("with 20 ratings or more", {"users": 640, "ratings": 47_500}),
    ),
)
Report(sheets=(report.sheet("What each rule leaves"),))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from harness.contracts.report import Cell, Sheet


@dataclass(frozen=True)
class Step:
    """A rule with the count of each kind that it left; every step counts the same kinds."""

    rule: str
    left: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class ToolReport:
    """The rules that a tool applied, in their order.

    `rules` is the header of their column; `dropped` is the kind whose losses get a column.
    """

    rules: str
    dropped: str
    steps: Sequence[Step]

    def losses(self) -> list[int | None]:
        """How many of the kind `dropped` each rule removed; None for the first rule."""
        left = [step.left[self.dropped] for step in self.steps]
        return [None, *(before - after for before, after in pairwise(left))] if left else []

    def sheet(self, title: str, *, notes: Iterable[str] = ()) -> Sheet:
        """A row for each rule: what it left of each kind, and what it removed."""
        rows: list[tuple[Cell, ...]] = [
            (step.rule, *step.left.values(), lost)
            for step, lost in zip(self.steps, self.losses(), strict=True)
        ]
        return Sheet(
            title=title,
            columns=(self.rules, *self._kinds(), f"{self.dropped} removed"),
            rows=tuple(rows),
            notes=tuple(notes),
        )

    def lines(self) -> list[str]:
        """The same as aligned lines for an error, the rules last."""
        rows = [(*self._kinds(), f"{self.dropped} removed", self.rules)]
        for step, lost in zip(self.steps, self.losses(), strict=True):
            counts = (*step.left.values(), lost)
            rows.append((*("" if one is None else f"{one:,}" for one in counts), step.rule))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(
                (*(cell.rjust(width) for cell, width in zip(cells, widths, strict=False)), rule)
            )
            for *cells, rule in rows
        ]

    def json(self) -> list[dict[str, str | int]]:
        """The same for a file: an object for each rule."""
        return [{"rule": step.rule, **step.left} for step in self.steps]

    def _kinds(self) -> tuple[str, ...]:
        return tuple(self.steps[0].left) if self.steps else ()
