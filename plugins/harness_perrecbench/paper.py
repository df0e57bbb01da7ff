"""The paper's tables, and its Table 1 as published results of the nine tasks."""

from __future__ import annotations

from harness.contracts.published import PublishedResult, PublishedTables
from harness_perrecbench.records import MEMBERS, Ask, Level

TABLES = PublishedTables("harness_perrecbench")

Cell = tuple[Level, Ask]

WAYS: dict[Ask, str] = {"pointwise": "point", "pairwise": "pair", "listwise": "list"}
"""Way of asking for a ranking → its name in narrow columns."""

CELLS: tuple[Cell, ...] = tuple((level, ask) for level in MEMBERS for ask in WAYS)
"""The nine cells of Table 1, in its order."""

GROUPS = 200
"""The number of groups in each cell of Table 1."""

OURS = "ptc"
COLUMN = "ptc_published"
"""The columns of scores with this project's and with Table 1's definition."""

TWO_TAUS = (
    "ptc is the agreement of the predicted and the true ranking over the pairs of users in a "
    "group; ptc_published is Kendall's tau of the two lists of users' numbers, position by "
    "position, as in the authors' script: it is equal for two users without a tie, and a different "
    "and mostly smaller quantity for three and four."
)
TAU_NOTES = (TWO_TAUS, "The paper's numbers are ptc_published: compare them with that alone.")
"""Stand below reports with both."""

AVERAGE = "perrec"
"""The group of the nine tasks, whose average is the last column of Table 1."""

COMPARABLE_IF = (
    "all 200 published groups of each task, asked as the nine tasks ask: without --limit, sample, "
    "strict or another variant; groups that cannot be read are left out"
)


def task_of(cell: Cell) -> str:
    return f"{AVERAGE}_{'_'.join(cell)}"


def tails() -> dict[str, str]:
    """Model of Table 1 → the tails of its list prompts, "not recorded" if no record shows any."""
    return {
        row["model"]: "/".join(dict.fromkeys(row[level] for level in MEMBERS if row[level]))
        or "not recorded"
        for row in TABLES.read("tails").dicts()
    }


def results() -> tuple[PublishedResult, ...]:
    """Table 1 as published results, model by model."""
    table = TABLES.read("main")
    tasks = {task_of(cell): (" ".join(cell), GROUPS) for cell in CELLS}
    return tuple(
        PublishedResult(
            task=task,
            metric=COLUMN,
            model=row["model"],
            value=row[column],
            n=groups,
            source=table.source,
            comparable_if=COMPARABLE_IF,
        )
        for row in table.dicts()
        for task, (column, groups) in {**tasks, AVERAGE: ("average", None)}.items()
        if row[column] is not None
    )
