"""The choice of the ids that a run keeps: the same in every process and for any order of ids."""

from __future__ import annotations

from collections.abc import Iterable

from harness.base.hashing import stable_int


def choose(ids: Iterable[str], *, seed: int, most: int | None) -> tuple[list[str], int]:
    """The ids with the smallest hashes, at most `most`, in hash order; and the number of all ids.

    Repeated ids count once. The choice of 10 is a part of the choice of 20 for the same seed.
    """
    distinct = set(ids)
    ordered = sorted(distinct, key=lambda one: (stable_int("choose", seed, one), one))
    return (ordered if most is None else ordered[:most]), len(distinct)
