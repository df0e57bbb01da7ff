"""How the results of several queries become one list; all functions are pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal, TypeVar

T = TypeVar("T")

Merge = Literal["round_robin", "published"]

RELEVANT = 0.9
"""The cosine from which on a title counts as near to a true one."""

QUERIES = 10
"""The queries that `published` divides K by, however many there are."""


def taken_of_each(merge: Merge, k: int, queries: int) -> int:
    """How many results of each query a merge at `k` reads; all `k` of a single query.

    >>> taken_of_each("round_robin", 100, 10), taken_of_each("published", 100, 10)
    (100, 10)
    """
    return k // QUERIES if merge == "published" and queries > 1 else k


def round_robin(lists: Sequence[Sequence[int]], k: int) -> list[tuple[int, int]]:
    """The query and the place of each result that is kept: by rank, no result twice, at most `k`.

    The merge at a smaller `k` is the beginning of this one.

    >>> round_robin([[7, 8], [7, 9, 5]], 3)
    [(0, 0), (0, 1), (1, 1)]
    """
    kept: dict[int, tuple[int, int]] = {}
    for place, results in enumerate(zip_longest(*lists)):
        if len(kept) >= k:
            break
        for query, result in enumerate(results):
            if result is not None:
                kept.setdefault(result, (query, place))
    return list(kept.values())[:k]


def merged(lists: Sequence[Sequence[int]], k: int, merge: Merge) -> list[tuple[int, int]]:
    """The query and the place of each result of the merged list.

    `published` has the first results of each query, one query after the other, some of them twice;
    with more than ten queries it is longer than `k`, and `at` cuts it.

    >>> merged([[7, 8], [7, 9]], 10, "published")
    [(0, 0), (1, 0)]
    """
    if merge == "round_robin":
        return round_robin(lists, k)
    each = taken_of_each(merge, k, len(lists))
    return [(query, place) for query, one in enumerate(lists) for place in range(len(one[:each]))]


def at(found: Sequence[T], k: int, merge: Merge, queries: int) -> list[T]:
    """The list at a smaller `k`, from what was merged at a larger one for so many queries.

    >>> at(["a", "b", "c", "d"], 10, "published", 2)
    ['a', 'c']
    """
    if merge == "round_robin" or queries == 1:
        return list(found[:k])
    held = len(found) // queries
    each = taken_of_each(merge, k, queries)
    return [one for place, one in enumerate(found) if place % held < each][:k] if held else []
