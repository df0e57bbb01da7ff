"""Objects and texts come back as they were kept, in the order in which they are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from harness_gistbench.histories import GAP, TextFile

PAIRS = [("1", "night trains"), ("a\n2", 'two "lines"\nof text'), ("3", ""), ("é", "Привет 🎉")]


@pytest.fixture
def kept():
    """A file with the pairs, a long text between the second and the third, and their places."""
    file = TextFile()
    long = ("long", "x" * (GAP + 1))
    pairs = [*PAIRS[:2], long, *PAIRS[2:]]
    sizes = file.add(*zip(*pairs, strict=True))
    starts = np.cumsum(sizes, dtype=np.int64) - sizes
    own = np.array([0, 1, 3, 4])
    return file, starts[own], sizes[own]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 0, 2, 1], [2], [1, 3, 1, 1], []])
def test_what_was_kept_comes_back_in_the_order_asked(kept, order):
    file, starts, sizes = kept
    chosen = np.array(order, dtype=np.int64)
    assert file.read(starts[chosen], sizes[chosen]) == [PAIRS[place] for place in order]
