"""Samples of numbers as tables and figures: quantiles and densities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.contracts.report import Axis, Figure, Line, Sheet

if TYPE_CHECKING:
    import numpy as np

    from harness.contracts.report import Cell

BINS = 30
QUANTILES = {"least": 0.0, "5%": 0.05, "25%": 0.25, "median": 0.5, "75%": 0.75, "95%": 0.95,
             "most": 1.0}  # fmt: skip


def _spread(values: np.ndarray) -> tuple[Cell, ...]:
    import numpy as np

    if not len(values):
        return (0, *[None] * (1 + len(QUANTILES)))
    found = np.quantile(values, list(QUANTILES.values()))
    return (len(values), float(values.mean()), *(float(one) for one in found))


def spread_sheet(title: str, counted: str, samples: Mapping[str, np.ndarray]) -> Sheet:
    """A row for each sample: the number of its values, their mean and their quantiles."""
    return Sheet(
        title=title,
        columns=("", counted, "mean", *QUANTILES),
        rows=tuple((label, *_spread(values)) for label, values in samples.items()),
    )


def densities(title: str, axis: str, samples: Mapping[str, np.ndarray]) -> Figure:
    """A line for each sample: its share in each bin, with the same bins for all."""
    import numpy as np

    filled = {label: values for label, values in samples.items() if len(values)}
    together = np.concatenate(list(filled.values()))
    edges = np.histogram_bin_edges(together, bins=BINS)
    middles = tuple(float(one) for one in (edges[:-1] + edges[1:]) / 2)
    lines = tuple(
        Line(
            label=label,
            x=middles,
            y=tuple((100 * np.histogram(values, edges)[0] / len(values)).tolist()),
        )
        for label, values in filled.items()
    )
    return Figure(
        title=title, x=Axis(label=axis), y=Axis(label="share in a bin, %", low=0.0), marks=lines
    )
