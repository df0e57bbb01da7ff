"""The nine cells of Table 1 and their average, by both definitions of tau, and by method."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec

from harness.analysis.result_grid import Line
from harness.analysis.score_columns import MOST_UNREADABLE, ScoreColumn
from harness.analysis.task_setting import check_several
from harness.contracts.report import Report, Sheet
from harness_perrecbench.analyses import grid
from harness_perrecbench.analyses.grid import GRID, Row, rows_of
from harness_perrecbench.baselines import BASELINES
from harness_perrecbench.paper import COLUMN, OURS, TWO_TAUS, Cell, tails

if TYPE_CHECKING:
    from harness import FinishedTask

LIKE = "like_higher_average"
METHODS = ("thought", "samples", "shots", "profile")
"""The options that distinguish the methods of Table 2."""

Rankings: TypeAlias = dict[tuple[str, Cell], ScoreColumn]
"""Baseline and cell → column of scores."""

NAMES = (OURS, COLUMN, LIKE, *BASELINES)

COMPARABLE = (
    "Only ptc_published is comparable to Table 1, over the whole test data, with the settings of "
    "the nine tasks or of perrec_now, _plain, _dot or _older: without --limit, sample or strict. "
    "The harness checks the number of groups and their items. Unreadable groups count 0 here "
    "and are left out in the paper: compare the line without them, if there are any."
)


class TableOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `perrec`."""

    published: Annotated[
        bool, msgspec.Meta(description="show the paper's Tables 1 and 3 below")
    ] = False


def main(tasks: Sequence[FinishedTask], options: TableOptions) -> Report:
    """The report of `perrec`: rows per model and setting, comparable published rows, baselines."""
    found = rows_of(tasks, NAMES)
    cells = GRID.filled(found, OURS)
    sheets = [
        ours(found, cells),
        as_published(found, cells),
        baselines(found, cells),
        like_higher_average(found),
        without_unreadable(found, cells),
    ]
    if options.published:
        sheets.append(grid.published_table("main", "model", "kind"))
        sheets.append(grid.published_table("tuning", "base", "training"))
    return Report(sheets=tuple(sheets), notes=(TWO_TAUS, COMPARABLE))


def ours(found: Sequence[Row], cells: Collection[Cell]) -> Sheet:
    """A sheet with ptc and the interval of the average."""
    lines = [GRID.line(row, OURS, cells) for row in found]
    notes = [*grid.remarks_on(found, OURS, lines)]
    interval = found[0].first.task.interval
    bounds = f"{interval.confidence:.0%} of {interval.draws:,} draws over items; an item's groups"
    for row in found:
        labelled = {cell: len(column.values) for cell, column in row.of(OURS).items()}
        partial = {
            cell[0]: f"{labelled.get(cell, 0)} of {len(column.values)} groups have a label"
            for cell, column in row.of(LIKE).items()
            if labelled.get(cell, 0) < len(column.values)
        }
        notes += [f"{row.name}, {level}: {note}" for level, note in partial.items()]
    return GRID.sheet(
        "ptc, unreadable groups counted 0",
        lines,
        cells,
        notes=(f"{grid.NARROW}; low and high: {bounds} are drawn together in all cells", *notes),
    )


def as_published(found: Sequence[Row], cells: Collection[Cell]) -> Sheet:
    """A sheet with ptc_published by average, among the published rows next above and below.

    The authors leave out unreadable groups, so the average without them decides the neighbours.
    """
    placed: list[tuple[float, list[Line[Cell]]]] = []
    published: dict[str, Line[Cell]] = {}
    apart: list[Line[Cell]] = []
    notes: list[str] = []
    for row in found:
        line = GRID.line(row, COLUMN, cells)
        without = GRID.line_of_readable(row, COLUMN, cells, f"{row.name}, unreadable left out")
        unreadable = any(column.unreadable for column in row.of(COLUMN).values())
        lines = [line, without] if unreadable else [line]
        notes += GRID.remarks(row, COLUMN, line)
        reasons = grid.against(row)
        if reasons or without.average.value is None:
            apart += lines
            notes.append(f"no published rows next to {row.name}: {'; '.join(reasons)}")
        else:
            placed.append((without.average.value, lines))
            tail = row.first.options.tail
            near_row = grid.next_to(without.average.value, tail)
            published |= near_row
            known = ", ".join(f"{model} {tails()[model]}" for model in near_row)
            notes.append(f"{row.name}: tail of its list prompts: {tail}; published: {known}")
    near = [(line.average.value or 0.0, [line]) for line in published.values()]
    ordered = sorted([*near, *placed], key=lambda one: one[0], reverse=True)
    return GRID.sheet(
        "ptc_published, unreadable groups counted 0",
        [*(line for _, lines in ordered for line in lines), *apart],
        cells,
        notes=notes,
    )


