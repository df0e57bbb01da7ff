"""Samples of numbers as figures show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

MOST_DRAWN = 1000
"""Values of one box: more would not be seen, and make files large."""


def thinned(values: np.ndarray) -> tuple[float, ...]:
    """The values in order; quantiles of them if they are too many to be drawn."""
    import numpy as np

    if len(values) > MOST_DRAWN:
        values = np.quantile(values, np.linspace(0, 1, MOST_DRAWN))
    return tuple(float(one) for one in np.sort(values))
