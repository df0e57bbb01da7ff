from pathlib import Path
from traceback import walk_tb
from types import SimpleNamespace

import numpy as np
import pytest
from builders.commands import run_cli
from harness_horizon.catalogue.faiss_index import FaissIndex, build
from harness_models import openai_batches

from harness.contracts.model import ModelSettings
from harness.data.fetch import OFFLINE
from harness.parsing import JsonReader

HUB, FAISS = "harness.data.hub", "harness_horizon.catalogue.faiss_index"
UPLOAD = "harness_models.openai_batches:OpenAIBatches.upload"
PROBLEM = "harness.parsing.ladder:SchemaCheck.problem"


class Reached(BaseException):
    """The package was called; whatever handles the errors of a package lets this one through."""


def reached(*given, **named):
    raise Reached


def read_plugins(folder, site):
    site.install("acme", {"acme": "acme_plugin"}, {"acme_plugin.py": ""})
    site.plugins()


def run_on_hub(folder, site):
    words = ("--model", "baseline", "--judge", "lexical", "--tasks", "gist_synthetic")
    run_cli(*words, folder=folder)


def submit_a_batch(folder, site):
    args = {"model": "m", "base_url": "http://127.0.0.1:1/v1", "batch": "true"}
    openai_batches.make(ModelSettings(args=args)).batches().upload(Path(__file__))


def build_an_index(folder, site):
    build([np.eye(8, dtype=np.float32)], folder / "index", 1, lambda count: None)


def open_an_index(folder, site):
    FaissIndex(folder / "index")


def read_by_schema(folder, site):
    JsonReader(schema={"type": "array"})("[1]")


def read_broken_json(folder, site):
    JsonReader(type=list[str])('["trains", "owls"')


def run_a_sample(folder, site):
    words = ("--model", "baseline", "--judge", "lexical", "--tasks", "interests")
    run_cli(*words, "--data", "sample", "--limit", "1", folder=folder)


CALLED = [
    ("pluggy", "harness.registry.registry:_load", "pluggy.PluginManager.register", read_plugins),
    ("huggingface-hub", f"{HUB}:_Repo.listing", "huggingface_hub.HfApi.dataset_info", run_on_hub),
    ("huggingface-hub", f"{HUB}:_Repo.snapshot", "huggingface_hub.snapshot_download", run_on_hub),
    ("datasets", f"{HUB}:_splits", "datasets.load_dataset_builder", run_on_hub),
    ("openai", UPLOAD, "openai.resources.Files.create", submit_a_batch),
    ("faiss", f"{FAISS}:build", "faiss.write_index", build_an_index),
    ("faiss", f"{FAISS}:FaissIndex.__init__", "faiss.read_index", open_an_index),
    ("jsonschema", PROBLEM, "jsonschema.exceptions.best_match", read_by_schema),
    ("json-repair", "harness.parsing.decode:_guess", "json_repair.loads", read_broken_json),
    ("rich", "harness.reporting.grid:show", "rich.console.Console.print", run_a_sample),
]
"""A package, where it is called, its function, and what a user does to get there."""


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub that names a commit and has its files in a folder."""
    for name in OFFLINE:
        monkeypatch.delenv(name, raising=False)
    commit = SimpleNamespace(siblings=(), sha="c0ffee")
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda *_, **__: commit)
    folder = str(tmp_path / commit.sha)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: folder)


@pytest.mark.usefixtures("hub", "own_cache")
@pytest.mark.parametrize("called", CALLED, ids="{0[0]} {0[2]}".format)
def test_a_package_is_called(called, tmp_path, site, monkeypatch):
    _, place, function, path = called
    monkeypatch.setattr(function, reached)
    with pytest.raises(Reached) as caught:
        path(tmp_path, site)
    frames = [frame for frame, _ in walk_tb(caught.tb)]
    names = [f"{one.f_globals['__name__']}:{one.f_code.co_qualname}" for one in frames]
    assert [name for name in names if name.startswith("harness")][-1] == place
