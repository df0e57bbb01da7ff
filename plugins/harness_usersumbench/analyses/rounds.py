"""What the verifier flagged in the summaries of segments, what was fixed, and what was left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from harness import Done
from harness.base.errors import UsageError
from harness.contracts.report import Report, Sheet
from harness_usersumbench.records import Refined, Round

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

STAGE = "segment"
ENTITIES = "entities"
"""The stage with the verifier, and the check that finds the entities of a summary."""

SEGMENT_NOTES = (
    "flagged: a check found the summary inconsistent with the query or with an activity; fixed: "
    "flagged before, and found consistent in the last check; left: flagged in the last check; "
    "undecided: flagged by nothing in a last check that could not be read in full",
    "asked again: how often a segment's summary was regenerated on average",
)
ROUND_NOTES = (
    "a round is one check of a segment's summary; the check after the last regeneration is for the "
    "record alone",
    "no verdict: pairs without a judgement, for which nothing is regenerated; unread: checks with "
    "such a pair, or with an answer that could not be read; it is undecided unless it flags "
    "something",
)


def rounds(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `usersum-rounds`: a row for each task, and one for each of its rounds."""
    segments: list[tuple[Cell, ...]] = []
    checks: list[tuple[Cell, ...]] = []
    for task in tasks:
        if any(entry.name == STAGE for entry in task.entry.stages):
            outcomes = [record.outcome for record in task.records(STAGE)]
            refined = [one.value for one in outcomes if isinstance(one, Done)]
            name = (task.label, task.task.name)
            failed = len(outcomes) - len(refined)
            segments.append((*name, len(outcomes), failed, *segment_cells(refined)))
            by_round = zip_longest(*(one.rounds for one in refined))
            checks += [
                (*name, number, *round_cells([one for one in of_round if one is not None]))
                for number, of_round in enumerate(by_round, start=1)
            ]
    if not segments:
        raise UsageError(
            "no task has a verifier",
            found=", ".join(task.task.name for task in tasks),
            expected="a task that summarises with method: hierarchy_critique",
            hint="name a run of a task that ends in _hc",
        )
    return Report(
        sheets=(
            Sheet(
                title="Segments by what the verifier said",
                columns=("model", "task", "segments", "failed", "consistent at once", "flagged",
                         "by query", "by facts", "fixed", "left", "undecided", "left %",
                         "asked again"),
                rows=tuple(segments),
                notes=SEGMENT_NOTES,
                digits=(*(1 for _ in range(12)), 2),
            ),
            Sheet(
                title="Checks by round",
                columns=("model", "task", "round", "checked", "flagged", "flagged %", "by query",
                         "no entity", "pairs", "inconsistent", "no verdict", "unread"),
                rows=tuple(checks),
                notes=ROUND_NOTES,
            ),
        )
    )  # fmt: skip


def segment_cells(refined: Sequence[Refined]) -> tuple[Cell, ...]:
    """How many segments were consistent at once, flagged, fixed, left and undecided."""
    outcomes = Counter(one.outcome for one in refined)
    checks = [one.rounds for one in refined]
    query = sum(any(check.fits_query is False for check in of) for of in checks)
    facts = sum(
        any(pair.consistent is False for check in of for pair in check.pairs) for of in checks
    )
    many, left, again = len(refined), outcomes["left"], sum(map(len, checks)) - len(checks)
    return (
        *(outcomes["consistent at once"], sum(one.flagged for one in refined), query, facts),
        *(outcomes["fixed"], left, outcomes["undecided"]),
        *(100 * left / many if many else None, again / many if many else None),
    )


def round_cells(checks: Sequence[Round]) -> tuple[Cell, ...]:
    """The counts of the checks of one round."""
    flagged = sum(one.flagged for one in checks)
    judged = Counter(pair.consistent for one in checks for pair in one.pairs)
    empty = [one for one in checks if not one.entities and one.fits_query is not False]
    return (
        *(len(checks), flagged, 100 * flagged / len(checks)),
        sum(one.fits_query is False for one in checks),
        sum(ENTITIES not in one.unread for one in empty),
        *(judged.total(), judged[False], judged[None]),
        sum(not one.read for one in checks),
    )
