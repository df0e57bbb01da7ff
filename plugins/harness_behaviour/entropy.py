"""Entropy and cross-entropy of many prompts at once, with natural logarithms.

Arrays have a row for each prompt. `rankings` hold one or more rankings of each, all of one length,
as places among its candidates, the likeliest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from harness.base.hashing import stable_int

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
    zeroed: Floats
    mass: Floats

    def at(self, epsilon: float) -> Floats:
        """The cross-entropies if what the estimate rules out gets `epsilon`, and all is renormed.

        Where it rules out nothing, no epsilon changes anything.
        """
        lifted = np.log1p(epsilon * self.zeroed) * self.mass
        return self.finite - np.log(epsilon) * self.displaced + lifted


class Targets:
    """The true probabilities of prompts, a row for each, and the same in falling order.

    They are the shares of counts. `order` are the candidates in that order, and `places` the place
    of each candidate in it.
    """

    def __init__(self, counts: Iterable[Sequence[float]]) -> None:
        rows = np.array(list(counts), dtype=np.float64)
        self.rows: Floats = rows / rows.sum(axis=1, keepdims=True)
        self.order: Places = np.argsort(-self.rows, axis=1, kind="stable")
        self.places: Places = np.argsort(self.order, axis=1)
        self.falling: Floats = np.take_along_axis(self.rows, self.order, axis=1)
        self.logs = np.log(self.falling, where=self.falling > 0, out=np.zeros_like(self.falling))
        self.above_zero: Places = (self.falling > 0).sum(axis=1)

    def part(self, places: Sequence[int]) -> Targets:
        made = Targets.__new__(Targets)
        for name, values in vars(self).items():
            setattr(made, name, values[places])
        return made

    def best(self, ranked: int) -> Places:
        """The ranking of the largest probabilities, one a prompt."""
        return self.order[:, None, :ranked]

    def entropies(self) -> Floats:
        return crossed(self, self.best(1)).finite[:, 0]


def crossed(targets: Targets, rankings: Places) -> Crossed:
    """How the distributions that rankings stand for cross the true ones.

    The largest probabilities go to the ranked candidates in their order, the others to the
    candidates that are not ranked, in the order of their own probabilities.
    """
    many, width = targets.rows.shape
    runs, ranked = rankings.shape[1:]
    row = np.arange(many)[:, None]
    of_ranked = targets.places[row[:, :, None], rankings].transpose(2, 0, 1)
    ranks = np.full((width, many, runs), ranked, dtype=np.uint8)
    np.put_along_axis(ranks, of_ranked, np.arange(ranked, dtype=np.uint8)[:, None, None], axis=0)
    so_far = np.zeros((many, runs), dtype=np.uint8)
    finite, displaced, zeroed = np.zeros((3, many, runs))
    above_zero = targets.above_zero[:, None]
    # One candidate after the other, by falling probability: the last ones have none, and add none.
    for place in range(int(above_zero.max())):
        own, rank = targets.falling[:, place, None], ranks[place]
        is_ranked = rank < ranked
        so_far += is_ranked
        given = np.where(is_ranked, rank, ranked + place - so_far)
        ruled_out = (given >= above_zero) & (own > 0)
        finite -= own * targets.logs[row, given]
        displaced += own * ruled_out
        zeroed += ruled_out
    return Crossed(finite, displaced, zeroed, mass=targets.rows.sum(axis=1)[:, None])


def gains(targets: Targets, rankings: Places) -> Floats:
    """The discounted gain of rankings as a share of that of the best ranking: NDCG.

    A candidate's gain is its probability.
    """
    discount = 1 / np.log2(np.arange(rankings.shape[2]) + 2)
    best = (targets.falling[:, : len(discount)] * discount).sum(axis=1)
    found: Floats = (_own(targets, rankings) * discount).sum(axis=2)
    return found / best[:, None]


def seen(targets: Targets, rankings: Places) -> Floats:
    """The share of the ranked candidates that somebody in the group has."""
    share: Floats = (_own(targets, rankings) > 0).mean(axis=2)
    return share


def _own(targets: Targets, rankings: Places) -> Floats:
    """The true probabilities of the ranked candidates."""
    found: Floats = targets.rows[np.arange(len(rankings))[:, None, None], rankings]
    return found


def most_frequent(counts: Places, ranked: int) -> Places:
    """A ranking of each prompt by counts; of equal ones the candidate shown first."""
    return np.argsort(-counts, axis=1, kind="stable")[:, None, :ranked]


def drawn(ids: Sequence[str], fills: int, *, candidates: int, ranked: int) -> Places:
    """Random rankings of each prompt, decided by its id alone: the same on every machine.

    The generator is SplitMix64, seeded with a hash of the id; the ranking is the start of a shuffle
    by Fisher and Yates.
    """
    many = len(ids)
    seeds = np.array([stable_int("fills", one) for one in ids], dtype=np.uint64)
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


def filled(named: Sequence[Sequence[int]], fills: Places) -> Places:
    """The rankings of prompts with their empty places filled, by each of the rankings `fills`.

    What a filling ranking names first comes first, without what is named already.
    """
    ranked = fills.shape[2]
    padded = np.array([[*one, *(-1,) * (ranked - len(one))] for one in named])[:, None, :]
    lengths = np.array([len(one) for one in named])[:, None, None]
    again = (fills[..., None] == padded[..., None, :]).any(axis=3)
    others = np.take_along_axis(fills, np.argsort(again, axis=2, kind="stable"), axis=2)
    place = np.broadcast_to(np.arange(ranked), fills.shape)
    filling = np.take_along_axis(others, np.maximum(place - lengths, 0), axis=2)
    return np.where(place < lengths, padded, filling)
