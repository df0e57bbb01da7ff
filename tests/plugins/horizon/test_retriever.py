"""The kind of model `catalogue`: replies, one search for many requests, identity, errors."""

import asyncio
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from builders.catalogue import SMALL, Scripted, indexed, titles_of, write_curated
from harness_horizon.catalogue import retriever
from harness_horizon.catalogue.index_folder import INDEX, TITLES
from harness_horizon.catalogue.retriever import make
from harness_horizon.catalogue.titles import distinct_titles, items_digest
from harness_horizon.curation.ledger import MANIFEST
from harness_horizon.recommenders.training_data import SAMPLE

from harness.base.errors import DataError
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, ModelSettings
from harness.pipeline.embedders import named_embedder
from harness.pipeline.settings import parse_spec

from .conftest import answers_of

TITLES_OF = titles_of(200)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Curated data of 200 titles beside an index of them."""
    folder = tmp_path_factory.mktemp("made")
    indexed(write_curated(folder / "data", TITLES_OF), folder / "index")
    return folder


@pytest.fixture
def data(made):
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


def test_a_title_near_to_several_true_ones_is_listed_with_each():
    parts = [f"Tavina Paperback Saga 063, Part {number}" for number in (1, 2, 3, 4)]
    truths = [*parts[:3], "Kupfra Glow Railway 277, Part 1"]
    [reply] = asked([question([parts[3]], truths, k=20)])
    titles = distinct_titles(SAMPLE).to_pylist()
    beside = asyncio.run(named_embedder("hashing").embed([*parts, truths[3]]))
    fourth = next(place for place, one in enumerate(reply["found"]) if titles[one[0]] == parts[3])
    near = {(number, round(float(beside[3] @ beside[number]), 4)) for number in range(3)}
    nearest = reply["found"][fourth][2]
    assert {tuple(one[1:]) for one in reply["also"] if one[0] == fourth} == {
        (number, cosine) for number, cosine in near if number != nearest
    }
    assert min(cosine for *_, cosine in reply["also"]) >= 0.9
    assert all(reply["found"][place][2] != number for place, number, _ in reply["also"])


def test_no_answer_depends_on_what_is_asked_at_the_same_time(index):
    requests = [
        question([f"{one} lantern", TITLES_OF[one]], [TITLES_OF[-one]], k=k, merge=merge)
        for one in range(20)
        for k, merge in ((100, "round_robin"), (30, "published"), (7, "round_robin"))
    ]
    for args in ({"model": str(index)}, {}):
        if not args:
            some = distinct_titles(SAMPLE).to_pylist()
            requests = [question([some[one], "a toy"], [some[-one]]) for one in range(20)]
        together = asked(requests, **args)
        assert together[:4] == [asked([one], **args)[0] for one in requests[:4]]


def test_requests_at_the_same_time_are_one_embedding_and_one_search(index, monkeypatch):
    seen = []
    embedder = type(named_embedder(SMALL))
    embed = embedder.embed

    async def counted(self, texts):
        seen.append(len(texts))
        return await embed(self, texts)

    monkeypatch.setattr(embedder, "embed", counted)
    asked([question(["a b", f"c {one % 3}"], TITLES_OF[:1]) for one in range(50)], model=str(index))
    assert seen == [4]


def test_a_true_title_that_the_catalogue_lacks_is_an_error_that_names_it(index):
    with pytest.raises(CallError, match="lacks the true title 'no such thing'") as caught:
        asked([question(["a"], [TITLES_OF[0], "no such thing"])], model=str(index))
    assert caught.value.cause == "bad_request"


@pytest.mark.parametrize(
    "text",
    ["what?", '{"queries": [], "truths": ["a"], "k": 10, "merge": "published"}',
     '{"queries": ["a"], "truths": ["a"], "k": 0, "merge": "published"}',
     '{"queries": ["a"], "truths": [], "k": 10, "merge": "round_robin"}'],
)  # fmt: skip
def test_another_question_is_refused(text):
    with pytest.raises(CallError, match="no question to a catalogue"):
        asked([text])


def test_without_an_index_the_sample_is_served():
    model = make(ModelSettings(args={}))
    assert model.identity.details["items"] == items_digest(SAMPLE)
    assert (model.identity.kind, model.occupies) == ("catalogue", None)
    some = distinct_titles(SAMPLE).to_pylist()
    [reply] = asked([question([some[5], some[900]], [some[900]])])
    assert [one[0] for one in reply["found"][:2]] == [5, 900] and reply["truths"] == [900]
    assert len(reply["found"]) == 100


def test_the_identity_is_that_of_items_index_and_embedder(index, data, tmp_path):
    def identity(folder):
        return make(ModelSettings(args={"model": str(folder)})).identity

    first = identity(index)
    assert first.details["items"] == items_digest(data)
    assert first.details["embedder"] == {"kind": "hashing", "dimensions": 48}
    indexed(data, tmp_path / "again")
    assert identity(tmp_path / "again") == first
    indexed(data, tmp_path / "sample", catalog_sample=100)
    sample = identity(tmp_path / "sample")
    assert sample.details["items"] == first.details["items"]
    assert sample.details["index"] != first.details["index"]


def test_rows_of_a_sampled_index_are_those_of_the_whole_catalogue(data, tmp_path):
    indexed(data, tmp_path / "sample", catalog_sample=100)
    titles = distinct_titles(data).to_pylist()
    table = retriever.read_titles(tmp_path / "sample")
    kept = table.titles.to_pylist()
    [reply] = asked([question(kept[60:62], kept[60:61], k=2)], model=str(tmp_path / "sample"))
    assert [titles[row] for row, *_ in reply["found"]] == kept[60:62]
    assert [titles[row] for row in reply["truths"]] == kept[60:61] != titles[60:61]


def test_an_index_without_its_manifest_is_named(index, data, tmp_path):
    (index / MANIFEST).unlink()
    for folder, said in ((index, INDEX), (tmp_path / "nowhere", "no such folder"), (data, "items")):
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


def test_the_embedder_of_an_index_has_the_timeouts_and_the_store_of_the_run(index, embedding):
    named = embedding(named_embedder(SMALL))
    made = {"attempt_timeout": 7, "start_timeout": 90, "store": Path("calls.sqlite")}
    make(ModelSettings(args={"model": str(index)}, **made))
    [(_, given)] = named
    assert (given["patience"].attempt_timeout, given["patience"].start_timeout) == (7, 90)
    assert given["asker"]._file == Path("calls.sqlite")


def test_an_index_of_another_embedder_is_refused(index, embedding):
    with pytest.raises(DataError) as caught:
        asked([], model=str(index), embedder="hashing:dimensions=64")
    said = str(caught.value)
    assert "built by another embedder" in said and "'dimensions': 64" in said.replace('"', "'")
    asked([], model=str(index), embedder=SMALL)

    embedder = named_embedder(SMALL)
    named = embedding(embedder)
    asked([], **parse_spec(f"catalogue:model={index},embedder=kind:NAME;pooling=cls").args)
    assert [spec for spec, _ in named] == ["kind:NAME,pooling=cls"]
    embedder.dimensions = 50
    with pytest.raises(DataError, match="built by another embedder"):
        asked([], model=str(index))
    embedder.dimensions = 48
    embedder.identity = Identity(kind="hashing", name="words", details={"weights": "others"})
    with pytest.raises(DataError, match="built by another embedder"):
        asked([], model=str(index))


def test_vectors_that_cannot_be_used_fail_the_call(data, tmp_path, embedding):
    embedding(Scripted(), Scripted(wrong="nan"))
    indexed(data, tmp_path / "scripted")
    with pytest.raises(CallError, match="vectors that cannot be used") as caught:
        asked([question(["a", "b"], TITLES_OF[:1])], model=str(tmp_path / "scripted"))
    assert "not finite" in str(caught.value)


@pytest.mark.parametrize(
    ("device", "total", "gpu"),
    [("auto", 80_000_000_000, True), ("auto", 1_000_000_000, False), ("auto", None, False),
     ("cpu", 80_000_000_000, False), ("cuda", 1_000_000_000, True)],
)  # fmt: skip
def test_a_gpu_is_taken_where_faiss_can_use_it_and_it_has_room(
    index, monkeypatch, device, total, gpu
):
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
