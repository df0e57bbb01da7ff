"""Which interest cluster each object belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.analysis.text_clusters import cluster_texts
from harness.base.errors import DataError

if TYPE_CHECKING:
    import numpy as np

    from harness.contracts.dataset import Table

NONE = -1


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """The names of the clusters, and the number of each object's cluster, NONE for none.

    `libraries` are those whose versions may change the clusters.
    """

    names: tuple[str, ...]
    of_object: np.ndarray
    method: str
    libraries: tuple[str, ...] = ()


def from_column(table: Table, column: str, objects: Sequence[str]) -> Clusters:
    """The clusters that a column of the log names; an empty cell names none."""
    import numpy as np

    named: dict[str, str] = {}
    for batch in table.batches("object_id", column):
        pairs = zip(batch.columns["object_id"], batch.columns[column], strict=True)
        for place, (thing, cluster) in enumerate(pairs):
            if cluster and cluster.strip() and named.setdefault(thing, cluster) != cluster:
                expected = f"the cluster of object {thing} in every row, which is {named[thing]!r}"
                raise table.bad(batch.first + place, column, cluster, expected)
    if not named:
        raise DataError(
            f"the log names no cluster in the column '{column}'",
            found="a column that is absent or empty",
            expected="the name of a cluster for each object",
        )
    names = tuple(sorted(set(named.values())))
    number = {name: place for place, name in enumerate(names)}
    codes = [number[named[thing]] if thing in named else NONE for thing in objects]
    return Clusters(
        names=names, of_object=np.array(codes, dtype=np.int32), method=f"the column {column}"
    )


def by_k_means(
    texts: Sequence[str], *, many: int, seed: int, embed: Callable[[list[str]], Any] | None = None
) -> Clusters:
    """Clusters of like texts, numbered in the order in which the texts come to them."""
    numbers = cluster_texts(texts, many=many, seed=seed, embed=embed)
    return Clusters(
        names=tuple(str(number) for number in range(1, int(numbers.max()) + 2)),
        of_object=numbers,
        method="k-means over an embedding of the texts"
        if embed
        else "k-means over TF-IDF and a singular value decomposition",
        libraries=("numpy", "scipy", "scikit-learn"),
    )
