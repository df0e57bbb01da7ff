"""What was done to build synthetic users: for people as a table, for programs as a JSON value.

Neither names a real user or object.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from harness.results.report import Sheet
from harness_gistbench.synthesis.reading import Real

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness import Dataset
    from harness_gistbench.synthesis.clusters import Clusters
    from harness_gistbench.synthesis.cohorts import Cohort
    from harness_gistbench.synthesis.drawing import Draw
    from harness_gistbench.synthesis.filtering import Filter
    from harness_gistbench.synthesis.settings import Settings

USUAL_LEAST = 10
"""The people a cohort of the published data has at least."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """Everything that synthetic users were made of."""

    real: Real
    clusters: Clusters
    cohorts: Sequence[Cohort]
    draws: Sequence[Draw]
    filtered: Filter

    @property
    def people(self) -> int:
        """The people in cohorts."""
        return sum(len(one.people) for one in self.cohorts)

    @property
    def short(self) -> int:
        """The synthetic users for whom the pooled histories were too few."""
        return sum(len(one.rows) < one.wanted for one in self.draws)


def summary(made: Made) -> Sheet:
    """What came in and what went out, in numbers."""
    sizes = [len(one.people) for one in made.cohorts]
    filtered = made.filtered
    rows = (
        ("engagements in the log", made.real.total),
        ("engagements in the window", len(made.real.signal)),
        ("people in the window", len(made.real.users)),
        (f"clusters, by {made.clusters.method}", len(made.clusters.names)),
        ("cohorts, one synthetic user each", len(sizes)),
        ("people in cohorts", made.people),
        ("people of a cohort, least", min(sizes)),
        ("people of a cohort, median", float(median(sizes))),
        ("people of a cohort, most", max(sizes)),
        ("engagements pooled", sum(one.pooled for one in made.draws)),
        ("engagements drawn", filtered.rows),
        ("engagements dropped by the filter", filtered.dropped),
        ("engagements replaced by the filter", filtered.replaced),
        ("engagements written", filtered.rows - filtered.dropped),
    )
    return Sheet(title="Synthetic users", columns=("", "number"), rows=rows)


def notes(made: Made, settings: Settings) -> tuple[str, ...]:
    """What a reader must know before the numbers."""
    said = []
    if made.real.unit is None:
        said.append("no engagement has a time: all of the log is in the window")
    elif made.real.untimed:
        said.append(f"{made.real.untimed} engagements have no time and were left out")
    if made.short:
        said.append(
            f"{made.short} synthetic users are shorter than they were meant to be: all of their "
            "cohort's engagements were drawn"
        )
    if settings.least_people < USUAL_LEAST:
        said.append(
            f"cohorts of fewer than {USUAL_LEAST} people hide who is behind them less well than "
            "those of the published data"
        )
    if made.filtered.function is None:
        said.append("no --filter was given: texts are written as they stand in the log")
    return tuple(said)


def account(made: Made, dataset: Dataset, settings: Settings) -> dict[str, Any]:
    """The same and more as a JSON value; of files it has names and hashes, not where they lie."""
    from pathlib import Path

    files = next(iter(dataset.describe()["tables"].values()))["files"]
    return {
        "log": {
            "files": [{**one, "file": Path(one["file"]).name} for one in files],
            "engagements": made.real.total,
            "in_window": len(made.real.signal),
            "people_in_window": len(made.real.users),
            "without_time": made.real.untimed,
            "time_unit": made.real.unit,
        },
        "settings": {
            name: value
            for name, value in msgspec.structs.asdict(settings).items()
            if name not in ("log", "out")
        },
        "clusters": {
            "method": made.clusters.method,
            "number": len(made.clusters.names),
            "libraries": {name: version(name) for name in made.clusters.libraries},
        },
        "people_in_cohorts": made.people,
        "synthetic_users": [
            {
                "user_id": str(number),
                "people": len(cohort.people),
                "clusters": [made.clusters.names[one] for one in cohort.clusters],
                "pooled": one.pooled,
                "wanted": one.wanted,
                "drawn": len(one.rows),
            }
            for number, (cohort, one) in enumerate(
                zip(made.cohorts, made.draws, strict=True), start=1
            )
        ],
        "filter": {
            "rows": made.filtered.rows,
            "dropped": made.filtered.dropped,
            "replaced": made.filtered.replaced,
        },
    }
