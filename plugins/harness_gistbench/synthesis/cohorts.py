"""Cohorts of people who all engaged with the same clusters, and what is drawn from their pool."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from harness.base.hashing import stable_int
from harness.base.seeded_random import drawn, picked
from harness_gistbench.log_index import POSITIVE
from harness_gistbench.synthesis.clusters import NONE

if TYPE_CHECKING:
    import numpy as np

    from harness_gistbench.synthesis.clusters import Clusters
    from harness_gistbench.synthesis.reading import Real
    from harness_gistbench.synthesis.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Cohort:
    """Numbers of the people, ascending, and of the clusters that all of them engaged with."""

    people: tuple[int, ...]
    clusters: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Membership:
    """Who has a positive engagement in which cluster: a row a person and a column a cluster.

    Left out are people with too few clusters for a cohort, and clusters with too few people.
    """

    people: np.ndarray
    clusters: np.ndarray
    table: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What was drawn for one synthetic user: numbers of engagements, in a random order.

    `wanted` is how many were meant to be; fewer are drawn where all of the `pooled` are too few.
    """

    rows: list[int]
    pooled: int
    wanted: int


def membership(real: Real, clusters: Clusters, settings: Settings) -> Membership:
    """The membership of the people of a log; one byte is held for each person and cluster."""
    import numpy as np

    many = len(clusters.names)
    cluster = clusters.of_object[real.object]
    counts = np.isin(real.signal, POSITIVE) & (cluster != NONE)
    pairs = np.unique(real.user[counts].astype(np.int64) * many + cluster[counts])
    people, cluster = pairs // many, pairs % many
    enough = np.bincount(people, minlength=len(real.users)) >= settings.clusters_together
    kept = enough[people]
    people, cluster = people[kept], cluster[kept]
    common = np.bincount(cluster, minlength=many) >= settings.least_people
    kept = common[cluster]
    rows, columns = np.flatnonzero(enough), np.flatnonzero(common)
    table = np.zeros((len(rows), len(columns)), dtype=bool)
    places = np.searchsorted(rows, people[kept]), np.searchsorted(columns, cluster[kept])
    table[places] = True
    return Membership(people=rows, clusters=columns, table=table)


def cohorts(members: Membership, settings: Settings) -> list[Cohort]:
    """The cohorts of a log, by the numbers of its people and clusters; the largest first."""
    return [
        Cohort(
            people=tuple(members.people[list(one.people)].tolist()),
            clusters=tuple(members.clusters[list(one.clusters)].tolist()),
        )
        for one in form(members.table, settings)
    ]


def form(belongs: np.ndarray, settings: Settings) -> list[Cohort]:
    """The cohorts of a table with a row a person and a column a cluster, the largest first.

    Which set of clusters the most people share is found greedily: from each cluster on, the one is
    added that keeps the most people, the first of equals. A person is in one cohort at most.
    """
    left = belongs.sum(axis=1) >= settings.clusters_together
    found: list[Cohort] = []
    # What a start gave when it was last tried stands for what it gives now, until it comes up.
    starts = [(-int(size), start, -1) for start, size in enumerate(belongs[left].sum(axis=0))]
    heapq.heapify(starts)
    while starts and len(found) < settings.cohorts:
        size, start, tried = heapq.heappop(starts)
        if -size < settings.least_people:
            break
        people, clusters = gathered(belongs, left, start, settings.clusters_together)
        if tried < len(found):
            heapq.heappush(starts, (-len(people), start, len(found)))
            continue
        kept = tuple(people.tolist())
        if settings.most_people is not None:
            rng = Random(stable_int("cohort", settings.seed, len(found)))
            kept = tuple(sorted(drawn(rng, kept, settings.most_people)))
        found.append(Cohort(people=kept, clusters=clusters))
        left[list(kept)] = False
        heapq.heappush(starts, (size, start, tried))
    return found


def gathered(
    belongs: np.ndarray, left: np.ndarray, start: int, together: int
) -> tuple[np.ndarray, tuple[int, ...]]:
    """The people left who share a set of clusters built up from one, and the set."""
    import numpy as np

    people = np.flatnonzero(left & belongs[:, start])
    rows = belongs[people]
    clusters = [start]
    while len(clusters) < together and len(people):
        sizes = rows.sum(axis=0)
        sizes[clusters] = 0
        best = int(sizes.argmax())
        keep = rows[:, best] if sizes[best] else np.zeros(len(people), dtype=bool)
        people, rows = people[keep], rows[keep]
        clusters.append(best)
    return people, tuple(sorted(clusters))


def draw(real: Real, cohort: Cohort, settings: Settings, *, number: int) -> Draw:
    """Engagements for the synthetic user of a cohort, none of them twice.

    How many is the length of one of its people's histories, times the factor.
    """
    rng = Random(stable_int("synthetic", settings.seed, number))
    spans = [(int(real.starts[one]), int(real.starts[one + 1])) for one in cohort.people]
    first, last = picked(rng, spans)
    wanted = max(1, round((last - first) * settings.factor))
    pool = [row for start, end in spans for row in range(start, end)]
    return Draw(rows=drawn(rng, pool, wanted), pooled=len(pool), wanted=wanted)
