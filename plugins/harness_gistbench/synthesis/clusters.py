"""Which interest cluster each object belongs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.base.errors import DataError, UsageError

if TYPE_CHECKING:
    import numpy as np

    from harness.contracts.dataset import Table

NONE = -1
DIMENSIONS = 64
"""Of the embedding that needs no model."""


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
    """Clusters of like texts, numbered in the order of their first texts."""
    import numpy as np
    from sklearn.cluster import KMeans  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    distinct = sorted(set(texts))
    if len(distinct) < many:
        raise DataError(
            f"there are too few texts for {many} clusters",
            found=f"{len(distinct)} distinct texts",
            expected=f"at least {many}",
            hint="take fewer with --clusters",
        )
    # Sums of several threads differ in their last digits from one run to the next.
    with threadpool_limits(1):
        if embed is None:
            points = _words_embedded(distinct, seed=seed)
        else:
            points = np.asarray(embed(distinct), dtype=np.float32)
            if points.ndim != 2 or len(points) != len(distinct) or not np.isfinite(points).all():
                raise UsageError(
                    "the function that --embedding names gives no embedding",
                    found=f"an array of the shape {points.shape}",
                    expected=f"a row of finite numbers for each of {len(distinct)} texts",
                )
        labels = KMeans(n_clusters=many, n_init=1, random_state=seed).fit_predict(points)
    numbers: dict[int, int] = {}
    number_of = {
        text: numbers.setdefault(label, len(numbers))
        for text, label in zip(distinct, labels.tolist(), strict=True)
    }
    return Clusters(
        names=tuple(str(number) for number in range(1, len(numbers) + 1)),
        of_object=np.array([number_of[text] for text in texts], dtype=np.int32),
        method="k-means over an embedding of the texts"
        if embed
        else "k-means over TF-IDF and a singular value decomposition",
        libraries=("numpy", "scipy", "scikit-learn"),
    )


def _words_embedded(texts: Sequence[str], *, seed: int) -> np.ndarray:
    """A direction for each text, from the words that it shares with others."""
    import numpy as np
    from sklearn.decomposition import TruncatedSVD  # type: ignore[import-untyped]
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]
    from sklearn.preprocessing import normalize  # type: ignore[import-untyped]

    try:
        weights = TfidfVectorizer(sublinear_tf=True, dtype=np.float32).fit_transform(texts)
    except ValueError as error:
        raise DataError(
            "the texts hold no words to compare", found=str(error), hint="name an --embedding"
        ) from error
    if weights.shape[1] > DIMENSIONS:
        weights = TruncatedSVD(DIMENSIONS, random_state=seed).fit_transform(weights)
    directions: np.ndarray = normalize(weights)
    return directions
