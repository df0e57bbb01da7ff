"""The kind of model `recommender`: training data, replies, batches, identity, errors."""

import json
import shutil
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from builders.disks import room_for
from harness_horizon.next_item.cases import ItemData, Options, Person
from harness_horizon.recommenders import rankers, training_data
from harness_horizon.recommenders.checkpoint import MANIFEST, WEIGHTS, read_manifest
from harness_horizon.recommenders.model import make
from harness_horizon.recommenders.rankers import Ranking, best_of, best_of_each, scores_after
from harness_horizon.recommenders.train_tool import Settings, run
from harness_horizon.recommenders.training_data import SAMPLE, Vocabulary, data_folder

from harness.analysis.analysis import no_progress
from harness.base.errors import DataError, Interrupted, StorageError, UsageError
from harness.contracts.model import CallError, ModelSettings

from .conftest import answers_of, made_data


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Trains a recommender on ten users of forty things, and of the usual options once."""
    rows = [[(user * 7 + step * (user % 3 + 1)) % 40 for step in range(8)] for user in range(10)]

    @cache
    def usual(kind):
        return train(kind, tmp_path_factory.mktemp(kind) / kind)

    def train(kind, out, *, split="a" * 64, **options):
        if kind not in ("popular", "neighbours"):
            pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")
            options = {"preset": "small", "epochs": 1, "device": "cpu", **options}
        with pytest.MonkeyPatch.context() as patch:
            read = "harness_horizon.recommenders.train_tool.read_training"
            patch.setattr(read, lambda _: made_data(rows, split=split))
            run(Settings(model=kind, data=out.parent, out=out, **options), no_progress)
        return out

    return lambda kind, out=None, **options: train(kind, out, **options) if out else usual(kind)


@pytest.fixture
def trained(checkpoints, tmp_path):
    """A checkpoint that a test may damage."""

    def make(kind, *, name="", **options):
        out = tmp_path / (name or kind)
        if name or options or out.exists():
            return checkpoints(kind, out, **options)
        return shutil.copytree(checkpoints(kind), out)

    return make


def asked(folder, texts):
    return answers_of(make, texts, model=str(folder))


@pytest.mark.parametrize("kind", ["sasrec", "bert4rec", "gru4rec", "core", "popular", "neighbours"])
def test_no_answer_depends_on_what_is_asked_at_the_same_time(trained, kind):
    folder = trained(kind)
    texts = [" ".join(str((one + step) % 40) for step in range(one % 9 + 1)) for one in range(90)]
    together = asked(folder, texts)
    alone = [asked(folder, [text])[0] for text in texts[:5] + texts[-5:]]
    assert together[:5] + together[-5:] == alone
    for answer in together:
        assert answer["scores"] == sorted(answer["scores"], reverse=True)
        assert len(set(answer["items"])) == len(answer["items"]) == len(answer["scores"])


@pytest.mark.parametrize("kind", ["sasrec", "bert4rec", "gru4rec", "core"])
def test_after_nothing_that_is_known_a_network_lists_nothing(trained, kind):
    answers = asked(trained(kind), ["999 1000", "", "999 3"])
    assert [bool(answer["items"]) for answer in answers] == [False, False, True]
    assert answers[2] == asked(trained(kind), ["3"])[0]


def test_a_few_items_are_ranked_if_only_these_are_asked_for(trained):
    for kind in ("sasrec", "neighbours"):
        whole, few = asked(trained(kind), ["3 4", "3 4\n\namong 9 999 5 7"])
        place = dict(zip(whole["items"], whole["scores"], strict=True))
        assert set(few["items"]) == {9, 5, 7}
        assert few["scores"] == [place[item] for item in few["items"]]


def test_equal_ones_are_listed_up_to_a_thousand_alone_and_many_are_ranked_like_few(monkeypatch):
    def sizes(scores):
        return len(best_of(np.array(scores), Vocabulary(np.arange(len(scores)))).items)

    assert sizes([*range(500, 0, -1)]) == rankers.BEST
    assert sizes([9.0] * 90 + [5.0] * 30 + [1.0] * 500) == 120
    assert sizes([9.0] * 90 + [5.0] * 5000) == rankers.MOST
    assert sizes([1.0, 2.0]) == 2
    scores = np.array([1.0000001, 1.0, 1.0], dtype=np.float32)
    assert scores[0] > scores[1]
    read = json.loads(rankers.reply_of(Ranking(np.array([4, 2, 7]), scores)))
    assert read["items"] == [4, 2, 7]
    assert read["scores"][0] > read["scores"][1] == read["scores"][2]
    rng = np.random.default_rng(4)
    scores = np.stack([rng.integers(0, most, 5000).astype(np.float32) for most in (9, 99, 10**6)])
    known = Vocabulary(np.arange(5000) * 2)
    alone = [best_of(row, known) for row in scores]
    monkeypatch.setattr("harness_horizon.recommenders.rankers.BLOCK", 20)
    for one, other in zip(best_of_each(scores, known), alone, strict=True):
        assert np.array_equal(one.items, other.items)
        assert np.array_equal(one.scores, other.scores)
    assert best_of_each(scores[:0], known) == []


@pytest.mark.parametrize("text", ["Which item?", "1 2 x", "-3", "1" * 30, "3 among", "1,2"])
def test_a_question_in_words_is_refused(trained, text):
    if text == "3 among":
        assert rankers.question_in(text) is None
    with pytest.raises(CallError, match="no history of item numbers"):
        asked(trained("popular"), [text])


def test_the_identity_is_that_of_weights_and_split_and_training_again_does_nothing(trained):
    def identity(folder):
        return make(ModelSettings(args={"model": str(folder)})).identity

    first = identity(trained("popular"))
    assert first.details["split"] == "a" * 64
    assert identity(trained("popular", name="again")) == first
    assert identity(trained("popular", name="other", split="b" * 64)) != first
    assert identity(trained("neighbours")) != first
    assert first.scope == "everywhere"
    folder = trained("sasrec")
    before = (folder / WEIGHTS).stat().st_mtime_ns
    manifest = read_manifest(folder)
    assert (manifest.kind, manifest.preset, manifest.best_epoch) == ("sasrec", "small", 1)
    assert not (folder / "training.pt").exists()
    assert (trained("sasrec") / WEIGHTS).stat().st_mtime_ns == before


def test_a_checkpoint_with_changed_weights_or_without_its_manifest_is_refused(trained, tmp_path):
    folder = trained("popular")
    data = bytearray((folder / WEIGHTS).read_bytes())
    data[100] ^= 1
    (folder / WEIGHTS).write_bytes(bytes(data))
    with pytest.raises(DataError, match="not those that its manifest names"):
        asked(folder, ["1"])
    (folder / MANIFEST).unlink()
    with pytest.raises(DataError, match=rf"no checkpoint(?s:.*){MANIFEST}(?s:.*)the same command"):
        make(ModelSettings(args={"model": str(folder)}))
    with pytest.raises(DataError, match="no such folder"):
        make(ModelSettings(args={"model": str(tmp_path / "nowhere")}))


def test_a_network_without_torch_names_the_package(trained, monkeypatch):
    folder = trained("sasrec")
    monkeypatch.setattr("harness_horizon.recommenders.model.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError) as caught:
        make(ModelSettings(args={"model": str(folder)}))
    assert caught.value.name == "torch"


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("gru4rec", {"name": "sasrec"}, "another checkpoint(?s:.*)model: sasrec, not gru4rec"),
        ("sasrec", {"seed": 1}, "seed: 2025, not 1"),
        ("sasrec", {"split": "b" * 64}, "split: aaaaaaaaaaaa, not bbbbbbbbbbbb"),
        ("sasrec", {"name": "new", "device": "cuda"}, "no GPU that PyTorch can use"),
        ("popular", {"epochs": 3}, "counted, not trained"),
        ("core", {"loss": "bpr"}, "CORE has no loss with negatives"),
    ],
)
def test_what_does_not_go_together_is_refused(trained, monkeypatch, kind, options, said):
    if kind != "popular":  # which needs no torch
        trained("sasrec")
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UsageError, match=said):
        trained(kind, **options)


def test_an_interrupted_training_says_what_is_kept(trained, monkeypatch):
    pytest.importorskip("torch", reason="needs torch: pip install '.[recsys]'")

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("harness_horizon.recommenders.trainer.mrr_of", stop)
    with pytest.raises(Interrupted, match="finished epochs are kept"):
        trained("sasrec", name="stopped")


@pytest.mark.parametrize(
    ("full_in", "kept"),
    [
        (1, "no epoch is kept, and training begins again"),
        (3, "epochs 1 to 2 are kept, and training continues after that"),
    ],
)
def test_a_full_disk_while_training_says_what_is_kept_and_the_same_command_goes_on(
    trained, monkeypatch, full_in, kept
):
    from harness_horizon.recommenders import trainer

    save, saved = trainer._Training.save, 0

    def saving(training, path):
        nonlocal saved
        saved += 1
        with room_for(2_000) if saved == full_in else nullcontext():
            save(training, path)

    monkeypatch.setattr(trainer._Training, "save", saving)
    with pytest.raises(StorageError, match="cannot write") as error:
        trained("sasrec", epochs=3)
    assert error.value.hint == f"free some space, then repeat the same command: {kept}"
    assert len(read_manifest(trained("sasrec", epochs=3)).epochs) == 3
    assert saved == 4


def test_a_checkpoint_is_no_data_and_data_no_checkpoint(trained, tmp_path):
    assert data_folder(Path("sample")) == SAMPLE
    for folder, found in (
        (trained("popular"), "popular, a checkpoint"), (tmp_path / "nowhere", "no folder"),
    ):  # fmt: skip
        with pytest.raises(DataError, match="no folder of curated data") as caught:
            data_folder(folder)
        assert found in str(caught.value.found)
    with pytest.raises(DataError, match="manifest of this checkpoint") as caught:
        make(ModelSettings(args={"model": str(SAMPLE)}))
    assert caught.value.found == "curated data, which is for --data"


def test_training_files_that_were_changed_are_named(tmp_path):
    data = shutil.copytree(SAMPLE, tmp_path / "data")
    file = data / "validation.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:1000])
    with pytest.raises(DataError, match="is gone or was changed") as caught:
        run(Settings(model="popular", data=data, out=tmp_path / "popular"), no_progress)
    assert caught.value.where == str(file)
    assert caught.value.expected == f"{len(whole):,} bytes of the digest in manifest.json"


def test_cases_are_prefixes_without_what_is_unknown_as_a_question_has_them():
    data = made_data([[30, 10, 20], [10], [20, 30]])
    [(histories, targets)] = training_data.training_cases(data).batches(10, 5)
    assert data.vocabulary.items.tolist() == [10, 20, 30]
    assert histories.tolist() == [[3, 0], [3, 1], [2, 0]]
    assert targets.tolist() == [1, 2, 3]
    data = made_data([list(range(1, 8))])
    cases = training_data.training_cases(data)
    batches = list(cases.batches(2, 3, np.array([5, 0, 2])))
    assert [one.tolist() for one, _ in batches] == [[[4, 5, 6], [1, 0, 0]], [[1, 2, 3]]]
    assert [one.tolist() for _, one in batches] == [[7, 2], [4]]
    data = made_data([[1, 2, 3]], [[1, 9, 2, 3], [9, 1], [2, 9], [3, 1, 9, 2]])
    [(histories, targets)] = training_data.validation_cases(data).batches(10, 5)
    assert (histories.tolist(), targets.tolist()) == ([[1, 2], [2, 0], [3, 1]], [3, 0, 2])
    # All items from the first one asked are targets.
    data = replace(made_data([[1, 2, 3]]), asked=np.array([1]))
    [(histories, targets)] = training_data.validation_cases(data).batches(10, 5)
    assert (histories.tolist(), targets.tolist()) == ([[1, 0], [1, 2]], [2, 3])
    rows = [[1, *range(1000, 1099), 2, 3], [1, *range(1000, 1100), 2]]
    data = made_data([[1, 2, 3]], rows)
    [(histories, targets)] = training_data.validation_cases(data).batches(10, 100)
    # Of 101 items before the target, the latest hundred are asked about; 1 is the oldest.
    assert (histories.tolist(), targets.tolist()) == ([[2]], [3])
    people = [Person(str(len(row)), tuple(row), len(row) - 1) for row in rows]
    asked = ItemData(people, data.vocabulary.items, "s", 0).cases(Options())
    known = [data.vocabulary.numbers(np.array(case.history)) for case in asked]
    assert [row[row > 0].tolist() for row in known] == [[2], []]
    # Where nothing is known, nothing has a number.
    assert Vocabulary(np.array([], dtype=np.int64)).numbers(np.array([1])).tolist() == [0]


def test_neighbours_follow_within_ten_places_the_popular_one_of_equals_first():
    data = made_data([[1, 2, 3], [1, 3], [4, *range(10, 20), 5]])
    arrays = rankers.neighbours(data)
    after = dict(zip(data.vocabulary.items.tolist(), scores_after(1, arrays), strict=True))
    assert [round(after[item], 3) for item in (2, 3)] == [1.0, 1.5]
    assert 0 < after[1] < 1e-4
    fourth = scores_after(4, arrays)
    found = dict(zip(data.vocabulary.items.tolist(), fourth, strict=True))
    assert round(found[19], 3) == 0.1
    assert found[5] < 1e-4
    assert scores_after(3, arrays).argmax() in (0, 2)
    data = made_data([[1, 2], [1, 3], [4, 3], [5, 6]])
    scores = scores_after(1, rankers.neighbours(data))
    order = data.vocabulary.items[np.argsort(-scores, kind="stable")]
    assert order[:2].tolist() == [3, 2]
    assert scores_after(None, rankers.popular(data)).tolist() == [2, 1, 2, 1, 1, 1]
