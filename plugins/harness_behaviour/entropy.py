"""Entropy and cross-entropy of many prompts at once, with natural logarithms.

Arrays have a row for each prompt: `targets` hold its true probabilities by candidate, `rankings`
one or more rankings of it as places among its candidates, the likeliest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from harness.base.hashing import stable_ints

Floats: TypeAlias = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.int64]

EPSILON, EPSILON_1E3 = 1e-6, 1e-3
"""What a candidate gets that the group has and the estimate rules out."""

STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""The constants of the generator SplitMix64."""


class Crossed(NamedTuple):
    """Parts of the cross-entropies of rankings: an array each, by prompt and ranking.

    `finite` is what the candidates that the estimate allows add, `displaced` the true mass of those
    that it rules out, and `zeroed` their number. `mass` is the true mass of all candidates, 1.
    """

    finite: Floats
    displaced: Floats
    zeroed: npt.NDArray[np.int64]
    mass: Floats

    def at(self, epsilon: float) -> Floats:
        """The cross-entropies if what the estimate rules out gets `epsilon`, and all is renormed.

        Where it rules out nothing, no epsilon changes anything.
        """
        lifted = np.log1p(epsilon * self.zeroed) * self.mass
        return self.finite - np.log(epsilon) * self.displaced + lifted


def entropies(targets: Floats) -> Floats:
    """The entropy of each prompt's true distribution."""
    best: Places = np.argsort(-targets, axis=1, kind="stable")[:, None, :1]
    return crossed(targets, best).finite[:, 0]


def crossed(targets: Floats, rankings: Places) -> Crossed:
    """How the distributions that rankings stand for cross the true ones.

    The largest probabilities go to the ranked candidates in their order, the others to the
    candidates that are not ranked, in the order of their own probabilities.
    """
    many, width = targets.shape
    runs, ranked = rankings.shape[1:]
    order = np.argsort(-targets, axis=1, kind="stable")
    falling = np.take_along_axis(targets, order, axis=1)
    positive = (falling > 0).sum(axis=1)
    some = int(positive.max(initial=0))
    row = np.arange(many)[:, None, None]
    of_ranked = np.argsort(order, axis=1)[row, rankings]
    given = np.zeros((many, runs, width), dtype=np.uint8)
    np.put_along_axis(given, of_ranked, 1, axis=2)
    before = np.cumsum(given[:, :, :some], axis=2, dtype=np.uint8)
    given[:, :, :some] = np.arange(ranked, ranked + some, dtype=np.uint8) - before
    np.put_along_axis(given, of_ranked, np.arange(ranked, dtype=np.uint8)[None, None, :], axis=2)
    # The candidates that nobody has add nothing, and come last.
    taken, own = given[:, :, :some], falling[:, None, :some]
    logs = np.log(falling, where=falling > 0, out=np.zeros_like(falling))
    ruled_out = (taken >= positive[:, None, None]) & (own > 0)
    return Crossed(
        finite=-(own * logs.ravel()[taken + row * width]).sum(axis=2),
        displaced=(own * ruled_out).sum(axis=2),
        zeroed=ruled_out.sum(axis=2),
        mass=np.broadcast_to(falling.sum(axis=1)[:, None], (many, runs)),
    )


def gains(targets: Floats, rankings: Places) -> Floats:
    """The discounted gain of rankings as a share of that of the best ranking: NDCG.

    A candidate's gain is its probability.
    """
    ranked = rankings.shape[2]
    discount = 1 / np.log2(np.arange(ranked) + 2)
    found: Floats = targets[np.arange(len(targets))[:, None, None], rankings] @ discount
    best: Floats = -np.sort(-targets, axis=1)[:, :ranked] @ discount
    return found / best[:, None]


def seen(targets: Floats, rankings: Places) -> Floats:
    """The share of the ranked candidates that somebody in the group has."""
    own = targets[np.arange(len(targets))[:, None, None], rankings]
    share: Floats = (own > 0).mean(axis=2)
    return share


def most_frequent(counts: npt.NDArray[Any], ranked: int) -> Places:
    """A ranking of each row by its counts; of equal ones the candidate shown first."""
    return np.argsort(-counts, axis=1, kind="stable")[:, None, :ranked]


def drawn(ids: Sequence[str], fills: int, *, candidates: int, ranked: int) -> Places:
    """Random rankings of each prompt, decided by its id alone: the same on every machine.

    The generator is SplitMix64, seeded with a hash of the id; the ranking is the start of a shuffle
    by Fisher and Yates.
    """
    many = len(ids)
    seeds = stable_ints(ids, "fills")
    places = np.arange(1, fills * ranked + 1, dtype=np.uint64) * np.uint64(STEP)
    mixed = seeds[:, None] + places[None, :]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(FIRST)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(SECOND)
    chance = (mixed >> np.uint64(32)).reshape(many * fills, ranked).T.copy()
    left = np.tile(np.arange(candidates, dtype=np.uint8)[:, None], many * fills)
    column = np.arange(many * fills)
    for place in range(ranked):
        share = (chance[place] * np.uint64(candidates - place)) >> np.uint64(32)
        other = place + share.astype(np.int64)
        taken = left[other, column]
        left[other, column] = left[place]
        left[place] = taken
    return left[:ranked].T.reshape(many, fills, ranked).astype(np.int64)


def filled(named: Sequence[int], fills: Places) -> Places:
    """A ranking with its empty places filled: one for each of the random rankings `fills`."""
    ranked = fills.shape[1]
    have = np.array(named, dtype=np.int64)
    kept = np.tile(have, (len(fills), 1))
    if len(have) == ranked:
        return kept[:1]
    is_named = np.isin(fills, have)
    others = np.take_along_axis(fills, np.argsort(is_named, axis=1, kind="stable"), axis=1)
    return np.concatenate((kept, others[:, : ranked - len(have)]), axis=1)
