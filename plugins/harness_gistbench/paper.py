"""What the paper reports: its tables, and Tables 3 and 4 as results of the tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.contracts.published import PublishedResult, PublishedTables

TABLES = PublishedTables("harness_gistbench")

SCORES: Mapping[str, Sequence[str]] = {
    "scores": ("ig_f1", "is"),
    "precision_recall": ("ig_p", "ig_r"),
}
"""The scores in each of the paper's tables by model and dataset, 3 and 4."""

COMPARABLE_IF = (
    "the whole published data, asked and judged as the task says; recall against the oracle of the "
    "paper's models"
)


def results() -> tuple[PublishedResult, ...]:
    """Tables 3 and 4, medians over users as shares."""
    return tuple(
        PublishedResult(
            task=f"gist_{row['dataset']}",
            metric=metric,
            model=row["model"],
            value=round(row[metric] / 100, 3),
            source=TABLES.read(name).source,
            comparable_if=COMPARABLE_IF,
        )
        for name, metrics in SCORES.items()
        for row in TABLES.read(name).dicts()
        for metric in metrics
        if row[metric] is not None
    )
