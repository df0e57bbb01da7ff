"""`harness horizon index`: what is embedded, resumed, refused, and the same twice."""

import asyncio

import faiss
import numpy as np
import pytest
from builders.catalogue import SMALL, Scripted, indexed, titles_of, write_curated
from harness_horizon.catalogue import faiss_index
from harness_horizon.catalogue.faiss_index import FaissIndex, build, checked_faiss, recall
from harness_horizon.catalogue.index_folder import INDEX, TITLES, read_index, read_titles
from harness_horizon.catalogue.vectors import SmallIndex
from harness_horizon.curation.ledger import MANIFEST, read_manifest

from harness.base.errors import DataError, Interrupted, ModelError, StorageError


@pytest.fixture
def data(tmp_path):
    """Curated data of 300 titles, one of which is there twice."""
    titles = titles_of(300)
    return write_curated(tmp_path / "data", [*titles, titles[3]], titles[40:50])


def test_an_index_holds_each_title_once(data, tmp_path):
    report = indexed(data, tmp_path / "out")
    manifest = read_index(tmp_path / "out")
    assert manifest.totals["titles"] == {"titles": 300, "dimensions": 48}
    assert manifest.totals["recall"] == {"found": 3000, "of": 3000}
    assert manifest.options["hnsw"] == {"M": 64, "efConstruction": 256, "efSearch": 256}
    index = faiss.read_index(str(tmp_path / "out" / INDEX))
    assert (index.ntotal, index.hnsw.efSearch, index.hnsw.efConstruction) == (300, 256, 256)
    assert index.hnsw.nb_neighbors(0) == 128 and index.metric_type == faiss.METRIC_INNER_PRODUCT
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        INDEX, TITLES, MANIFEST, ".lock",
    }  # fmt: skip
    assert ("recall@10 against exact search", "1.0000") in report.sheets[0].rows


def test_an_interrupted_build_says_what_is_kept_and_goes_on(data, tmp_path, monkeypatch, embedding):
    monkeypatch.setattr("harness_horizon.catalogue.vectors.TOGETHER", 50)
    embedder = Scripted()
    embedding(embedder)
    embed, lives = Scripted.embed, iter(range(2))

    async def stopping(self, texts):
        if next(lives, None) is None:
            raise KeyboardInterrupt
        return await embed(self, texts)

    with monkeypatch.context() as patch:
        patch.setattr(Scripted, "embed", stopping)
        with pytest.raises(Interrupted, match="what is embedded is kept"):
            indexed(data, tmp_path / "out")
    [path] = (tmp_path / "out" / "vectors").iterdir()
    with path.open("ab") as file:
        file.write(b"half a row")
    embedder.asked.clear()
    indexed(data, tmp_path / "out")
    assert sum(map(len, embedder.asked)) == 200
    indexed(data, tmp_path / "whole")
    one, other = ((tmp_path / name / INDEX).read_bytes() for name in ("out", "whole"))
    assert one == other


def test_the_same_vectors_make_the_same_file_with_any_number_of_threads(tmp_path):
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((60, 32))
    rows = centres[rng.integers(0, 60, 3000)] + rng.standard_normal((3000, 32)) / 2
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if not hasattr(faiss, "hnsw_add_vertices_deterministic"):
        pytest.skip("this faiss builds other graphs with several threads")
    pieces = [rows[:2000].astype(np.float16), rows[2000:].astype(np.float16)]
    for threads in (1, 2):
        build(pieces, tmp_path / f"{threads}", threads, lambda _: None)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    found = recall(FaissIndex(tmp_path / "1"), pieces)
    assert found["found"] / found["of"] > 0.98 and found["of"] == 10_000


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_what_is_found_is_what_exact_search_finds(data, tmp_path, dtype):
    from harness.pipeline.embedders import named_embedder

    indexed(data, tmp_path / "out", dtype=dtype)
    index, titles = FaissIndex(tmp_path / "out" / INDEX), read_titles(tmp_path / "out")
    texts = titles.titles.to_pylist()
    rows = asyncio.run(named_embedder(SMALL).embed(texts))
    assert np.allclose(index.vectors(np.arange(300)), rows, atol=1e-3 if dtype == "fp16" else 0)
    queries = asyncio.run(named_embedder(SMALL).embed(["copper kettle", "blue dog 7"]))
    exact = SmallIndex(rows)
    near, far = (one.search(queries, 20) for one in (index, exact))
    cosine = queries @ rows.T
    for own, query, wanted in zip(near, cosine, far, strict=True):
        assert np.allclose(query[own], query[wanted], atol=1e-3)
    assert (index.search(queries, 400)[:, 300:] == -1).all()


