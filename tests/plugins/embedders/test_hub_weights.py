"""Weights by their name at the hub: the commit in its cache is the identity, without a network."""

import shutil

import numpy as np
import pytest

from harness.pipeline.embedders import named_embedder

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TEXTS = ["blue shoes", "a kettle"]


@pytest.fixture
def cached(roberta, tmp_path, monkeypatch):
    """The tiny encoder as the hub's cache holds it, on a machine without a network."""
    repository = tmp_path / "hub" / "models--org--tiny"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    shutil.copytree(roberta, repository / "snapshots" / COMMIT)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return "sentence-transformers:org/tiny,device=cpu"


def test_a_name_is_pinned_by_its_commit_and_embeds_as_the_folder_does(cached, roberta, embedded):
    rows, embedder = embedded(cached, TEXTS)
    folder, _ = embedded(f"sentence-transformers:{roberta},device=cpu", TEXTS)
    np.testing.assert_allclose(rows, folder, atol=1e-6)
    assert embedder.identity.label == "sentence-transformers:org/tiny"
    assert embedder.identity.details["revision"] == COMMIT
    assert named_embedder(f"{cached},revision={COMMIT}").identity == embedder.identity
