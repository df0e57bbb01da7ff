"""Synthetic against real people: engagements by type, shares, lengths, and how these are spread."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.analysis.distributions import thinned
from harness.contracts.report import Axis, Boxes, Figure, Sheet
from harness_gistbench.records import SIGNALS
from harness_gistbench.synthesis.distributions import densities

if TYPE_CHECKING:
    import numpy as np

    from harness.contracts.report import Cell


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Engagements by person and signal, a row a person and a column a signal.

    `real` are the people whose histories were pooled.
    """

    synthetic: np.ndarray
    real: np.ndarray

    @property
    def signals(self) -> tuple[int, ...]:
        """The columns in which anybody has an engagement, those of the most of the real first."""
        real, synthetic = self.real.sum(axis=0), self.synthetic.sum(axis=0)
        present = [code for code in range(len(SIGNALS)) if real[code] or synthetic[code]]
        return tuple(sorted(present, key=lambda code: (-real[code], code)))

    @property
    def lengths(self) -> dict[str, np.ndarray]:
        """The engagements of each person."""
        return {"synthetic": self.synthetic.sum(axis=1), "real": self.real.sum(axis=1)}


def tests(compared: Comparison) -> Sheet:
    """Welch's t-test, two-sided, of the engagements a person of each type."""
    return Sheet(
        title="Engagements a person, synthetic against real",
        columns=("type", "t", "p", "synthetic mean", "real mean", "ratio"),
        rows=tuple(_test(compared, code) for code in compared.signals),
        digits=2,
        notes=(
            "Welch's t-test, two-sided. Means differ by what the lengths were multiplied with: "
            "what should agree are the shares below",
            "real: the people of the cohorts, in the window",
        ),
    )


def shares(compared: Comparison) -> Sheet:
    """The share of each type, and its place among them."""
    synthetic, real = (one.sum(axis=0) for one in (compared.synthetic, compared.real))
    places = [_places(sums, compared.signals) for sums in (synthetic, real)]
    rows = tuple(
        (
            name(code),
            100 * float(synthetic[code] / max(1, synthetic.sum())),
            places[0][code],
            100 * float(real[code] / max(1, real.sum())),
            places[1][code],
        )
        for code in compared.signals
    )
    kept = places[0] == places[1]
    return Sheet(
        title="Shares of the types",
        columns=("type", "synthetic %", "place", "real %", "place "),
        rows=rows,
        digits=2,
        notes=(f"the order of the types is {'the same' if kept else 'NOT the same'} in both",),
    )


def figures(compared: Comparison) -> tuple[Figure, Figure]:
    """The lengths of histories as densities, and the engagements of each type as boxes."""
    both = {"synthetic": compared.synthetic, "real": compared.real}
    names = tuple(name(code) for code in compared.signals)
    boxes = tuple(
        Boxes(
            label=label,
            names=names,
            values=tuple(thinned(counts[:, code]) for code in compared.signals),
        )
        for label, counts in both.items()
    )
    return (
        densities("Lengths of histories", "engagements a person", compared.lengths),
        Figure(
            title="Engagements a person by type",
            x=Axis(label=""),
            y=Axis(label="engagements a person", low=0.0),
            marks=boxes,
        ),
    )


def name(code: int) -> str:
    """A signal in words."""
    return SIGNALS[code].replace("_", " ")


def _test(compared: Comparison, code: int) -> tuple[Cell, ...]:
    from scipy import stats

    synthetic, real = compared.synthetic[:, code], compared.real[:, code]
    means = float(synthetic.mean()), float(real.mean())
    t, p = math.nan, math.nan
    if min(len(synthetic), len(real)) > 1 and synthetic.var() + real.var() > 0:
        with warnings.catch_warnings():  # where one of the two is the same for everybody
            warnings.simplefilter("ignore", RuntimeWarning)
            result = stats.ttest_ind(synthetic, real, equal_var=False)
        t, p = float(result.statistic), float(result.pvalue)
    tested: tuple[Cell, Cell] = (None, None) if math.isnan(t) else (t, f"{p:.2e}")
    return (name(code), *tested, *means, means[0] / means[1] if means[1] else None)


def _places(sums: np.ndarray, signals: tuple[int, ...]) -> dict[int, int]:
    ordered = sorted(signals, key=lambda code: (-sums[code], code))
    return {code: place for place, code in enumerate(ordered, start=1)}
