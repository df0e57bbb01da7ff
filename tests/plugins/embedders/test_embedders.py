"""The embedders: hashed words, sentence-transformers, and servers that misbehave."""

import asyncio
import base64
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from harness_embedders import sentences

from harness.base.errors import ModelError, UsageError
from harness.calls.retry import Patience
from harness.calls.store import default_path
from harness.contracts.embedder import EmbedderSettings, checked_rows
from harness.pipeline.embedders import ToolAsker, named_embedder
from harness.testing import FaultyServer
from harness.testing.faults import RESET_IN_BODY, Fault, first, once_each, status

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


def test_texts_that_share_words_are_nearer_and_any_has_a_vector_the_same_in_every_process(embedded):
    rows, embedder = embedded("hashing", ["blue shoes", "Blue shoe", "kettle", "blue shoes"])
    assert (embedder.dimensions, embedder.occupies) == (384, None)
    cosines = rows @ rows.T
    assert cosines[0, 1] > 0.5 > cosines[0, 2]
    assert cosines[0, 3] == pytest.approx(1)
    rows, _ = embedded("hashing:dimensions=7", ["", "!!!", "né", "\ud800"])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    (row,), _ = embedded("hashing:dimensions=4", ["tea"])
    assert [round(float(one), 3) for one in row] == [0, 0.816, 0.408, 0.408]


def test_what_is_part_of_an_identity_and_which_arguments_are_refused(own_cache):
    assert named_embedder("hashing").identity != named_embedder("hashing:dimensions=7").identity
    assert named_embedder("hashing").identity.label == "hashing:words"
    said_of = {"dimensions=x": "at least 1", "dimension=3": "did you mean 'dimensions'"}
    for given, said in said_of.items():
        with pytest.raises(UsageError, match=said):
            named_embedder(f"hashing:{given}")
    identity = named_embedder("openai:m,base_url=http://h/v1").identity
    assert identity.label == "openai:m"
    assert (identity.details, identity.scope) == ({"host": "h", "endpoint": "embeddings"}, "run")


TEXTS = ["blue shoes", "a kettle of steel, and a phone charger", "", "shoes " * 2000]


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
        ("", {"pooling": "cls"}), (",pooling=mean", {"pooling": "mean"}),
        (",batch=1", {"pooling": "cls"}), (",max_length=8", {"pooling": "cls", "length": 8}),
    ],
)  # fmt: skip
def test_a_plain_encoder_is_pooled_as_computed_by_hand(roberta, embedded, given, computed):
    rows, embedder = embedded(f"sentence-transformers:{roberta}{given},device=cpu", TEXTS)
    assert rows.dtype == np.float32
    assert embedder.dimensions == 32
    np.testing.assert_allclose(rows, by_hand(roberta, TEXTS, **computed), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)


def test_half_precision_changes_little_and_the_folders_settings_count(roberta, embedded, tmp_path):
    rows, _ = embedded(f"sentence-transformers:{roberta},dtype=bfloat16,device=cpu", TEXTS)
    whole = by_hand(roberta, TEXTS, pooling="cls")
    assert 0 < np.abs(rows - whole).max() < 0.1
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


def test_code_is_not_run_nor_more_tokens_read_than_have_positions(roberta, embedded, tmp_path):
    folder = Path(shutil.copytree(roberta, tmp_path / "hostile"))
    (folder / "evil.py").write_text("raise SystemExit('ran')\nclass Evil: ...\n")
    evil = '[{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]'
    (folder / "modules.json").write_text(evil)
    with pytest.raises(ModelError, match="the weights cannot be loaded") as caught:
        embedded(f"sentence-transformers:{folder},device=cpu", ["a"])
    assert "Evil" in str(caught.value)
    with pytest.raises(UsageError, match="at most 512"):
        embedded(f"sentence-transformers:{roberta},max_length=600,device=cpu", ["a"])


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


def test_a_name_is_pinned_by_its_commit_and_embeds_alike(roberta, embedded, tmp_path, monkeypatch):
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
        (",pooling=max", "cls or mean"), (",batch=0", "a whole number, at least 1"),
        (",dtype=int8", "float32 or float16 or bfloat16"),
        (",revision=main", "a folder holds a single one"),
        (",polling=cls", "did you mean 'pooling'?"),
    ],
)  # fmt: skip
def test_an_argument_that_cannot_be_used_is_refused(roberta, given, said):
    with pytest.raises(UsageError, match=said):
        named_embedder(f"sentence-transformers:{roberta}{given}")


def test_weights_that_are_nowhere_and_a_package_that_is_absent_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(sentences, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"\[embed\]"):
        sentences.make(sentences.KIND, EmbedderSettings(args={"model": "org/name"}))
    monkeypatch.setattr(sentences, "find_spec", lambda name: object())
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="at the hub or in its cache") as caught:
        sentences.make(sentences.KIND, EmbedderSettings(args={"model": "nobody/nothing"}))
    assert "nobody/nothing" in str(caught.value)
    with pytest.raises(UsageError, match="an existing folder"):
        sentences.make(sentences.KIND, EmbedderSettings(args={"model": "./nowhere"}))


SENT = ["abba", "dad", "cab", ""]
EXPECTED = np.array([[3, 3, 1, 1], [2, 1, 1, 3], [2, 2, 2, 1], [1, 1, 1, 1]])
EXPECTED = EXPECTED / np.linalg.norm(EXPECTED, axis=1, keepdims=True)
SOON = Patience(attempts=3, first_delay=0.0)


