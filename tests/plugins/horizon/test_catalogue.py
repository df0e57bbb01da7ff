"""Titles, indexes and the kind of model `catalogue`: what is found, resumed and refused."""

import asyncio
import doctest
import json
import shutil
from functools import partial
from pathlib import Path

import faiss
import numpy as np
import pytest
from builders.catalogue import SMALL, Scripted, indexed, titles_of, write_curated
from harness_horizon.catalogue import faiss_index, merging, retriever, room, titles
from harness_horizon.catalogue.faiss_index import FaissIndex, build, checked_faiss, recall
from harness_horizon.catalogue.index_folder import INDEX, TITLES, read_index, read_titles
from harness_horizon.catalogue.merging import at, merged, round_robin
from harness_horizon.catalogue.retriever import make
from harness_horizon.catalogue.room import check_gpu, gpu_needs, room_of
from harness_horizon.catalogue.titles import Titles, distinct_titles, items_digest, sampled
from harness_horizon.catalogue.vectors import SmallIndex
from harness_horizon.curation.ledger import MANIFEST
from harness_horizon.recommenders.training_data import SAMPLE
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import DataError, Interrupted, ModelError, StorageError
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, ModelSettings
from harness.pipeline.embedders import named_embedder
from harness.pipeline.settings import parse_spec

from .conftest import answers_of

LONG = "x" * 9_990 + " " + "y" * 20


def test_the_examples_hold():
    for module in (merging, titles, room):
        found = doctest.testmod(module)
        assert found.failed == 0, module
        assert found.attempted > 0, module


def test_titles_are_cleaned_and_distinct_and_a_sample_keeps_all_true_ones(tmp_path):
    raw = ["B  thing", None, "None", "", "A", "B\r\nthing", LONG, "A ", " \n\t", "\u00a0A",
           "Cafe\u0301", "none", "Café"]  # fmt: skip
    found = distinct_titles(write_curated(tmp_path / "data", raw))
    assert found.to_pylist() == ["B thing", "A", LONG, "Café", "none"]
    index = Titles(titles.table_of(found, [0, 2]))
    assert [index.position(one) for one in ("B thing", LONG, "A", "", "zz")] == [0, 1] + [None] * 3
    assert index.rows.tolist() == [0, 2]
    every = [f"title {number}" for number in range(100)]
    data = write_curated(tmp_path / "many", every, true=["title 7", " title  50", "None"])
    found = distinct_titles(data)
    assert titles.true_titles(data) == {"title 7", "title 50"}
    rows = sampled(found, data, 10).tolist()
    assert len(rows) == 10 and {7, 50} <= set(rows) and rows == sorted(rows)
    assert set(rows) < set(sampled(found, data, 20).tolist())
    assert sampled(found, data, 1).tolist() == [7, 50]
    assert sampled(found, data, 1000).tolist() == list(range(100))
    first, second = (write_curated(tmp_path / one, [one]) for one in "ab")
    assert items_digest(first) != items_digest(second)
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="no complete build"):
        items_digest(tmp_path / "none")


def test_queries_take_turns_by_rank_and_published_ones_have_a_tenth_each():
    lists = [[1, 2, 3], [1, 4, 5], [6, 1, 2]]
    found = [lists[query][place] for query, place in round_robin(lists, 100)]
    assert found == [1, 6, 2, 4, 3, 5]
    assert round_robin(lists, 2) == [(0, 0), (2, 0)]
    assert round_robin([[7, 8, 9]], 2) == [(0, 0), (0, 1)]
    assert round_robin([[7, 8], [7, 8]], 9) == [(0, 0), (0, 1)]
    assert round_robin([[], [5], []], 9) == [(1, 0)]
    assert round_robin([[], []], 9) == []
    lists = [list(range(query, query + 100)) for query in range(10)]
    found = published(lists, 100)
    assert found == [(query, place) for query in range(10) for place in range(10)]
    for k in (10, 20, 50, 100):
        assert at(found, k, "published", 10) == published(lists, k)
        assert len(published(lists, k)) == k
    assert len(published(lists[:9], 100)) == 90
    assert at(published(lists[:9], 100), 20, "published", 9) == published(lists[:9], 20)
    assert at(published(lists + lists[:2], 100), 10, "published", 12) == published(lists, 10)
    assert published([[1, 2], [1, 2]], 100) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert at(published([[], []], 100), 50, "published", 2) == []


published = partial(merged, merge="published")
LISTS = st.lists(st.lists(st.integers(0, 30), unique=True, max_size=20), min_size=1, max_size=10)