def baselines(found: Sequence[Row], cells: Collection[Cell]) -> Sheet:
    """A sheet with the ptc of every baseline, once for all rows with the same groups."""
    sets = _baselines(found)
    lines = []
    for of, rankings in sets:
        whose = (", ".join(row.name for row in of),) if len(sets) > 1 else ()
        for name in BASELINES:
            columns = {cell: column for (own, cell), column in rankings.items() if own == name}
            if columns:
                counted = {cell: column.counted for cell, column in columns.items()}
                average = GRID.average(columns, cells, row=of[0], metric=name)
                lines.append(Line(names=(name, *whose), cells=counted, average=average))
    return GRID.sheet(
        "Baselines without a model, ptc",
        lines,
        cells,
        first=("ranking", "of the groups of") if len(sets) > 1 else ("ranking",),
        notes=("user_average ties all users; item_average equals lower average first",),
    )


def _baselines(found: Sequence[Row]) -> list[tuple[list[Row], Rankings]]:
    """The baselines of each set of groups, with its rows.

    Rows have the same groups if they share cells, and their baselines are equal in these.
    """
    sets: list[tuple[list[Row], Rankings]] = []
    for row in found:
        own = {(name, cell): column for name in BASELINES for cell, column in row.of(name).items()}
        for of, known in sets:
            shared = own.keys() & known.keys()
            if shared and all(own[place] == known[place] for place in shared):
                of.append(row)
                known.update(own)
                break
        else:
            sets.append(([row], own))
    return sets


def like_higher_average(found: Sequence[Row]) -> Sheet:
    """A sheet with the agreement of each model and higher average first, over readable groups."""
    cells = GRID.filled(found, LIKE)
    lines = []
    notes = []
    for row in found:
        hidden = {
            cell for name in (OURS, LIKE) for cell, column in row.of(name).items() if column.hidden
        }
        lines.append(GRID.line_of_readable(row, LIKE, cells, row.name, but=hidden))
        if hidden:
            notes.append(
                f"{row.name}: cells with more than {MOST_UNREADABLE:.0%} unreadable are not shown"
            )
    title = "Agreement with higher average first, ptc, unreadable groups left out"
    return GRID.sheet(title, lines, cells, notes=notes)


def without_unreadable(found: Sequence[Row], cells: Collection[Cell]) -> Sheet:
    """A sheet with the number of unreadable groups in each cell, and the ptc without them."""
    lines = []
    for row in found:
        counts = {cell: column.unreadable for cell, column in row.of(OURS).items()}
        lines.append(Line(names=(row.name, "unreadable"), cells=counts))
        if any(counts.values()):
            lines.append(GRID.line_of_readable(row, OURS, cells, row.name, OURS))
    return GRID.sheet("Without the unreadable groups", lines, cells, first=("model", "what"))


class PromptingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `perrec-prompting`."""

    published: Annotated[bool, msgspec.Meta(description="show the paper's Table 2 below")] = False


def prompting(tasks: Sequence[FinishedTask], options: PromptingOptions) -> Report:
    """The report of `perrec-prompting`: a sheet per model and definition, methods as in Table 2."""
    sheets, rows = [], rows_of(tasks, (OURS, COLUMN))
    if not options.published:
        check_several({method_of(row.first)[-1] for row in rows}, "method")
    for model, found in grid.by_model(rows).items():
        named = sorted(((method_of(row.first), row) for row in found), key=itemgetter(0))
        for name in (OURS, COLUMN):
            cells = GRID.filled(found, name)
            lines = [
                GRID.line(
                    row, name, cells, called=f"{method} ({row.apart})" if row.apart else method
                )
                for (*_, method), row in named
            ]
            sheet = GRID.sheet(
                f"{model}: {name} by method, unreadable groups counted 0",
                lines,
                cells,
                first=("prompting",),
                notes=(grid.NARROW, *grid.remarks_on([row for _, row in named], name, lines)),
            )
            sheets.append(sheet)
    if options.published:
        sheets.append(grid.published_table("prompting", "prompting"))
    return Report(sheets=tuple(sheets))


def method_of(task: FinishedTask) -> tuple[Any, ...]:
    """The sort key of a task's prompting method, which ends with its name in Table 2.

    Tasks with other differences to the nine tasks come last.
    """
    options = task.options
    others = grid.setting_of(task, but=METHODS)
    ways = {
        "chain of thought": options.thought,
        f"self-consistency ({options.samples})": options.samples > 1,
        f"few-shot ({options.shots})": options.shots > 0,
    }
    method = ", ".join(words for words, used in ways.items() if used) or "zero-shot"
    if options.profile != "full":
        method += f" {grid.SETTING.words['profile', options.profile]}"
    key = (others != "", *ways.values(), options.profile != "full", options.samples, options.shots)
    return *key, ", ".join(filter(None, (method, others)))
