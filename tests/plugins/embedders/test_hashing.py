"""Hashed words: like texts are near each other, and no text is without a vector."""

import numpy as np
import pytest

from harness.base.errors import UsageError
from harness.pipeline.embedders import named_embedder


def test_texts_that_share_words_are_nearer(embedded):
    rows, embedder = embedded("hashing", ["blue shoes", "Blue shoe", "kettle", "blue shoes"])
    assert (embedder.dimensions, embedder.occupies) == (384, None)
    cosines = rows @ rows.T
    assert cosines[0, 1] > 0.5 > cosines[0, 2]
    assert cosines[0, 3] == pytest.approx(1)


def test_any_text_has_a_vector_and_the_same_in_every_process(embedded):
    rows, _ = embedded("hashing:dimensions=7", ["", "!!!", "né", "\ud800"])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    (row,), _ = embedded("hashing:dimensions=4", ["tea"])
    assert [round(float(one), 3) for one in row] == [0, 0.816, 0.408, 0.408]


def test_the_dimensions_are_part_of_the_identity_and_arguments_are_checked():
    assert named_embedder("hashing").identity != named_embedder("hashing:dimensions=7").identity
    assert named_embedder("hashing").identity.label == "hashing:words"
    for given, said in (
        ("dimensions=x", "at least 1"),
        ("dimension=3", "did you mean 'dimensions'"),
    ):
        with pytest.raises(UsageError, match=said):
            named_embedder(f"hashing:{given}")
