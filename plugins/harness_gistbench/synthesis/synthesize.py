"""Builds synthetic users: clusters, cohorts, pooled histories, drawn engagements, validation.

The report is a table for people and a JSON value for programs; neither names a real user or object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from harness.analysis.tool_report import settings_without, write_json
from harness.base.errors import DataError
from harness.base.named_functions import named_function
from harness.contracts.report import Report, Sheet
from harness.pipeline.embedders import embedding_of
from harness_gistbench.records import SIGNALS
from harness_gistbench.sources import open_log
from harness_gistbench.synthesis import validation
from harness_gistbench.synthesis.clusters import Clusters, by_k_means, from_column
from harness_gistbench.synthesis.cohorts import Cohort, Draw, cohorts, draw, membership
from harness_gistbench.synthesis.distributions import spread_sheet
from harness_gistbench.synthesis.reading import (
    PLAIN,
    TABLE,
    Real,
    opened,
    read,
    task_options,
    texts_of,
)
from harness_gistbench.synthesis.settings import Settings
from harness_gistbench.synthesis.writing import RECORD, Filter, Row, check_empty, rows_of, write

if TYPE_CHECKING:
    from harness import Dataset
    from harness_gistbench.log_index import LogIndex

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


def run(settings: Settings) -> Report:
    """Writes synthetic users of a log, and gives how they compare to the people behind them."""
    check_empty(settings.out)
    function = named_function(settings.filter, option="--filter") if settings.filter else None
    task, options = task_options(PLAIN)
    dataset = opened(task, str(settings.log), optional=settings.clusters_column)
    log = open_log(dataset, options)
    real = read(log, days=settings.days, unit=settings.time_unit)
    clusters = find_clusters(dataset, log, real, settings)
    formed = form(real, clusters, settings)
    draws = [draw(real, one, settings, number=number) for number, one in enumerate(formed, 1)]
    made = Made(
        real=real,
        clusters=clusters,
        cohorts=formed,
        draws=draws,
        filtered=Filter(function=function, name=settings.filter or ""),
    )
    drawn_objects = {thing for one in draws for thing in real.object[one.rows].tolist()}
    texts = texts_of(log, (real.objects[thing] for thing in drawn_objects))
    counts: list[list[int]] = []
    users = made.filtered.through_all(rows_of(draws, real, texts, settings))
    file = settings.out / f"engagements.{settings.format}"
    write(file, counted(users, counts))
    write_json(settings.out / RECORD, account(made, dataset, settings), option="--out")
    return report(made, counts, settings, written=str(file))


def find_clusters(dataset: Dataset, log: LogIndex, real: Real, settings: Settings) -> Clusters:
    """The cluster of each object in the window."""
    if settings.clusters_column is not None:
        return from_column(dataset.table(TABLE), settings.clusters_column, real.objects)
    embed = embedding_of(settings.embedding, option="--embedding") if settings.embedding else None
    texts = texts_of(log, real.objects)
    return by_k_means(
        [texts[thing] for thing in real.objects],
        many=settings.clusters,
        seed=settings.seed % (1 << 32),
        embed=embed,
    )


def form(real: Real, clusters: Clusters, settings: Settings) -> list[Cohort]:
    """The cohorts of the log; refused where there is none, with what there is."""
    members = membership(real, clusters, settings)
    found = cohorts(members, settings)
    if found:
        return found
    least, together = settings.least_people, settings.clusters_together
    same = "the same cluster" if together == 1 else f"the same {together} clusters"
    looser = msgspec.structs.replace(settings, least_people=2, cohorts=1)
    closest = cohorts(membership(real, clusters, looser), looser)
    most = f"at most {len(closest[0].people)} people" if closest else "no two people"
    raise DataError(
        f"no {least} people are in {same}, so that no cohort is formed",
        where=str(settings.log),
        found=f"{len(clusters.names)} clusters; {len(members.people)} of {len(real.users)} people "
        f"with a positive engagement in {together} or more of them; {most} are in {same}",
        expected=f"at least {least} people with positive engagements in {same}",
        hint="a longer window (--days), fewer clusters in all (--clusters) or together "
        "(--clusters_together), or a larger log",
    )


def counted(users: Iterable[list[Row]], counts: list[list[int]]) -> Iterator[list[Row]]:
    """The same rows; for each user the engagements of each signal are put into `counts`."""
    for rows in users:
        signals = [row.signal for row in rows]
        counts.append([signals.count(signal) for signal in SIGNALS])
        yield rows


def report(made: Made, counts: list[list[int]], settings: Settings, *, written: str) -> Report:
    """What was built, and how it compares to the people behind it."""
    import numpy as np

    people = [one for cohort in made.cohorts for one in cohort.people]
    cells = made.real.user.astype(np.int64) * len(SIGNALS) + made.real.signal
    real = np.bincount(cells, minlength=len(made.real.users) * len(SIGNALS))
    real = real.reshape(-1, len(SIGNALS))[people]
    compared = validation.Comparison(synthetic=np.array(counts), real=real)
    return Report(
        sheets=(
            summary(made),
            validation.tests(compared),
            validation.shares(compared),
            spread_sheet("Engagements a person", "people", compared.lengths),
        ),
        figures=validation.figures(compared),
        notes=(f"written: {written}, and {RECORD} beside it", *notes(made, settings)),
    )


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
    if short := sum(len(one.rows) < one.wanted for one in made.draws):
        said.append(
            f"{short} synthetic users are shorter than they were meant to be: all of their "
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
        "settings": settings_without(settings, "log", "out"),
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
