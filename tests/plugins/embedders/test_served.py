"""Embedders behind a server that misbehaves: what is sent, retried, refused and kept."""

import base64
import struct

import numpy as np
import pytest

from harness.base.errors import ModelError, UsageError
from harness.calls.retry import Patience
from harness.calls.store import default_path
from harness.pipeline.embedders import ToolAsker, named_embedder
from harness.testing import FaultyServer
from harness.testing.faults import RESET_IN_BODY, Fault, first, once_each, status

TEXTS = ["abba", "dad", "cab", ""]
EXPECTED = np.array([[3, 3, 1, 1], [2, 1, 1, 3], [2, 2, 2, 1], [1, 1, 1, 1]])
EXPECTED = EXPECTED / np.linalg.norm(EXPECTED, axis=1, keepdims=True)
SOON = Patience(attempts=3, first_delay=0.0)


@pytest.fixture
def by_server(embedded, own_cache):
    """The rows that a server with some faults gives, their embedder, and the server."""

    def run(faults=(), texts=TEXTS, more="", answer=None, **given):
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


def test_texts_are_sent_in_batches_and_come_back_in_order(by_server):
    rows, embedder, server = by_server(more=",batch=3,extra_body.dimensions=4")
    np.testing.assert_allclose(rows, EXPECTED, atol=1e-6)
    assert embedder.dimensions == 4
    assert embedder.tokens == sum(len(text.split()) for text in ["a", *TEXTS])
    assert server.requests[0] == {
        "dimensions": 4, "model": "m", "input": ["a"], "encoding_format": "base64",
    }  # fmt: skip
    assert [body["input"] for body in server.requests[1:]] == [TEXTS[:3], TEXTS[3:]]
    assert server.asked[0].target == "/v1/embeddings"


@pytest.mark.parametrize(
    "fault",
    [
        status(503),
        RESET_IN_BODY,
        Fault(body='{"data": [{"index": 0, "embedd'),
        data([1.0, 2.0], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]),
        Fault(body='{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}'),
        data([1.0, "x"]),
        data("no base64"),
        data([1.0], index=7),
        data([]),
    ],
)
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


def test_vectors_in_base64_and_in_any_order_are_read(by_server):
    packed = [base64.b64encode(struct.pack("<2f", place, 1.0)).decode() for place in (3, 0)]
    answer = {"data": [{"index": 1 - place, "embedding": one} for place, one in enumerate(packed)]}
    faults = [data([1.0, 1.0]), Fault(body=answer)]
    rows, _, _ = by_server(faults, texts=["x", "y"])
    np.testing.assert_allclose(rows, [[0, 1], [3 / 10**0.5, 1 / 10**0.5]], atol=1e-6)


def test_only_pinned_vectors_are_kept_for_other_processes(by_server, own_cache, embedded):
    def asked_twice(more):
        with FaultyServer() as server:
            spec = f"openai:m,base_url={server.url}{more}"
            askers = [ToolAsker(patience=SOON, store=default_path()) for _ in range(2)]
            twice = [embedded(spec, TEXTS, asker=asker)[0] for asker in askers]
            np.testing.assert_array_equal(*twice)
            return server.count

    assert asked_twice("") == 4
    assert not (own_cache / "calls.sqlite").exists(), "what cannot be found again is not kept"
    assert asked_twice(",revision=abc") == 2
    with FaultyServer() as server:
        spec = f"openai:m,base_url={server.url},revision=abc"
        embedded(spec, TEXTS, asker=ToolAsker())
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


def test_an_embedder_is_another_identity_than_the_model_of_its_name(own_cache):
    identity = named_embedder("openai:m,base_url=http://h/v1").identity
    assert identity.label == "openai:m"
    assert (identity.details, identity.scope) == ({"host": "h", "endpoint": "embeddings"}, "run")


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
