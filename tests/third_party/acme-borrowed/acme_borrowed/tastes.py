"""Which tastes were grounded how often."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np

from acme_borrowed.benchmark import TABLES
from harness import Analysis, FinishedTask
from harness.base.errors import UsageError
from harness.contracts.report import Axis, Bars, Figure, Report, Sheet
from harness.scoring.stats import NoInterval, bootstrap_interval


class Options(msgspec.Struct, frozen=True, kw_only=True):
    readers: Annotated[int, msgspec.Meta(ge=1, description="leave out rarer tastes")] = 1
    published: Annotated[bool, msgspec.Meta(description="the paper's table too")] = False


def run(tasks: Sequence[FinishedTask], options: Options) -> Report:
    rows: list[tuple[str, str, int, float]] = []
    notes = []
    for task in tasks:
        kept: dict[str, list[int]] = defaultdict(list)
        shares = []
        for score in task.scores():
            for taste, many in score.details.kept.items() if score.details else ():
                kept[taste].append(many)
            shares += [score.values["kept"]] if "kept" in score.values else []
        interval = bootstrap_interval(np.array(shares), np.arange(len(shares)), seed=1)
        known = "no interval" if isinstance(interval, NoInterval) else "an interval"
        judged = sum(1 for _ in task.records("support").values())
        notes.append(f"{task.label}: {judged} claims, {len(shares)} readers, {known}")
        for taste, many in sorted(kept.items()):
            if len(many) >= options.readers:
                share = sum(one >= task.options.least for one in many) / len(many)
                rows.append((task.label, taste, len(many), 100 * share))
    if not rows:
        raise UsageError("no taste was named", expected="a run in which tastes were named")
    title = "Tastes with enough books, in %"
    columns = ("model", "taste", "readers", "grounded")
    sheets = [Sheet(title=title, columns=columns, rows=tuple(rows), notes=tuple(notes))]
    if options.published:
        sheets.append(TABLES.read("table1").sheet(digits=2))
    marks = tuple(
        Bars(
            label=task.label,
            names=tuple(row[1] for row in rows if row[0] == task.label),
            values=tuple(row[3] for row in rows if row[0] == task.label),
        )
        for task in tasks
    )
    x, y = Axis(label=""), Axis(label="%", low=0, high=100)
    return Report(sheets=tuple(sheets), figures=(Figure(title=title, marks=marks, x=x, y=y),))


ANALYSIS = Analysis(
    name="borrowed-tastes",
    description="which tastes were grounded how often",
    run=run,
    options=Options,
)
