"""A tiny encoder shaped like BLaIR: RoBERTa with a byte-level tokenizer and random weights."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from harness.contracts.embedder import checked_rows
from harness.pipeline.embedders import named_embedder

CORPUS = ["Trail running shoes, blue, size 42 <SEP> A kettle of steel", "wireless phone charger"]


@pytest.fixture(scope="session")
def roberta(tmp_path_factory) -> Path:
    """The folder of the weights, with positions for 512 tokens, as in the published ones."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    folder = tmp_path_factory.mktemp("tiny-roberta")
    bpe = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    bpe.train_from_iterator(CORPUS, vocab_size=300, special_tokens=special, show_progress=False)
    bpe.save_model(str(folder))
    tokenizer = RobertaTokenizerFast(
        vocab=str(folder / "vocab.json"), merges=str(folder / "merges.txt"), model_max_length=512
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = RobertaConfig(
        vocab_size=300, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=514, pad_token_id=1,
    )  # fmt: skip
    RobertaModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


@pytest.fixture
def embedded():
    """The checked rows of texts and their embedder, by its SPEC."""

    async def rows_of(spec, texts, **given):
        embedder = named_embedder(spec, **given)
        await embedder.open()
        try:
            return checked_rows(await embedder.embed(texts), texts, embedder), embedder
        finally:
            await embedder.close()

    def run(spec, texts, **given) -> tuple[np.ndarray, object]:
        return asyncio.run(rows_of(spec, texts, **given))

    return run
