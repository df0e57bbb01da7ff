"""Builds synthetic users: clusters, cohorts, pooled histories, drawn engagements, validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from harness.errors import DataError
from harness.results.report import Report
from harness_gistbench.log import CODES
from harness_gistbench.records import SIGNALS
from harness_gistbench.sources.load import open_log
from harness_gistbench.synthesis import validation
from harness_gistbench.synthesis.account import Made, account, notes, summary
from harness_gistbench.synthesis.clusters import Clusters, by_k_means, from_column
from harness_gistbench.synthesis.cohorts import Cohort, cohorts, membership
from harness_gistbench.synthesis.drawing import Row, draw, rows_of
from harness_gistbench.synthesis.filtering import Filter
from harness_gistbench.synthesis.hooks import named_function
from harness_gistbench.synthesis.opening import PLAIN, TABLE, opened, task_options
from harness_gistbench.synthesis.reading import Real, read, texts_of
from harness_gistbench.synthesis.writing import RECORD, data_file, refuse_full, write, write_record

if TYPE_CHECKING:
    import numpy as np

    from harness import Dataset
    from harness_gistbench.log import Log
    from harness_gistbench.synthesis.settings import Settings


def run(settings: Settings) -> Report:
    """Writes synthetic users of a log, and gives how they compare to the people behind them."""
    refuse_full(settings.out)
    function = named_function(settings.filter, option="filter") if settings.filter else None
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
    file = data_file(settings.out, settings.format)
    write(file, counted(users, counts))
    record = msgspec.json.format(msgspec.json.encode(account(made, dataset, settings)), indent=2)
    write_record(settings.out / RECORD, record + b"\n")
    return report(made, counts, settings, written=str(file))


def find_clusters(dataset: Dataset, log: Log, real: Real, settings: Settings) -> Clusters:
    """The cluster of each object in the window."""
    if settings.clusters_column is not None:
        return from_column(dataset.table(TABLE), settings.clusters_column, real.objects)
    embed = named_function(settings.embedding, option="embedding") if settings.embedding else None
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
    together = settings.clusters_together
    closest = cohorts(members, msgspec.structs.replace(settings, least_people=2, cohorts=1))
    most = len(closest[0].people) if closest else 0
    raise DataError(
        f"no {settings.least_people} people share {together} clusters, so that no cohort is formed",
        where=str(settings.log),
        found=f"{len(clusters.names)} clusters; {len(members.people)} of {len(real.users)} people "
        f"with a positive engagement in {together} or more of them; at most {most or 'one'} "
        "who have the same",
        expected=f"at least {settings.least_people} with a positive engagement in each of the same "
        f"{together} clusters",
        hint="a longer window (--days), fewer clusters in all (--clusters) or together "
        "(--clusters_together), or a larger log",
    )


def counted(users: Iterable[list[Row]], counts: list[list[int]]) -> Iterator[list[Row]]:
    """The same rows; for each user the engagements of each signal are put into `counts`."""
    for rows in users:
        numbers = [0] * len(SIGNALS)
        for row in rows:
            numbers[CODES[row.signal]] += 1
        counts.append(numbers)
        yield rows


def report(made: Made, counts: list[list[int]], settings: Settings, *, written: str) -> Report:
    """What was built, and how it compares to the people behind it."""
    import numpy as np

    compared = validation.Comparison(
        synthetic=np.array(counts), real=real_counts(made.real, made.cohorts)
    )
    return Report(
        sheets=(
            summary(made),
            validation.tests(compared),
            validation.shares(compared),
            validation.lengths(compared),
        ),
        figures=validation.figures(compared),
        notes=(f"written: {written}, and {RECORD} beside it", *notes(made, settings)),
    )


def real_counts(real: Real, formed: Iterable[Cohort]) -> np.ndarray:
    """The engagements of each signal of each person in a cohort."""
    import numpy as np

    many = len(SIGNALS)
    cells = np.bincount(
        real.user.astype(np.int64) * many + real.signal, minlength=len(real.users) * many
    )
    people = [one for cohort in formed for one in cohort.people]
    return cells.reshape(-1, many)[people]