@given(LISTS, st.integers(1, 60), st.integers(1, 60))
def test_the_merge_at_a_smaller_k_is_the_beginning(lists, one, other):
    small, large = sorted((one, other))
    found = round_robin(lists, large)
    assert round_robin(lists, small) == found[:small] == at(found, small, "round_robin", len(lists))
    kept = [lists[query][place] for query, place in found]
    assert len(set(kept)) == len(kept) == min(large, len({one for own in lists for one in own}))


def test_the_room_of_35_million_titles_is_worked_out_and_a_gpu_without_it_is_named():
    whole, half = (room_of(35_000_000, 768, number) for number in (4, 2))
    assert (round(whole.memory / 1e9), round(half.memory / 1e9)) == (126, 72)
    assert half.working - half.disk == 35_000_000 * 768 * 2
    assert round(gpu_needs(35_000_000, 768) / 1e9) == 57 and gpu_needs(1000, 768) < 2.1e9
    check_gpu(35_000_000, 768, 80_000_000_000)
    check_gpu(35_000_000, 768, None)
    said = r"48\.0 GB free(?s:.*)57\.4 GB: 35,000,000 x 768(?s:.*)device=cpu"
    with pytest.raises(DataError, match=said):
        check_gpu(35_000_000, 768, 48_000_000_000)


@pytest.fixture
def data(tmp_path):
    """Curated data of 300 titles, one of which is there twice."""
    some = titles_of(300)
    return write_curated(tmp_path / "data", [*some, some[3]], some[40:50])


def test_an_index_holds_each_title_once_and_its_needs_are_told(data, tmp_path, monkeypatch, capsys):
    report = indexed(data, tmp_path / "out")
    manifest = read_index(tmp_path / "out")
    assert manifest.totals["titles"] == {"titles": 300, "dimensions": 48}
    assert manifest.totals["recall"] == {"found": 3000, "of": 3000}
    assert manifest.options["hnsw"] == {"M": 64, "efConstruction": 256, "efSearch": 256}
    index = faiss.read_index(str(tmp_path / "out" / INDEX))
    assert (index.ntotal, index.hnsw.efSearch, index.hnsw.efConstruction) == (300, 256, 256)
    assert index.hnsw.nb_neighbors(0) == 128 and index.metric_type == faiss.METRIC_INNER_PRODUCT
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {INDEX, TITLES, MANIFEST, ".lock"}
    assert ("recall@10 against exact search", "1.0000") in report.sheets[0].rows
    said = capsys.readouterr().err
    assert "memory to build or search it: 0.2 MB" in said and "disk: about 0.2 MB while" in said
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(StorageError, match="the disk has too little room"):
        indexed(data, tmp_path / "again")


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


def test_recall_is_lower_where_less_is_found_and_threads_change_no_file(tmp_path):
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
    # The vectors are mapped from the file and not held.
    assert not index._storage.codes.is_owned and not index._index.hnsw.neighbors.is_owned


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


def test_vectors_that_cannot_be_used_are_refused_and_fail_a_call(tmp_path, embedding):
    data = write_curated(tmp_path / "data", titles_of(16))
    embedding(Scripted(wrong="fewer"))
    with pytest.raises(ModelError) as caught:
        indexed(data, tmp_path / "out")
    assert "15 x 8" in str(caught.value) and "test:scripted" in str(caught.value)
    embedding(Scripted(), Scripted(wrong="nan"))
    indexed(data, tmp_path / "out")
    assert len(read_titles(tmp_path / "out")) == 16
    with pytest.raises(CallError, match=r"vectors that cannot be used(?s:.*)not finite"):
        asked([question(["a", "b"], titles_of(1))], model=str(tmp_path / "out"))


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


TITLES_OF = titles_of(200)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Curated data of 200 titles beside an index of them."""
    folder = tmp_path_factory.mktemp("made")
    indexed(write_curated(folder / "data", TITLES_OF), folder / "index")
    return folder


@pytest.fixture
def curated(made):
    return made / "data"


@pytest.fixture
def index(made, tmp_path):
    """An index that a test may damage."""
    return Path(shutil.copytree(made / "index", tmp_path / "index"))


def question(queries, truths, k=100, merge="round_robin"):
    """A request to a catalogue."""
    return json.dumps({"queries": queries, "truths": truths, "k": k, "merge": merge})


def asked(questions, **args):
    return answers_of(make, questions, **args)


def vectors(texts):
    """The vectors of the index's embedder."""
    return asyncio.run(named_embedder(SMALL).embed(texts))


