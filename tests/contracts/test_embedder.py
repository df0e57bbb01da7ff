"""Vectors of an embedder are checked, and the error names who made which of them."""

import numpy as np
import pytest

from harness.base.errors import ModelError
from harness.contracts.embedder import Embedder, checked_rows, vectors_in, vectors_text
from harness.contracts.identity import Identity

TEXTS = ["tea", "milk"]
GOOD = [[0.6, 0.8], [1.0, 0.0]]


class Given(Embedder):
    identity = Identity(kind="given", name="rows")
    dimensions = 2

    async def embed(self, texts):
        raise NotImplementedError


def test_a_row_of_length_1_for_each_text_is_returned_in_float32():
    rows = checked_rows(np.array(GOOD, dtype=np.float64), TEXTS, Given())
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, GOOD, rtol=1e-6)
    assert checked_rows(np.empty((0, 2), np.float32), [], Given()).shape == (0, 2)
    halved = np.array(GOOD, dtype=np.float16)
    assert checked_rows(halved, TEXTS, Given()).shape == (2, 2)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (GOOD[:1], "1 x 2"),
        ([*GOOD, GOOD[0]], "3 x 2"),
        ([1.0, 1.0], "2"),
        ([GOOD[0], [np.nan, 1.0]], "a number that is not finite for 'milk'"),
        ([GOOD[0], [0.0, 0.0]], "length 0 for 'milk'"),
        ([GOOD[0], [3.0, 4.0]], "length 5 for 'milk'"),
    ],
)
def test_rows_that_cannot_be_used_are_refused(rows, found):
    with pytest.raises(ModelError, match="vectors that cannot be used") as caught:
        checked_rows(np.array(rows), TEXTS, Given())
    assert (caught.value.where, caught.value.found) == ("given:rows", found)
    assert caught.value.expected


def test_a_reply_holds_vectors_without_a_loss():
    rows = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    np.testing.assert_array_equal(vectors_in(vectors_text(rows)), rows)
