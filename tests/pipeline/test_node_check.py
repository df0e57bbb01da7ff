"""What a node is sent of a run, and how a node that differs is found."""

from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import msgspec
import pytest

from harness.base.errors import HarnessError
from harness.contracts.model import ModelSettings
from harness.pipeline import preparation
from harness.pipeline.executors import node_check
from harness.pipeline.executors.node_check import (
    NodeDiffers,
    Place,
    check_node,
    decoded,
    encoded,
    share_concurrency,
    work_order,
)
from harness.pipeline.preparation import prepare
from harness.pipeline.settings import make_settings
from harness.registry import load_plugins
from harness.registry.missing_packages import HARNESS

SERVED = "openai:model=m,base_url=http://127.0.0.1:9/v1"
GIVEN = {"tasks": "interests", "model": SERVED, "roles": {"judge": "lexical"}, "data": "sample"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A folder for the driver; the process is back in its own afterwards."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ordered(thinks=(), **given):
    """The order of a run, and its contexts by task; `thinks` are numbers of models that think."""
    prepared = prepare(make_settings({**GIVEN, **given}), load_plugins())
    thinking = [prepared.models[number] for number in thinks]
    contexts = {each.task.name: each.contexts("run-1", thinking) for each in prepared.tasks}
    folder = Path("runs/one")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lock").write_text("held")
    order = work_order(
        prepared.settings, contexts, load_plugins(), run_id="run-1", folder=folder, session=1,
        workers=1,
    )  # fmt: skip
    return order, contexts


def refused(order, plugins=None):
    """The error of a node that checks the order."""
    with pytest.raises(HarnessError) as caught:
        check_node(order, "n7", plugins)
    assert str(caught.value.where).startswith("node n7"), caught.value
    return caught.value


@pytest.mark.parametrize(
    "given",
    [
        {"num_repeats": 2, "changes": {"window": 5}, "sampling": {"temperature": 0.3}},
        {"tasks": "perrec_easy_pairwise", "store": "calls.sqlite", "include_path": ()},
        {"prices": {"openai:m": {"input": 1e-05, "output": 2.5}}, "patience": {"attempts": 3}},
    ],
    ids=str,
)
def test_a_node_makes_the_contexts_of_the_driver_without_data(given, folder, monkeypatch):
    order, contexts = ordered(**given)
    sent = decoded(encoded(order), "n7")
    assert sent == order
    assert (sent.cwd, sent.folder) == (str(folder), str(folder / "runs/one"))
    monkeypatch.setattr(preparation, "open_dataset", None)
    monkeypatch.chdir("/")
    made = check_node(sent, "n7")
    assert {task: [one.key for one in own] for task, own in made.items()} == {
        task: [one.key for one in own] for task, own in contexts.items()
    }
    assert Path.cwd() == folder


def test_the_models_that_think_are_found_again_though_their_names_are_the_same():
    twin = "openai:model=m,base_url=http://127.0.0.1:9/v1,thinking=auto"
    panel = {"judge": f"panel:openai:model=n+{twin}"}
    order, contexts = ordered(thinks=[0, 1], roles=panel, allow_self_judging=True)
    assert order.thinking == (Place("interests", "candidate", 0), Place("interests", "judge", 0))
    made = check_node(decoded(encoded(order), "n7"), "n7")
    for here, there in zip(made["interests"], contexts["interests"], strict=True):
        candidate, judges = (here.bindings[role].models for role in ("candidate", "judge"))
        assert here.key == there.key
        assert [model in here.thinking for model in (*candidate, *judges)] == [True, True, False]


@pytest.mark.parametrize(
    ("whole", "of_model", "workers", "shares"),
    [
        (8, None, 4, [2, 2, 2, 2]),
        (8, None, 3, [3, 3, 2]),
        (3, None, 3, [1, 1, 1]),
        (8, 5, 2, [3, 2]),
        (None, 5, 2, [3, 2]),
        (None, None, 2, [64, 64]),
    ],
)
def test_workers_have_together_what_was_given(whole, of_model, workers, shares):
    order = msgspec.structs.replace(ordered(concurrency=whole)[0], workers=workers)
    args = {"model": "m"} | ({} if of_model is None else {"concurrency": str(of_model)})
    found = []
    for seat in range(1, workers + 1):
        given = ModelSettings(args=args, concurrency=whole)
        model = load_plugins().model("openai").factory(given)
        model.limited = whole is not None or of_model is not None
        share_concurrency([model], order, seat=seat)
        found.append(model.concurrency)
    assert found == shares


def test_an_order_shows_no_settings():
    order, _ = ordered(model="openai:model=m,base_url=http://bob:hunter2222222@127.0.0.1:9/v1")
    assert "hunter" not in repr(order)
    assert repr(order) == "WorkOrder(run_id='run-1', tasks=['interests'])"


def test_another_version_of_the_harness_is_named_with_both_also_where_the_order_is_unreadable():
    order, _ = ordered()
    other = msgspec.structs.replace(order, versions={**order.versions, HARNESS: "9.9"})
    error = refused(other)
    assert (error.found, error.expected) == (version(HARNESS), "9.9")
    assert HARNESS in str(error)
    of_later = {"versions": other.versions, "plugins": other.plugins, "more": [1]}
    with pytest.raises(NodeDiffers, match="node n7"):
        decoded(msgspec.msgpack.encode(of_later), "n7")


@pytest.mark.parametrize(("there", "fits"), [("3.11.0", True), ("3.10.9", False)])
def test_the_third_number_of_python_may_differ(there, fits, monkeypatch):
    order, _ = ordered()
    order = msgspec.structs.replace(order, versions={**order.versions, "python": "3.11.7"})
    monkeypatch.setattr(node_check.platform, "python_version", lambda: there)
    if fits:
        check_node(order, "n7")
    else:
        assert (refused(order).found, refused(order).expected) == (there, "3.11.7")


def test_another_version_of_a_plugin_and_a_missing_one_are_named():
    order, _ = ordered()
    plugins = load_plugins()
    other = replace(plugins, loaded=[replace(one, version="0.0.1") for one in plugins.loaded])
    error = refused(order, other)
    here = version(HARNESS)
    assert (error.found, error.expected) == (f"{HARNESS} 0.0.1", f"{HARNESS} {here}")
    fewer = replace(plugins, loaded=[one for one in plugins.loaded if one.entry_point != "judges"])
    error = refused(order, fewer)
    assert error.where == "node n7, plugin judges"
    assert (error.found, error.expected) == ("no plugin of this name", f"{HARNESS} {here}")
    assert f"install {HARNESS}=={here}" in error.hint


def test_a_folder_of_prompts_that_the_node_lacks_is_named(folder, monkeypatch):
    own = folder / "own" / "interests"
    own.mkdir(parents=True)
    (own / "name.candidate.j2").write_text("{{ window }}")
    order, _ = ordered(prompts="own")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    error = refused(msgspec.structs.replace(order, cwd="/no/such/folder"))
    assert (error.problem, error.found) == ("--prompts names no folder of prompts", "own")
    assert f"the node has no /no/such/folder, so relative paths begin in {elsewhere}" in error.hint


def test_weights_that_the_node_lacks_are_named(folder):
    order, _ = ordered()
    settings = msgspec.structs.replace(
        order.settings, model="hf", model_args={"pretrained": str(folder / "weights")}
    )
    error = refused(msgspec.structs.replace(order, settings=settings))
    assert str(folder / "weights") in str(error)


def test_what_decides_another_key_of_a_stage_is_named(folder, monkeypatch):
    own = folder / "own" / "interests"
    own.mkdir(parents=True)
    (own / "name.candidate.j2").write_text("{{ window }}")
    order, _ = ordered(prompts="own", model="openai:model=m", sampling={"temperature": 0.3})
    (own / "name.candidate.j2").write_text("{{ window }}!")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8/v1")
    error = refused(order)
    assert isinstance(error, NodeDiffers)
    assert error.where == "node n7, interests/name"
    assert "prompts.name.candidate, roles.candidate.model.details.host differ" in error.problem
    assert "roles.candidate.model.details.host: 127.0.0.1:8" in error.found
    assert "roles.candidate.model.details.host: api.openai.com" in error.expected


def test_other_stages_than_the_driver_has_are_named():
    order, _ = ordered()
    stages = [*order.stages["interests"], node_check.StageOrder(name="x", key="k", components={})]
    error = refused(msgspec.structs.replace(order, stages={"interests": tuple(stages)}))
    assert (error.found, error.expected) == ("name, support", "name, support, x")
