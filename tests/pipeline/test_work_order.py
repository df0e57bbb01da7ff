import os
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from harness.base import key_files
from harness.base.errors import PromptError, UsageError
from harness.contracts.model import ModelSettings
from harness.pipeline import preparation
from harness.pipeline.executors.shard_worker import (
    Versions,
    keys_of,
    read_order,
    share_concurrency,
    work_order,
)
from harness.pipeline.preparation import prepare
from harness.pipeline.settings import make_settings
from harness.registry import load_plugins
from harness.registry.hookspecs import HARNESS
from harness.runs.run_folder import RunFolder

LOCAL = "http://127.0.0.1:9/v1"
SERVED = f"openai:model=m,base_url={LOCAL}"
GIVEN = {"tasks": "interests", "model": SERVED, "roles": {"judge": "lexical"}, "data": "sample"}
KEY = "key-3f2a9c71b8d0"
EVERYWHERE = {"OPENAI_BASE_URL", "OPENAI_CUSTOM_HEADERS", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A folder for the command, with no key set; the process is back in its own afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(key_files, "_handed", {})
    for name in (*EVERYWHERE, "OPENAI_API_KEY", "MINE"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)
    return tmp_path


def ordered(thinks=(), **given):
    """The order of a run, and its contexts; `thinks` are numbers of models that think."""
    prepared = prepare(make_settings({**GIVEN, **given}), load_plugins())
    thinking = [prepared.models[number] for number in thinks]
    contexts = {each.task.name: each.contexts("run-1", thinking) for each in prepared.tasks}
    folder = Path("runs/one")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lock").write_text("held")
    session = SimpleNamespace(
        settings=prepared.settings, contexts=contexts, plugins=load_plugins(), number=1, workers=2,
        taken=SimpleNamespace(run_id="run-1", folder=RunFolder(folder)),
    )  # fmt: skip
    return work_order(session), [one for each in contexts.values() for one in each]


@pytest.mark.parametrize(
    "given",
    [
        {"num_repeats": 2, "changes": {"window": 5}, "sampling": {"temperature": 0.3}},
        {"tasks": "perrec_easy_pairwise", "store": "calls.sqlite", "include_path": ()},
        {"prices": {"openai:m": {"input": 1e-05, "output": 2.5}}, "patience": {"attempts": 3}},
    ],
    ids=str,
)
def test_a_worker_makes_the_contexts_of_the_command_without_data(given, folder, monkeypatch):
    order, contexts = ordered(**given)
    monkeypatch.setattr(preparation, "open_dataset", None)
    monkeypatch.chdir("/")
    read, made, _ = read_order(order)
    found = {place: one.key for place, one in made.items()}
    assert found == {(one.task.name, one.stage.name): one.key for one in contexts}
    assert Path.cwd() == folder
    assert (read.folder, read.workers) == (str(folder / "runs/one"), 2)
    assert (read.settings.executor, read.settings.workers) == ("local", None)


def test_the_models_that_think_are_found_again():
    twin = f"openai:model=m,base_url={LOCAL},thinking=auto"
    panel = {"judge": f"panel:openai:model=n+{twin}"}
    order, contexts = ordered(thinks=[0, 1], roles=panel, allow_self_judging=True)
    _, made, _ = read_order(order)
    assert [one.key for one in made.values()] == [one.key for one in contexts]
    [candidate] = made["interests", "name"].bindings["candidate"].models
    assert candidate in made["interests", "name"].thinking


@pytest.mark.parametrize(
    ("given", "workers", "shares"),
    [(8, 4, [2, 2, 2, 2]), (8, 3, [3, 3, 2]), (3, 3, [1, 1, 1]), (None, 2, [64, 64])],
)
def test_workers_have_together_what_was_given(given, workers, shares):
    found = []
    for seat in range(workers):
        settings = ModelSettings(args={"model": "m"}, concurrency=given)
        model = load_plugins().model("openai").factory(settings)
        model.limited = given is not None
        share_concurrency([model], workers, seat=seat)
        found.append(model.concurrency)
    assert found == shares


def test_an_order_shows_no_settings():
    order, _ = ordered(model="openai:model=m,base_url=http://bob:hunter2222222@127.0.0.1:9/v1")
    shown = repr(read_order(order)[0])
    assert "hunter" not in shown
    assert shown == "WorkOrder(run_id='run-1', tasks=['interests'])"


@pytest.mark.parametrize("name", [HARNESS, "python", "jinja2", "plugin judges", "plugin acme"])
def test_another_version_is_named_with_both_though_the_order_is_unreadable(name):
    order, _ = ordered()
    versions = msgspec.msgpack.decode(order, type=Versions).versions
    other = msgspec.msgpack.encode({"versions": versions | {name: "9.9"}, "more": [1]})
    with pytest.raises(UsageError) as caught:
        read_order(other)
    assert (caught.value.where, caught.value.expected) == (name, "9.9")
    assert caught.value.found == versions.get(name, "nothing")


def test_a_plugin_that_is_broken_here_alone_says_why(site):
    site.install("films", {"films": "films_plugin"}, {"films_plugin.py": "import gone"})
    order, _ = ordered()
    versions = msgspec.msgpack.decode(order, type=Versions).versions
    other = msgspec.msgpack.encode({"versions": versions | {"plugin films": "films 1.0"}})
    with pytest.raises(UsageError, match="plugin films is not what it was") as caught:
        read_order(other)
    assert caught.value.found == "ModuleNotFoundError: No module named 'gone'"


@pytest.mark.parametrize(("lock", "found"), [("other", "another folder"), (None, "No such file")])
def test_a_worker_that_does_not_see_the_run_folder_says_so(folder, lock, found):
    order, _ = ordered()
    file = folder / "runs" / "one" / "lock"
    file.unlink() if lock is None else file.write_text(lock)
    with pytest.raises(UsageError, match="the run folder cannot be seen from a worker") as caught:
        read_order(order)
    assert found in caught.value.found and caught.value.where == str(file.parent)


def test_what_decides_another_key_of_a_stage_and_a_folder_that_a_machine_lacks_are_named(
    folder, monkeypatch
):
    own = folder / "own" / "interests"
    own.mkdir(parents=True)
    (own / "name.candidate.j2").write_text("{{ window }}")
    order, _ = ordered(prompts="own", model="openai:model=m", sampling={"temperature": 0.3})
    (own / "name.candidate.j2").write_text("{{ window }}!")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8/v1")
    with pytest.raises(UsageError, match="a stage has another key here") as caught:
        read_order(order)
    assert caught.value.where == "interests/name"
    assert "prompts.name.candidate: " in caught.value.found
    assert "roles.candidate.model.details.host: 127.0.0.1:8" in caught.value.found
    assert "roles.candidate.model.details.host: api.openai.com" in caught.value.expected
    monkeypatch.chdir("/")
    moved = {**msgspec.msgpack.decode(order), "cwd": "/no/such/folder"}
    with pytest.raises(PromptError, match="--prompts names no folder of prompts") as caught:
        read_order(msgspec.msgpack.encode(moved))
    assert "there is no /no/such/folder here, so relative paths begin in /" in caught.value.hint


def model(hosts=None, **given):
    args = {"model": "m", "base_url": LOCAL, **given}
    return load_plugins().model("openai").factory(ModelSettings(args=args, given_hosts=hosts))


@pytest.mark.parametrize(
    ("given", "hosts", "variables"),
    [
        ({}, None, {"OPENAI_API_KEY", *EVERYWHERE}),
        ({"api_key_env": "MINE"}, None, {"MINE", *EVERYWHERE}),
        ({"api_key_file": "key"}, None, EVERYWHERE),
        ({"base_url": "http://of.a.task/v1"}, frozenset(), {"OPENAI_BASE_URL"}),
        (
            {"base_url": "http://of.a.task/v1", "api_key_env": "MINE"}, frozenset(),
            {"MINE", "OPENAI_BASE_URL"},
        ),
    ],
    ids=["own variables", "key's variable", "key's file", "address of a task", "both"],
)  # fmt: skip
def test_a_model_names_what_its_requests_are_made_of(given, hosts, variables):
    assert set(model(hosts=hosts, **given).variables) == variables


def test_variables_are_set_elsewhere_as_they_are_here(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    keys = keys_of([model()])
    assert keys.variables == {"OPENAI_API_KEY": KEY, **dict.fromkeys(sorted(EVERYWHERE))}
    monkeypatch.setenv("OPENAI_API_KEY", "of the machine")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://of.the.machine/v1")
    keys.take()
    assert os.environ["OPENAI_API_KEY"] == KEY
    assert "OPENAI_BASE_URL" not in os.environ
    shown = f"RunKeys(variables={list(keys.variables)!r}, files=[])"
    assert (repr(keys), f"{keys}") == (shown, shown) and KEY not in shown


def test_a_file_is_read_elsewhere_where_it_is_missing(tmp_path):
    (tmp_path / "key").write_text(f"{KEY}\n")
    asked = model(api_key_file="key")
    keys = keys_of([asked, model(api_key_file="none")])
    assert keys.files == {"key": f"{KEY}\n"} and KEY not in repr(keys)
    (tmp_path / "key").unlink()
    with pytest.raises(UsageError, match="the key file cannot be used"):
        asked.require()
    keys.take()
    asked.require()
