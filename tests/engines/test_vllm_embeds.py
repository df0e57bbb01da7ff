"""The embedder `vllm` on the real engine: a row for each text, the same alone and together."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from harness.contracts.embedder import checked_rows
from harness.pipeline.embedders import named_embedder

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engine"), pytest.mark.timeout(1200)]

TEXTS = ["a red kite", "a blue kite", "an old map", "a red kite"]


@pytest.mark.usefixtures("engine_alone", "frugal")
def test_texts_are_embedded_by_a_served_model(checkpoints, engine_args):
    args = {"model": str(checkpoints.candidate), **engine_args}
    embedder = named_embedder("vllm:" + ",".join(f"{name}={one}" for name, one in args.items()))

    async def rows():
        await embedder.open()
        try:
            together = checked_rows(await embedder.embed(TEXTS), TEXTS, embedder)
            alone = checked_rows(await embedder.embed(TEXTS[1:2]), TEXTS[1:2], embedder)
            return together, alone
        finally:
            await embedder.close()

    together, alone = asyncio.run(rows())
    assert together.shape == (len(TEXTS), embedder.dimensions)
    np.testing.assert_allclose(together[3], together[0], atol=1e-5)
    np.testing.assert_allclose(alone[0], together[1], atol=1e-4)
    assert together[0] @ together[1] < 0.99, "other texts have other vectors"
