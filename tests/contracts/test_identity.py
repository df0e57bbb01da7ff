"""Who a model is: what tells two apart, and how far answers go."""

import pytest

from harness.contracts.identity import Identity


def identity(name="m", kind="openai", **details):
    return Identity(kind=kind, name=name, details=details)


@pytest.mark.parametrize(
    ("one", "other", "may_be"),
    [
        (identity(), identity(), True),
        (identity(host="a:1"), identity(host="a:1"), True),
        # Where one says nothing of it, nothing tells them apart.
        (identity(revision="a"), identity(host="h"), True),
        (identity(revision="a", identity="x"), identity(identity="x"), True),
        # How answers are asked for is not who answers.
        (identity(host="h", seed=False), identity(host="h"), True),
        (identity(host="h", structured=True), identity(host="h", structured=False), True),
        (identity("m"), identity("n"), False),
        (identity(kind="openai"), identity(kind="vllm"), False),
        (identity(revision="a"), identity(revision="b"), False),
        (identity(host="h:1"), identity(host="h:2"), False),
        (identity(revision="a", identity="x"), identity(revision="a", identity="y"), False),
    ],
    ids=str,
)
def test_what_may_be_the_same_weights_and_what_is_told_apart(one, other, may_be):
    assert one.may_be(other) is other.may_be(one) is may_be


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
