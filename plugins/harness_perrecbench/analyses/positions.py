"""How far pairwise answers go by the position in which users are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from harness.errors import UsageError
from harness.results.report import Report, Sheet
from harness_perrecbench.analyses.rows import rows_of
from harness_perrecbench.records import Comparison

if TYPE_CHECKING:
    from harness import KeptTask
    from harness.results.report import Cell


class Tally(msgspec.Struct, kw_only=True):
    """What came of comparisons. `read` have both answers, and `undecided` no preference."""

    groups: int = 0
    answers: int = 0
    first: int = 0
    comparisons: int = 0
    read: int = 0
    inconsistent: int = 0
    undecided: int = 0

    def add(self, comparisons: Iterable[Comparison]) -> None:
        """Takes the comparisons of one group."""
        self.groups += 1
        for one in comparisons:
            sides = [side for side in (one.forth, one.back) if side is not None]
            self.answers += len(sides)
            self.first += sides.count("A")
            self.comparisons += 1
            self.read += len(sides) == 2
            self.inconsistent += len(sides) == 2 and one.forth == one.back
            self.undecided += one.preferred is None

    def cells(self) -> tuple[Cell, ...]:
        """The counts, and the shares in per cent of what each is counted of."""
        return (
            self.groups,
            self.answers,
            self.first,
            _percent(self.first, self.answers),
            self.comparisons,
            self.read,
            self.inconsistent,
            _percent(self.inconsistent, self.read),
            self.undecided,
            _percent(self.undecided, self.comparisons),
        )


COLUMNS = (
    "groups", "answers", "first", "first %", "pairs", "read twice", "contrary", "contrary %",
    "undecided", "undecided %",
)  # fmt: skip
NOTES = (
    "answers: those that could be read; first: of these, those that name the user shown first, "
    "where 50% is free of bias",
    "contrary: of the pairs read in both orders, those whose answers name different users",
    "undecided: of all pairs, those without a preference, be they contrary or unreadable",
    "shares are of all answers or pairs; the metrics of a task are means over its groups",
)


def run(tasks: Sequence[KeptTask], options: object) -> Report:
    """A row for each model and level, and one for all levels of a model."""
    rows: list[tuple[Cell, ...]] = []
    for row in rows_of(tasks, ()):
        levels = {
            level: tally_of(task) for (level, ask), task in row.tasks.items() if ask == "pairwise"
        }
        rows += [(row.name, level, *tally.cells()) for level, tally in levels.items()]
        if len(levels) > 1:
            rows.append((row.name, "all", *_sum(levels.values()).cells()))
    if not rows:
        raise UsageError(
            "no task asks pairwise",
            found=", ".join(dict.fromkeys(task.task.name for task in tasks)),
            expected="a task with ask: pairwise",
        )
    sheet = Sheet(
        title="Pairwise answers by position",
        columns=("model", "level", *COLUMNS),
        rows=tuple(rows),
        notes=NOTES,
    )
    return Report(sheets=(sheet,))


def tally_of(task: KeptTask) -> Tally:
    """What came of all comparisons of a task; groups that came to nothing have none."""
    tally = Tally()
    for _, compared in task.records("compare").values():
        tally.add(compared.comparisons)
    return tally


def _sum(tallies: Iterable[Tally]) -> Tally:
    together = Tally()
    for tally in tallies:
        for name in Tally.__struct_fields__:
            setattr(together, name, getattr(together, name) + getattr(tally, name))
    return together


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None