def test_a_reply_holds_rows_and_cosines(index):
    queries, truths = ["copper kettle 7", TITLES_OF[31]], [TITLES_OF[31], TITLES_OF[90]]
    [reply] = asked([question(queries, truths, k=20)], model=str(index))
    assert reply["truths"] == [31, 90]
    every, own, true = vectors(TITLES_OF), vectors(queries), vectors(truths)
    assert np.allclose(reply["cosines"], own @ true.T, atol=1e-3)
    rows, cosines, nearest, to_truth = map(np.array, zip(*reply["found"], strict=True))
    assert len(rows) == len(set(rows)) == 20
    assert reply["found"][1][:2] == [31, 1.0] and reply["found"][1][2:] == [0, 1.0]
    best = np.maximum(*(every[rows] @ own.T).T)
    assert (cosines <= best + 1e-3).all() and cosines[0] == round(float(best[0]), 4)
    beside = every[rows] @ true.T
    assert np.allclose(to_truth, beside.max(axis=1), atol=1e-3)
    assert np.allclose(beside[np.arange(20), nearest], to_truth, atol=1e-3)
    assert "also" not in reply


def test_no_answer_depends_on_others_of_the_same_embedding_and_search(index, monkeypatch):
    requests = [
        question([f"{one} lantern", TITLES_OF[one]], [TITLES_OF[-one]], k=k, merge=merge)
        for one in range(20)
        for k, merge in ((100, "round_robin"), (30, "published"), (7, "round_robin"))
    ]
    for args in ({"model": str(index)}, {}):
        if not args:
            some = distinct_titles(SAMPLE).to_pylist()
            requests = [question([some[one], "a toy"], [some[-one]]) for one in range(20)]
        assert asked(requests, **args)[:4] == [asked([one], **args)[0] for one in requests[:4]]
    seen = []
    embedder = type(named_embedder(SMALL))
    embed = embedder.embed

    async def counted(self, texts):
        seen.append(len(texts))
        return await embed(self, texts)

    monkeypatch.setattr(embedder, "embed", counted)
    asked([question(["a b", f"c {one % 3}"], TITLES_OF[:1]) for one in range(50)], model=str(index))
    assert seen == [4]


@pytest.mark.parametrize(
    "text",
    ["what?", '{"queries": [], "truths": ["a"], "k": 10, "merge": "published"}',
     '{"queries": ["a"], "truths": ["a"], "k": 0, "merge": "published"}',
     '{"queries": ["a"], "truths": [], "k": 10, "merge": "round_robin"}'],
)  # fmt: skip
def test_another_question_or_a_true_title_that_the_catalogue_lacks_is_refused(index, text):
    with pytest.raises(CallError, match="no question to a catalogue"):
        asked([text])
    with pytest.raises(CallError, match="lacks the true title 'no such thing'") as caught:
        asked([question(["a"], [TITLES_OF[0], "no such thing"])], model=str(index))
    assert caught.value.cause == "bad_request"


def test_without_an_index_the_sample_is_served_with_each_near_title():
    model = make(ModelSettings(args={}))
    assert model.identity.details["items"] == items_digest(SAMPLE)
    assert (model.identity.kind, model.occupies) == ("catalogue", None)
    some = distinct_titles(SAMPLE).to_pylist()
    [reply] = asked([question([some[5], some[900]], [some[900]])])
    assert [one[0] for one in reply["found"][:2]] == [5, 900] and reply["truths"] == [900]
    assert len(reply["found"]) == 100
    parts = [f"Tavina Paperback Saga 063, Part {number}" for number in (1, 2, 3, 4)]
    truths = [*parts[:3], "Kupfra Glow Railway 277, Part 1"]
    [reply] = asked([question([parts[3]], truths, k=20)])
    beside = asyncio.run(named_embedder("hashing").embed([*parts, truths[3]]))
    fourth = next(place for place, one in enumerate(reply["found"]) if some[one[0]] == parts[3])
    near = {(number, round(float(beside[3] @ beside[number]), 4)) for number in range(3)}
    nearest = reply["found"][fourth][2]
    assert {tuple(one[1:]) for one in reply["also"] if one[0] == fourth} == {
        (number, cosine) for number, cosine in near if number != nearest
    }
    assert min(cosine for *_, cosine in reply["also"]) >= 0.9
    assert all(reply["found"][place][2] != number for place, number, _ in reply["also"])


def test_identity_is_of_items_index_and_embedder_and_rows_of_the_whole(index, curated, tmp_path):
    def identity(folder):
        return make(ModelSettings(args={"model": str(folder)})).identity

    first = identity(index)
    assert first.details["items"] == items_digest(curated)
    assert first.details["embedder"] == {"kind": "hashing", "dimensions": 48}
    indexed(curated, tmp_path / "again")
    assert identity(tmp_path / "again") == first
    indexed(curated, tmp_path / "sample", catalog_sample=100)
    sample = identity(tmp_path / "sample")
    found = sample.details["items"], sample.details["catalog_sample"]
    assert found == (first.details["items"], 100)
    assert sample.details["index"] != first.details["index"]
    titles = distinct_titles(curated).to_pylist()
    kept = retriever.read_titles(tmp_path / "sample").titles.to_pylist()
    [reply] = asked([question(kept[60:62], kept[60:61], k=2)], model=str(tmp_path / "sample"))
    assert [titles[row] for row, *_ in reply["found"]] == kept[60:62]
    assert [titles[row] for row in reply["truths"]] == kept[60:61] != titles[60:61]