def test_pieces_on_a_gpu_are_searched_as_one(data, tmp_path, monkeypatch):
    """Exact indexes of the CPU stand in for those of a GPU."""
    indexed(data, tmp_path / "out")
    queries = FaissIndex(tmp_path / "out" / INDEX).vectors(np.arange(0, 300, 7))
    config = type("Config", (), {})
    for name, stand_in in {
        "StandardGpuResources": object,
        "GpuIndexFlatConfig": config,
        "GpuIndexFlatIP": lambda _, dimensions, config: (
            faiss.IndexFlatIP(dimensions) if config.useFloat16 else None
        ),
    }.items():
        monkeypatch.setattr(faiss, name, stand_in, raising=False)
    monkeypatch.setattr(faiss_index, "GPU_PIECE", 64)
    found = FaissIndex(tmp_path / "out" / INDEX, gpu=True).search(queries, 10)
    every = FaissIndex(tmp_path / "out" / INDEX).vectors(np.arange(300))
    cosines = queries @ every.T
    wanted = np.sort(cosines, axis=1)[:, ::-1][:, :10]
    assert np.allclose(np.take_along_axis(cosines, found, 1), wanted, atol=1e-5)
    assert (found[:, 0] == np.arange(0, 300, 7)).all()


def test_recall_is_lower_where_less_is_found(tmp_path):
    rows = np.random.default_rng(2).standard_normal((500, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)

    class Poor(SmallIndex):
        def search(self, queries, k):
            found = super().search(queries, k)
            found[:, 6:] = 499
            return found

    assert recall(SmallIndex(rows), [rows[:200], rows[200:]]) == {"found": 5000, "of": 5000}
    poor = recall(Poor(rows), [rows])
    assert 0.45 < poor["found"] / poor["of"] < 0.6
    same = np.repeat(rows[:1], 40, axis=0)
    assert recall(SmallIndex(same), [same]) == {"found": 400, "of": 400}


def test_a_sample_is_indexed_with_all_true_items(data, tmp_path):
    indexed(data, tmp_path / "out", catalog_sample=20)
    titles = read_titles(tmp_path / "out")
    assert len(titles) == 20
    assert {titles.position(one) is None for one in titles_of(300)[40:50]} == {False}
    assert read_manifest(tmp_path / "out").options["catalog_sample"] == 20


def test_vectors_that_cannot_be_used_are_refused(tmp_path, embedding):
    data = write_curated(tmp_path / "data", titles_of(16))
    embedding(Scripted(wrong="fewer"))
    with pytest.raises(ModelError) as caught:
        indexed(data, tmp_path / "out")
    assert "15 x 8" in str(caught.value) and "test:scripted" in str(caught.value)
    embedding(Scripted())
    indexed(data, tmp_path / "out")
    assert len(read_titles(tmp_path / "out")) == 16


def test_what_it_takes_is_said_before_and_a_full_disk_is_refused(
    data, tmp_path, monkeypatch, capsys
):
    indexed(data, tmp_path / "out")
    said = capsys.readouterr().err
    assert "memory to build or search it: 0.2 MB" in said and "disk: about 0.2 MB while" in said
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(StorageError, match="the disk has too little room"):
        indexed(data, tmp_path / "again")


def test_two_packages_of_faiss_are_an_error_and_none_names_the_extra(data, tmp_path, monkeypatch):
    def installed(*names):
        monkeypatch.setattr(faiss_index, "distributions", lambda name: [1] if name in names else [])

    for names, gpu in ((("faiss-cpu",), False), (("faiss-gpu-cu12",), True), ((), False)):
        installed(*names)
        assert checked_faiss() is gpu
    installed("faiss-gpu", "faiss-cpu")
    with pytest.raises(DataError) as caught:
        indexed(data, tmp_path / "out")
    assert "found:    faiss-cpu, faiss-gpu" in str(caught.value)
    assert "the extra [cpu] or [gpu]" in str(caught.value)
    installed()
    monkeypatch.setattr(faiss_index, "find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError) as missing:
        checked_faiss()
    assert missing.value.name == "faiss"


def test_equal_titles_are_found_in_their_order_whatever_is_asked_at_the_same_time():
    random = np.random.default_rng(3)
    thrice = np.tile(random.random((400, 384), np.float32), (3, 1))
    rows = thrice / np.linalg.norm(thrice, axis=1, keepdims=True)
    own = random.integers(0, 400, 64)
    noisy = rows[own] + 0.02 * random.random((64, 384), np.float32)
    queries = noisy / np.linalg.norm(noisy, axis=1, keepdims=True)
    index = SmallIndex(rows)
    together = index.search(queries, 50)
    assert (together[:, :3] == np.stack([own, own + 400, own + 800], axis=1)).all()
    alone = np.concatenate([index.search(query[None], 50) for query in queries])
    assert (alone == together).all()


def test_vectors_are_mapped_from_the_file_and_not_held(data, tmp_path):
    indexed(data, tmp_path / "out")
    index = FaissIndex(tmp_path / "out" / INDEX)
    assert not index._storage.codes.is_owned and not index._index.hnsw.neighbors.is_owned
