"""The keys of a run's models, on their way to other machines."""

import os

import msgspec
import pytest

from harness.base import key_files
from harness.base.errors import UsageError
from harness.contracts.model import ModelSettings
from harness.pipeline.executors.run_keys import RunKeys, keys_of, take_keys
from harness.registry import load_plugins

KEY = "key-3f2a9c71b8d0"
LOCAL = "http://127.0.0.1:9/v1"
EVERYWHERE = {"OPENAI_BASE_URL", "OPENAI_CUSTOM_HEADERS", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"}


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """Nothing set, nothing handed over, and all of it as before afterwards."""
    monkeypatch.setattr(key_files, "_handed", {})
    monkeypatch.chdir(tmp_path)
    for name in (*EVERYWHERE, "OPENAI_API_KEY", "MINE", "HF_TOKEN"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)


def model(kind="openai", hosts=None, **given):
    args = {"model": "m", "base_url": LOCAL, **given} if kind == "openai" else given
    return load_plugins().model(kind).factory(ModelSettings(args=args, given_hosts=hosts))


@pytest.mark.parametrize(
    ("given", "hosts", "variables"),
    [
        ({}, None, {"OPENAI_API_KEY", *EVERYWHERE}),
        ({"api_key_env": "MINE"}, None, {"MINE", *EVERYWHERE}),
        ({"api_key_file": "key"}, None, EVERYWHERE),
        ({"base_url": "http://of.a.task/v1"}, frozenset(), {"OPENAI_BASE_URL"}),
        (
            {"base_url": "http://of.a.task/v1", "api_key_env": "MINE"},
            frozenset(),
            {"MINE", "OPENAI_BASE_URL"},
        ),
    ],
    ids=["own variables", "key's variable", "key's file", "address of a task", "both"],
)
def test_a_model_names_what_its_requests_are_made_of(given, hosts, variables):
    assert set(model(hosts=hosts, **given).variables) == variables


def test_variables_are_set_elsewhere_as_they_are_here(monkeypatch):
    keys = keys_of([model()], {"OPENAI_API_KEY": KEY, "OTHER": "y"})
    assert keys.variables == {"OPENAI_API_KEY": KEY, **dict.fromkeys(sorted(EVERYWHERE))}
    monkeypatch.setenv("OPENAI_BASE_URL", "http://of.the.node/v1")
    take_keys(msgspec.msgpack.decode(msgspec.msgpack.encode(keys), type=RunKeys))
    assert os.environ["OPENAI_API_KEY"] == KEY
    assert "OPENAI_BASE_URL" not in os.environ


def test_a_file_is_read_elsewhere_where_it_is_missing(tmp_path):
    (tmp_path / "key").write_text(f"{KEY}\n")
    asked = model(api_key_file="key")
    keys = keys_of([asked, model(api_key_file="none")])
    assert keys.files == {"key": f"{KEY}\n"}
    (tmp_path / "key").unlink()
    with pytest.raises(UsageError, match="the key file cannot be used"):
        asked.require()
    take_keys(keys)
    asked.require()


def test_no_text_shows_a_value():
    keys = RunKeys(variables={"MINE": KEY, "OTHER": None}, files={"key": KEY})
    shown = "RunKeys(variables=['MINE', 'OTHER'], files=['key'])"
    assert (repr(keys), str(keys), f"{keys}") == (shown, shown, shown)
    assert KEY not in repr([keys])


def test_models_that_read_nothing_name_nothing():
    baseline = model("baseline")
    assert (baseline.variables, baseline.key_files, baseline.gpus) == ((), (), 0)
    assert keys_of([baseline]) == RunKeys()