@pytest.fixture
def by_server(embedded, own_cache):
    """The rows that a server with some faults gives, their embedder, and the server."""

    def run(faults=(), texts=SENT, more="", answer=None, **given):
        with FaultyServer(faults=faults) as server:
            spec = f"openai:m,base_url={server.url}{more}"
            asker = ToolAsker(patience=SOON, store=default_path())
            rows, embedder = embedded(spec, texts, asker=asker, **given)
            return rows, embedder, server

    return run


def data(*vectors, **first_one):
    """The body of a wrong answer."""
    rows = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
    rows[0].update(first_one)
    return Fault(body={"data": rows, "usage": {"prompt_tokens": 1}})


def test_texts_are_sent_in_batches_and_come_back_in_order_as_floats_or_base64(by_server):
    rows, embedder, server = by_server(more=",batch=3,extra_body.dimensions=4")
    np.testing.assert_allclose(rows, EXPECTED, atol=1e-6)
    assert embedder.dimensions == 4
    assert embedder.tokens == sum(len(text.split()) for text in ["a", *SENT])
    assert server.requests[0] == {
        "dimensions": 4, "model": "m", "input": ["a"], "encoding_format": "base64",
    }  # fmt: skip
    assert [body["input"] for body in server.requests[1:]] == [SENT[:3], SENT[3:]]
    assert server.asked[0].target == "/v1/embeddings"
    packed = [base64.b64encode(struct.pack("<2f", place, 1.0)).decode() for place in (3, 0)]
    answer = {"data": [{"index": 1 - place, "embedding": one} for place, one in enumerate(packed)]}
    faults = [data([1.0, 1.0]), Fault(body=answer)]
    rows, _, _ = by_server(faults, texts=["x", "y"])
    np.testing.assert_allclose(rows, [[0, 1], [3 / 10**0.5, 1 / 10**0.5]], atol=1e-6)


@pytest.mark.parametrize(
    "fault",
    [
        status(503), RESET_IN_BODY, Fault(body='{"data": [{"index": 0, "embedd'),
        data([1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]),
        Fault(body='{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}'),
        data([1.0, "x"]), data("no base64"), data([1.0], index=7), data([]),
    ],
)  # fmt: skip
def test_what_may_pass_is_asked_again(by_server, fault):
    rows, _, server = by_server(once_each(fault))
    np.testing.assert_allclose(rows, EXPECTED, atol=1e-6)
    assert server.count == 4, "both questions were asked twice"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (data([1.0], [2.0]), "2 vectors for 4 texts"),
        (Fault(body='{"data": [{"index": 0, "embedding": [NaN]}]}'), "a number is not finite"),
        (data(*[[1.0, 2.0]] * 4), "the server changed the size of its vectors"),
        (status(400, message="too long"), "too long"),
        (data([0.0] * 4, *[[1.0] * 4] * 3), "a vector holds only zeros"),
    ],
)
def test_what_stays_wrong_ends_with_the_embedder_and_the_reason(by_server, fault, said):
    with pytest.raises(ModelError, match=said) as caught:
        by_server(lambda asked: fault if asked.number else None)
    assert caught.value.where == "openai:m"


def test_only_pinned_vectors_are_kept_for_other_processes(by_server, own_cache, embedded):
    def asked_twice(more):
        with FaultyServer() as server:
            spec = f"openai:m,base_url={server.url}{more}"
            askers = [ToolAsker(patience=SOON, store=default_path()) for _ in range(2)]
            twice = [embedded(spec, SENT, asker=asker)[0] for asker in askers]
            np.testing.assert_array_equal(*twice)
            return server.count

    assert asked_twice("") == 4
    assert not (own_cache / "calls.sqlite").exists(), "what cannot be found again is not kept"
    assert asked_twice(",revision=abc") == 2
    with FaultyServer() as server:
        spec = f"openai:m,base_url={server.url},revision=abc"
        embedded(spec, SENT, asker=ToolAsker())
        assert server.count == 2, "the store is not read either"


def test_a_key_goes_only_where_the_user_said_and_a_refused_one_is_not_shown(by_server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-the-users-own-key")
    _, _, server = by_server()
    assert {one.headers["authorization"] for one in server.asked} == {"Bearer sk-the-users-own-key"}
    embedder = named_embedder("openai:m,base_url=http://elsewhere/v1", given_hosts=frozenset())
    assert embedder._model._args.api_key_env is None
    embedder = named_embedder("openai:m,base_url=http://elsewhere/v1")
    assert embedder._model._args.api_key_env == "OPENAI_API_KEY"
    refusal = status(401, message="wrong key sk-the-users-own-key")
    with pytest.raises(ModelError, match="the key in OPENAI_API_KEY") as caught:
        by_server(first(9, refusal))
    assert "sk-the-users-own-key" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("openai:m,temperature=1", "no argument 'temperature'"),
        ("openai:m,batch=0", "at least 1"),
        ("openai:base_url=http://h/v1", "needs the model's name"),
        ("openai:m,api_key=sk-123", "is a key, token or password|no argument 'api_key'"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(spec, said):
    with pytest.raises(UsageError, match=said) as caught:
        named_embedder(spec)
    assert "sk-123" not in str(caught.value)
