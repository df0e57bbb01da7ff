"""The paper's tables, and its Table 4 as published results of the tasks."""

from __future__ import annotations

from harness.contracts.published import PublishedResult, PublishedTables
from harness_usersumbench.metrics import OURS

TABLES = PublishedTables("harness_usersumbench")

DATASETS = {"MovieLens": "movielens", "Yelp": "yelp", "Amazon Review": "amazon"}
"""The paper's name of each dataset → the name in tasks."""

METHODS = {"single-step": "", "hierarchy-critique": "_hc"}
"""The columns of Table 4 → the ends of the tasks' names."""

MODEL = "Gemini 1.5 Flash"
"""The model that summarises, verifies and predicts in Table 4."""

COMPARABLE_IF = (
    "all users of the paper's data with at least 50 activities, summarised, checked and predicted "
    "by one model in three runs"
)


def examples() -> dict[str, int]:
    """The paper's number of examples of each dataset (Table 1)."""
    return {row["dataset"]: row["examples"] for row in TABLES.read("examples").dicts()}


def results() -> tuple[PublishedResult, ...]:
    """Table 4 as published results, method by method."""
    table, n = TABLES.read("methods"), examples()
    return tuple(
        PublishedResult(
            task=f"usersum_{DATASETS[row['dataset']]}{METHODS[method]}",
            metric=row["metric"],
            model=MODEL,
            value=row[method],
            n=n[row["dataset"]],
            source=table.source,
            comparable_if=COMPARABLE_IF if row["metric"] == "qm" else f"never: {OURS}",
        )
        for method in METHODS
        for row in table.dicts()
    )