def test_an_index_without_its_manifest_is_named(index, curated, tmp_path):
    (index / MANIFEST).unlink()
    for folder, said in (
        (index, INDEX),
        (tmp_path / "nowhere", "no such folder"),
        (curated, "items"),
    ):
        with pytest.raises(DataError) as caught:
            asked([], model=str(folder))
        assert "no finished index of a catalogue" in str(caught.value)
        assert said in str(caught.value) and "harness horizon index --data" in str(caught.value)


@pytest.mark.parametrize("name", [INDEX, TITLES])
@pytest.mark.parametrize("end", [b"", bytes(100)])
def test_an_index_that_was_cut_or_changed_is_refused(index, name, end):
    model = make(ModelSettings(args={"model": str(index)}))
    whole = (index / name).read_bytes()[:-100] + end
    (index / name).write_bytes(whole)
    with pytest.raises(DataError, match="a finished file is gone or was changed") as caught:
        make(ModelSettings(args={"model": str(index)}))
    assert f"{len(whole):,} bytes" in str(caught.value)
    # So it is where the index changes while the candidate is asked.
    with pytest.raises(DataError, match="a finished file is gone or was changed"):
        asyncio.run(model.open())


def test_the_embedder_of_an_index_is_its_builds_with_the_runs_settings(index, embedding):
    with pytest.raises(DataError) as caught:
        asked([], model=str(index), embedder="hashing:dimensions=64")
    said = str(caught.value)
    assert "built by another embedder" in said and "'dimensions': 64" in said.replace('"', "'")
    asked([], model=str(index), embedder=SMALL)
    embedder = named_embedder(SMALL)
    named = embedding(embedder)
    asked([], **parse_spec(f"catalogue:model={index},embedder=kind:NAME;pooling=cls").args)
    assert [spec for spec, _ in named] == ["kind:NAME,pooling=cls"]
    own = {"attempt_timeout": 7, "start_timeout": 90}
    make(ModelSettings(args={"model": str(index)}, **own, store=Path("calls.sqlite")))
    _, given = named[-1]
    assert {name: getattr(given["patience"], name) for name in own} == own
    assert given["asker"]._file == Path("calls.sqlite")
    others = Identity(kind="hashing", name="words", details={"weights": "others"})
    for name, other in {"dimensions": 50, "identity": others}.items():
        before = getattr(embedder, name)
        setattr(embedder, name, other)
        with pytest.raises(DataError, match="built by another embedder"):
            asked([], model=str(index))
        setattr(embedder, name, before)


@pytest.mark.parametrize(
    ("device", "total", "gpu"),
    [("auto", 80_000_000_000, True), ("auto", 1_000_000_000, False), ("auto", None, False),
     ("cpu", 80_000_000_000, False), ("cuda", 1_000_000_000, True)],
)  # fmt: skip
def test_a_gpu_is_taken_where_faiss_can_and_it_has_room(index, monkeypatch, device, total, gpu):
    monkeypatch.setattr(retriever, "checked_faiss", lambda: True)
    monkeypatch.setattr(retriever, "gpu_memory", lambda _: total)
    monkeypatch.setattr(Path, "exists", lambda self: True)
    model = make(ModelSettings(args={"model": str(index), "device": device}))
    assert model.occupies == ("gpu" if gpu else None)
    assert model.identity.details["search"] == ("exact" if gpu else "hnsw")
    embedder = named_embedder(SMALL)
    embedder.occupies = "gpu"
    monkeypatch.setattr("harness.pipeline.embedders.named_embedder", lambda *_, **__: embedder)
    assert make(ModelSettings(args={"model": str(index), "device": "cpu"})).occupies == "gpu"


def test_a_full_gpu_ends_the_opening_and_leaves_nothing_open(index, monkeypatch):
    closed = []
    embedder = type(named_embedder(SMALL))

    async def close(self):
        closed.append(True)

    monkeypatch.setattr(embedder, "close", close)
    monkeypatch.setattr(retriever, "checked_faiss", lambda: True)
    monkeypatch.setattr("harness_horizon.catalogue.faiss_index.gpu_memory", lambda _: 5_000_000)
    with pytest.raises(DataError, match="the GPU has too little room"):
        asked([], model=str(index), device="cuda")
    assert closed == [True]
