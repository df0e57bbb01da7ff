"""What the verifier flagged in the summaries of segments, what was fixed, and what was left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness import Done
from harness.base.errors import UsageError
from harness.contracts.report import Axis, Bars, Figure, Report, Sheet
from harness_usersumbench.records import Refined, Round

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

STAGE = "segment"
ENTITIES = "entities"
"""The check that finds the entities of a summary."""

SEGMENT_NOTES = (
    "flagged: a check found the summary inconsistent with the query or with an activity; fixed: "
    "flagged before, and not in the last check; left: flagged in the last check",
    "asked again: regenerations of a segment's summary, on average over all segments",
)
ROUND_NOTES = (
    "a round is one check of a segment's summary; the last check after the last regeneration is "
    "for the record alone",
    "no verdict: pairs without a judgement, for which nothing is regenerated; unread: checks with "
    "an answer that could not be read",
)


def rounds(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `usersum-rounds`: a row for each task, and one for each of its rounds."""
    refined = {
        (task.label, task.task.name): list(_segments(task))
        for task in tasks
        if any(entry.name == STAGE for entry in task.entry.stages)
    }
    if not refined:
        raise UsageError(
            "no task has a verifier",
            found=", ".join(task.task.name for task in tasks),
            expected="a task that summarises with method: hierarchy_critique",
        )
    return Report(
        sheets=(
            Sheet(
                title="Segments by what the verifier said",
                columns=("model", "task", "segments", "failed", "consistent at once", "flagged",
                         "by query", "by facts", "fixed", "left", "left %", "asked again"),
                rows=tuple((*name, *segment_cells(found)) for name, found in refined.items()),
                notes=SEGMENT_NOTES,
                digits=(*(1 for _ in range(11)), 2),
            ),
            Sheet(
                title="Checks by round",
                columns=("model", "task", "round", "checked", "flagged", "flagged %", "by query",
                         "no entity", "pairs", "inconsistent", "no verdict", "unread"),
                rows=tuple(
                    (*name, number, *round_cells(checks))
                    for name, found in refined.items()
                    for number, checks in enumerate(by_round(found), 1)
                ),
                notes=ROUND_NOTES,
            ),
        ),
        figures=tuple(_figure(refined)),
    )  # fmt: skip


def segment_cells(found: Sequence[Refined | None]) -> tuple[Cell, ...]:
    """The counts of segments by what their checks said; None is a segment that failed."""
    known = [one for one in found if one is not None]
    counts: Counter[str] = Counter()
    for one in known:
        counts["flagged"] += one.flagged
        counts["query"] += any(check.fits_query is False for check in one.rounds)
        counts["facts"] += any(_wrong(check) for check in one.rounds)
        counts["fixed"] += one.flagged and not one.left
        counts["left"] += one.left
        counts["again"] += len(one.rounds) - 1
    many = len(known)
    return (
        *(len(found), len(found) - many, many - counts["flagged"], counts["flagged"]),
        *(counts["query"], counts["facts"], counts["fixed"], counts["left"]),
        100 * counts["left"] / many if many else None,
        counts["again"] / many if many else None,
    )


def round_cells(checks: Sequence[Round]) -> tuple[Cell, ...]:
    """The counts of the checks of one round."""
    flagged = sum(one.flagged for one in checks)
    pairs = [pair for one in checks for pair in one.pairs]
    return (
        *(len(checks), flagged, 100 * flagged / len(checks)),
        sum(one.fits_query is False for one in checks),
        sum(
            not one.entities and one.fits_query is not False and ENTITIES not in one.unread
            for one in checks
        ),
        *(len(pairs), sum(pair.consistent is False for pair in pairs)),
        sum(pair.consistent is None for pair in pairs),
        sum(bool(one.unread) for one in checks),
    )


def by_round(found: Sequence[Refined | None]) -> list[list[Round]]:
    """The first checks of all segments, their second checks, and so on."""
    known = [one.rounds for one in found if one is not None]
    most = max(map(len, known), default=0)
    return [[checks[n] for checks in known if len(checks) > n] for n in range(most)]


def _wrong(check: Round) -> bool:
    return any(pair.consistent is False for pair in check.pairs)


def _segments(task: FinishedTask) -> Iterator[Refined | None]:
    """The refined segments of a task, None for each that failed."""
    for record in task.records(STAGE):
        yield record.outcome.value if isinstance(record.outcome, Done) else None


def _figure(refined: dict[tuple[str, str], list[Refined | None]]) -> Iterator[Figure]:
    """The share of all segments that are flagged in each round, as bars; none without a check."""
    marks = []
    for (model, task), found in refined.items():
        many = sum(one is not None for one in found)
        checks = by_round(found)
        if checks:
            shares = tuple(100 * sum(one.flagged for one in of_round) / many for of_round in checks)
            names = tuple(f"check {number}" for number in range(1, len(checks) + 1))
            label = model if len({name for _, name in refined}) == 1 else f"{model}, {task}"
            marks.append(Bars(label=label, names=names, values=shares))
    if marks:
        yield Figure(
            title="Segments that the verifier flags",
            x=Axis(label=""),
            y=Axis(label="of all segments, %", low=0.0, high=100.0),
            marks=tuple(marks),
        )
