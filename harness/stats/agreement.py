"""How far those agree who put the same things into classes. Imports numpy when used."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.stats.undefined import Undefined

Weights: TypeAlias = Literal["none", "linear", "quadratic"]


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Yes-or-no labels held against a reference: the share that agrees, Cohen's κ, F1 of "yes"."""

    n: int
    share: float
    kappa: float | Undefined
    f1: float | Undefined


def agreement_of(labels: Sequence[bool], reference: Sequence[bool]) -> Agreement | Undefined:
    """How far labels agree with a reference; κ and F1 may be undefined where one label rules."""
    if not labels:
        return Undefined("nothing was labelled by both")
    both = list(zip(labels, reference, strict=True))
    named = sum(labels) + sum(reference)
    return Agreement(
        n=len(both),
        share=sum(one == other for one, other in both) / len(both),
        kappa=cohen_kappa(labels, reference),
        f1=2 * sum(one and other for one, other in both) / named
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
    """Cohen's κ of two who labelled the same things: agreement beyond chance.

    With weights a disagreement counts by the distance of the labels, or by its square, in `order`;
    without weights all disagreements are alike and the order does not matter.
    """
    import numpy as np

    if not len(first):
        return Undefined("nothing was labelled by both")
    if weights != "none" and order is None:
        raise ValueError("weights need the order of the labels")
    labels = list(dict.fromkeys((*first, *second))) if order is None else list(order)
    place = {label: number for number, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)))
    for one, other in zip(first, second, strict=True):
        table[place[one], place[other]] += 1.0
    apart = np.abs(np.subtract.outer(np.arange(len(labels)), np.arange(len(labels))))
    cost = {"none": apart > 0, "linear": apart, "quadratic": apart**2}[weights]
    by_chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / len(first)
    expected = float((cost * by_chance).sum())
    if expected == 0.0:
        return Undefined("both gave one label alone, and the same")
    return 1.0 - float((cost * table).sum()) / expected


def fleiss_kappa(counts: Sequence[Sequence[int]]) -> float | Undefined:
    """Fleiss' κ of several: for each thing how many put it into each class, as many for all."""
    import numpy as np

    if not counts:
        return Undefined("nothing was labelled by all")
    table = np.asarray(counts, dtype=np.float64)
    raters = table[0].sum()
    if (table.sum(axis=1) != raters).any():
        raise ValueError("not everything was labelled by as many")
    if raters < 2:
        return Undefined("fewer than two labelled")
    shares = table.sum(axis=0) / table.sum()
    by_chance = float((shares**2).sum())
    if np.count_nonzero(shares) == 1:
        return Undefined("all gave one label alone, and the same")
    agreeing = ((table * (table - 1.0)).sum(axis=1) / (raters * (raters - 1.0))).mean()
    return (float(agreeing) - by_chance) / (1.0 - by_chance)
