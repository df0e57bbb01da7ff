"""Which ids a run keeps: the same ones in every process, whatever order they came in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.base.hashing import stable_int, stable_ints

if TYPE_CHECKING:
    import numpy as np


def choose(ids: Iterable[str], *, seed: int, most: int | None) -> tuple[list[str], int]:
    """The ids with the smallest hashes, at most `most`, in hash order; and how many there were.

    Repeated ids count once. The choice of 10 is a part of the choice of 20 for the same seed.
    """
    distinct = set(ids)
    ordered = sorted(distinct, key=lambda one: (stable_int("choose", seed, one), one))
    return (ordered if most is None else ordered[:most]), len(distinct)


def ranks(ids: Iterable[str], *, seed: int) -> np.ndarray:
    """The hash by which `choose` orders each id, smallest first, for a great many of them."""
    return stable_ints(ids, "choose", seed)
