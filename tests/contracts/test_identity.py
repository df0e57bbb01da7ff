"""Who a model is: what tells two apart, and how far answers go."""

import pytest

from harness.contracts.identity import Identity


def identity(name="m", kind="openai", **details):
    return Identity(kind=kind, name=name, details=details)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (identity(), identity()),
        (identity(host="a:1"), identity(host="a:1")),
        # Where one says nothing of it, nothing tells them apart.
        (identity(revision="a"), identity(host="h")),
        (identity(revision="a", identity="x"), identity(identity="x")),
        # How answers are asked for is not who answers.
        (identity(host="h", seed=False), identity(host="h")),
        (identity(host="h", structured=True), identity(host="h", structured=False)),
    ],
    ids=str,
)
def test_what_may_be_the_same_weights(one, other):
    assert one.may_be(other)
    assert other.may_be(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (identity("m"), identity("n")),
        (identity(kind="openai"), identity(kind="vllm")),
        (identity(revision="a"), identity(revision="b")),
        (identity(host="h:1"), identity(host="h:2")),
        (identity(revision="a", identity="x"), identity(revision="a", identity="y")),
    ],
    ids=str,
)
def test_what_is_told_apart(one, other):
    assert not one.may_be(other)
    assert not other.may_be(one)


def test_pinned_weights_are_the_same_in_every_run_and_scope():
    here = Identity(kind="openai", name="m", details={"revision": "a"}, scope="run")
    everywhere = Identity(kind="openai", name="m", details={"revision": "a"})
    assert here.may_be(everywhere)
    pinned = identity(revision="a")
    assert pinned.key("monday") == pinned.key("tuesday")
    assert pinned.key("monday") == {"kind": "openai", "name": "m", "details": {"revision": "a"}}


@pytest.mark.parametrize("scope", ["run", "call"])
def test_the_key_of_a_name_alone_holds_for_one_run(scope):
    unpinned = Identity(kind="openai", name="m", details={"host": "h"}, scope=scope)
    assert unpinned.key("monday") == {
        "kind": "openai", "name": "m", "details": {"host": "h"}, "run": "monday",
    }  # fmt: skip
