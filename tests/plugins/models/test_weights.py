"""What tells one checkpoint from another without reading it."""

import json
import os
import struct

import pytest
from harness_models.server.weights import (
    cached_without_template,
    checked_folder,
    commit_of,
    folder_identity,
    has_chat_template,
    longest_context,
)

from harness.base.errors import ModelError

HEADER = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
WEIGHTS = struct.pack("<Q", len(HEADER)) + HEADER + b"\0" * 4


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text('{"max_position_embeddings": 4096}')
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    os.utime(folder / "model.safetensors", (1, 1))
    return folder


def test_a_folder_is_the_same_wherever_it_lies_and_whatever_its_readme_says(folder, tmp_path):
    before = folder_identity(folder)
    (folder / "README.md").write_text("trained by night")
    assert folder_identity(folder.rename(tmp_path / "elsewhere")) == before


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Makes the folder of a repository in an empty cache of the hub."""

    def make(*, offline):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        return tmp_path / "models--org--name"

    return make


@pytest.mark.parametrize(
    ("name", "content", "time"),
    [
        ("model.safetensors", WEIGHTS, 2),
        ("model.safetensors", WEIGHTS.replace(b'"w"', b'"v"'), 1),
        ("model.safetensors", WEIGHTS + b"\0", 1),
        ("config.json", b"{}", 1),
        ("chat_template.jinja", b"{{ messages }}", 1),
    ],
    ids=["another time", "another tensor", "longer", "configured", "with a template"],
)
def test_a_folder_that_changed_is_another_model(folder, name, content, time):
    os.utime(folder / "config.json", (1, 1))
    before = folder_identity(folder)
    (folder / name).write_bytes(content)
    os.utime(folder / name, (time, time))
    assert folder_identity(folder) != before


def test_a_folder_is_told_from_a_name_of_the_hub(folder):
    assert checked_folder(str(folder), argument="pretrained") == folder
    assert checked_folder("Qwen/Qwen3-8B", argument="pretrained") is None
    for text in ("./model", "a/b/c"):
        with pytest.raises(ModelError) as caught:
            checked_folder(text, argument="pretrained")
        assert caught.value.found == f"pretrained={text}"


def test_a_folder_without_a_config_is_no_model(tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ModelError, match="contains no model") as caught:
        checked_folder(str(tmp_path), argument="pretrained")
    assert caught.value.found == "notes.txt"


@pytest.mark.parametrize(
    ("name", "content", "has"),
    [
        ("chat_template.jinja", "x", True),
        ("tokenizer_config.json", '{"chat_template": "x"}', True),
        ("tokenizer_config.json", '{"eos_token": "x"}', False),
        ("other.json", "{}", False),
    ],
)
def test_where_a_chat_template_may_stand(tmp_path, name, content, has):
    (tmp_path / name).write_text(content)
    assert has_chat_template(tmp_path) == has


@pytest.mark.parametrize(
    ("config", "length"),
    [
        ('{"max_position_embeddings": 4096}', 4096),
        ('{"text_config": {"max_position_embeddings": 131072}}', 131072),
        ("{}", None),
        ("broken", None),
    ],
)
def test_the_longest_context_that_a_config_tells(folder, config, length):
    (folder / "config.json").write_text(config)
    assert longest_context(str(folder)) == length


def test_a_commit_stands_for_itself():
    assert commit_of("org/name", "9f" * 20) == "9f" * 20


NO_TEMPLATE = '{"eos_token": "x"}'
ABSENT = ".no_exist/ab12/chat_template.jinja"
"""How the cache keeps that a repository has no such file."""


@pytest.mark.parametrize(
    ("settings", "other", "offline", "without"),
    [
        (NO_TEMPLATE, None, True, True),
        (NO_TEMPLATE, None, False, False),
        (NO_TEMPLATE, ABSENT, False, True),
        (NO_TEMPLATE, "snapshots/ab12/chat_template.jinja", True, False),
        ('{"chat_template": "x"}', None, True, False),
        (None, None, True, False),
    ],
)
def test_a_commit_is_without_a_template_only_if_the_cache_can_tell(
    hub, settings, other, offline, without
):
    cache = hub(offline=offline)
    told = cache / "snapshots" / "ab12" / "tokenizer_config.json"
    for file, content in ((told, settings), (other and cache / other, "")):
        if file is not None and content is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
    found = cached_without_template("org/name", "ab12")
    assert found == (told if without else None)
