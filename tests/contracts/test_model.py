"""Who a model is, what tells two apart, how far answers go, and what it has without saying so."""

import pytest

from harness import Model, Reply
from harness.contracts.identity import Identity


class Parrot(Model):
    identity = Identity(kind="parrot", name="parrot")

    async def ask(self, request):
        return Reply(text=request)


def test_a_line_is_shown_to_the_user_of_the_run_alone(tmp_path):
    shown = []
    model, other = Parrot(), Parrot()
    model.show("before a run")
    model.attach_log(tmp_path, shown.append)
    model.show("in a run")
    other.show("elsewhere")
    assert shown == ["in a run"]
    assert (model.log_folder, other.log_folder) == (tmp_path, None)


def test_models_are_told_apart_by_which_they_are_and_not_by_whose_answers_they_give():
    one, other = Parrot(), Parrot()
    assert one.identity == other.identity
    assert {one: 1, other: 2} == {other: 2, one: 1}
    assert len({one, other}) == 2


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
    found = unpinned.key("monday")
    assert found == {"kind": "openai", "name": "m", "details": {"host": "h"}, "run": "monday"}
