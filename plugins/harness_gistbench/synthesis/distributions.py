"""How numbers are spread: quantiles for tables, densities and boxes for figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.results.report import Axis, Figure, Line

if TYPE_CHECKING:
    import numpy as np

    from harness.results.report import Cell

BINS = 30
MOST_DRAWN = 1000
"""Values of one box: more would not be seen, and make files large."""

QUANTILES = {"least": 0.0, "5%": 0.05, "25%": 0.25, "median": 0.5, "75%": 0.75, "95%": 0.95,
             "most": 1.0}  # fmt: skip


def spread(values: np.ndarray) -> tuple[Cell, ...]:
    """Number, mean and quantiles of some values; `—` for all but the number where none is."""
    import numpy as np

    if not len(values):
        return (0, *[None] * (1 + len(QUANTILES)))
    found = np.quantile(values, list(QUANTILES.values()))
    return (len(values), float(values.mean()), *(float(one) for one in found))


def thinned(values: np.ndarray) -> tuple[float, ...]:
    """The values in their order, evenly picked where they are too many to be drawn."""
    import numpy as np

    if len(values) > MOST_DRAWN:
        values = np.quantile(values, np.linspace(0, 1, MOST_DRAWN))
    return tuple(float(one) for one in np.sort(values))


def densities(title: str, axis: str, samples: Mapping[str, np.ndarray]) -> Figure:
    """A line a sample: which share of it lies where, by bins of one width for all."""
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
