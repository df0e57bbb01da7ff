"""How far two label the same things alike, as cells of tables with the reasons for missing ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from harness.analysis.human_labels import Label

if TYPE_CHECKING:
    from harness.contracts.report import Cell
    from harness.scoring.finished_task import FinishedTask

Pairs: TypeAlias = Sequence[tuple[Label, Label, str]]
"""Both labels of each thing, with the user that it is about."""


def kappa_cells(
    both: Pairs, task: FinishedTask, *, seed: int
) -> tuple[tuple[Cell, ...], list[str]]:
    """The share of equal labels in %, Cohen's κ, and its interval over users as text."""
    from harness.scoring.stats import Interval, Undefined, agreement_of, kappa_interval

    first, second, users = zip(*both, strict=True) if both else ((), (), ())
    found = agreement_of(first, second)
    share = 100 * found.same / found.n if found.n else None
    if isinstance(found.kappa, Undefined):
        return (share, None, None), [f"no κ: {found.kappa.reason}"]
    settings = msgspec.structs.asdict(task.task.interval)
    drawn = kappa_interval(first, second, users, seed=seed, **settings)
    if not isinstance(drawn, Interval):
        return (share, found.kappa, None), [f"no interval: {drawn.reason}"]
    return (share, found.kappa, f"{drawn.low:.2f} to {drawn.high:.2f}"), []
