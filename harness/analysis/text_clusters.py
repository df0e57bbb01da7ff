"""Clusters of like texts by k-means, the same for the same texts and seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from harness.base.errors import DataError, UsageError

if TYPE_CHECKING:
    import numpy as np

DIMENSIONS = 64
"""Of the embedding that needs no model."""


def cluster_texts(
    texts: Sequence[str], *, many: int, seed: int, embed: Callable[[list[str]], Any] | None = None
) -> np.ndarray:
    """The number of each text's cluster, from 0 on in the order of the texts that come to them."""
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
        points = _points(distinct, embed) if embed else _words_embedded(distinct, seed=seed)
        labels = KMeans(n_clusters=many, n_init=1, random_state=seed).fit_predict(points)
    numbers: dict[int, int] = {}
    cluster_of = {
        text: numbers.setdefault(label, len(numbers))
        for text, label in zip(distinct, labels.tolist(), strict=True)
    }
    return np.array([cluster_of[text] for text in texts], dtype=np.int32)


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


def _points(texts: list[str], embed: Callable[[list[str]], Any]) -> np.ndarray:
    import numpy as np

    points = np.asarray(embed(texts), dtype=np.float32)
    if points.ndim != 2 or len(points) != len(texts) or not np.isfinite(points).all():
        raise UsageError(
            "the function that --embedding names gives no embedding",
            found=f"an array of the shape {points.shape}",
            expected=f"a row of finite numbers for each of {len(texts)} texts",
        )
    return points
