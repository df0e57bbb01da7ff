"""Agreement of raters who labelled the same things. Imports numpy: import it where it is used."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from harness.scoring.stats.bootstrap import (
    Floats,
    Integers,
    Interval,
    Method,
    NoInterval,
    Undefined,
    in_blocks,
    interval_by_users,
)

Weights: TypeAlias = Literal["none", "linear", "quadratic"]
ONE_LABEL = "both gave one label alone, and the same"


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The agreement of labels with a reference: `same` of `n` are equal, Cohen's κ, F1 of True."""

    n: int
    same: int
    kappa: float | Undefined
    f1: float | Undefined

    @property
    def share(self) -> float | None:
        """The share of equal labels; None without labels."""
        return self.same / self.n if self.n else None


def agreement_of(labels: Sequence[Hashable], reference: Sequence[Hashable]) -> Agreement:
    """The agreement of labels with a reference; κ and F1 may be undefined for a single label."""
    both = list(zip(labels, reference, strict=True))
    named = sum(label is True for pair in both for label in pair)
    return Agreement(
        n=len(both),
        same=sum(one == other for one, other in both),
        kappa=cohen_kappa(labels, reference),
        f1=2 * sum(one is True and other is True for one, other in both) / named
        if named
        else Undefined("neither said yes to anything"),
    )


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    weights: Weights = "none",
    order: Sequence[Hashable] | None = None,
) -> float | Undefined:
    """Cohen's κ of two raters of the same things: their agreement beyond chance.

    With weights, a disagreement counts by the distance of the labels in `order`, or by its square;
    without weights, all disagreements count alike and the order does not matter.
    """
    if not len(first):
        return Undefined("nothing was labelled by both")
    if weights != "none" and order is None:
        raise ValueError("weights need the order of the labels")
    labels = list(dict.fromkeys((*first, *second))) if order is None else list(order)
    place = {label: number for number, label in enumerate(labels)}
    table = np.zeros((1, len(labels), len(labels)))
    for one, other in zip(first, second, strict=True):
        table[0, place[one], place[other]] += 1.0
    apart = np.abs(np.subtract.outer(np.arange(len(labels)), np.arange(len(labels))))
    cost = {"none": apart > 0, "linear": apart, "quadratic": apart**2}[weights]
    kappa = float(_kappas(table, cost)[0])
    return kappa if math.isfinite(kappa) else Undefined(ONE_LABEL)


def kappa_interval(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    users: Sequence[Hashable],
    *,
    seed: int,
    draws: int = 2000,
    confidence: float = 0.95,
    method: Method = "percentile",
) -> Interval | NoInterval:
    """The bootstrap interval of Cohen's κ without weights; users are drawn with all their pairs.

    It equals that of `relation_interval`, but is computed faster, from a table per user.
    """
    numbers = {user: number for number, user in enumerate(dict.fromkeys(users))}
    place = {label: number for number, label in enumerate(dict.fromkeys((*first, *second)))}
    tables = np.zeros((len(numbers), len(place), len(place)))
    for one, other, user in zip(first, second, users, strict=True):
        tables[numbers[user], place[one], place[other]] += 1.0
    cost = 1.0 - np.eye(len(place))
    flat = tables.reshape(len(numbers), len(place) ** 2)

    whole = tables.sum(axis=0)

    def of_block(block: Integers) -> Floats:
        times = np.stack([np.bincount(some, minlength=len(numbers)) for some in block])
        return _kappas((times @ flat).reshape(-1, *cost.shape), cost)

    return interval_by_users(
        len(numbers), in_blocks(of_block, len(numbers), draws, np.int64),
        lambda: (float(_kappas(whole[None], cost)[0]), _kappas(whole - tables, cost)),
        seed=seed, draws=draws, confidence=confidence, method=method, of="κ",
    )  # fmt: skip


def _kappas(tables: Floats, cost: Any) -> Floats:
    """Cohen's κ of each table of counts, NaN if no disagreement is possible by chance."""
    rows, columns = tables.sum(axis=2), tables.sum(axis=1)
    by_chance = np.einsum("ti,tj,ij->t", rows, columns, cost) / tables.sum(axis=(1, 2))
    found = np.einsum("tij,ij->t", tables, cost)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappas: Floats = np.where(by_chance > 0.0, 1.0 - found / by_chance, np.nan)
    return kappas


def fleiss_kappa(counts: Sequence[Sequence[int]]) -> float | Undefined:
    """Fleiss' κ of several raters, from how many of them put each thing into each class.

    All things must have the same number of raters.
    """
    if not counts:
        return Undefined("nothing was labelled by all")
    table = np.asarray(counts, dtype=np.float64)
    raters = table[0].sum()
    if (table.sum(axis=1) != raters).any():
        raise ValueError("the things have different numbers of raters")
    if raters < 2:
        return Undefined("fewer than two labelled")
    shares = table.sum(axis=0) / table.sum()
    by_chance = float((shares**2).sum())
    if np.count_nonzero(shares) == 1:
        return Undefined("all gave one label alone, and the same")
    agreeing = ((table * (table - 1.0)).sum(axis=1) / (raters * (raters - 1.0))).mean()
    return (float(agreeing) - by_chance) / (1.0 - by_chance)
