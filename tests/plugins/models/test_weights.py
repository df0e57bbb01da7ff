"""Weights: what tells one checkpoint from another, whether it can be had, fits and thinks."""

import json
import os
import struct

import pytest
from harness_models import hf_args, openai, vllm_args
from harness_models.chat_template import lets_think
from harness_models.server import fits
from harness_models.server.fits import FETCH, weights_findings
from harness_models.server.gpus import GpuMemory
from harness_models.server.weights import (
    CONTEXT,
    Weights,
    checked_folder,
    commit_of,
    folder_identity,
    weights_think,
)
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError
from huggingface_hub.hf_api import ModelInfo

from harness.base.errors import ModelError
from harness.contracts.finding import bad, doubtful, good
from harness.contracts.model import ModelSettings

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


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The hub's cache, which is empty."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub" / "models--org--name"


@pytest.fixture
def hub(cache, monkeypatch):
    """Has the hub hold these numbers of parameters, or refuse with this error."""

    def hold(parameters, refusal=None):
        def check(self, name):
            if refusal is not None:
                raise refusal

        about = {"safetensors": {"parameters": parameters, "total": 0}} if parameters else {}
        monkeypatch.setattr("huggingface_hub.HfApi.auth_check", check)
        info = ModelInfo(id="org/name", siblings=[], **about)
        monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *_, **__: info)

    return hold


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
def test_a_folder_is_the_same_wherever_it_lies_until_it_changes(folder, name, content, time):
    os.utime(folder / "config.json", (1, 1))
    before = folder_identity(folder)
    folder = folder.rename(folder.with_name("elsewhere"))
    (folder / "README.md").write_text("trained by night")
    assert folder_identity(folder) == before
    (folder / name).write_bytes(content)
    os.utime(folder / name, (time, time))
    assert folder_identity(folder) != before


def test_a_folder_is_told_from_a_name_of_the_hub(folder):
    assert checked_folder(str(folder), argument="pretrained") == folder
    assert checked_folder("Qwen/Qwen3-8B", argument="pretrained") is None
    assert commit_of("org/name", "9f" * 20) == "9f" * 20
    for text in ("./model", "a/b/c"):
        with pytest.raises(ModelError, match="folder of weights does not exist") as caught:
            checked_folder(text, argument="pretrained")
        assert caught.value.found == f"pretrained={text}"
    (folder / "config.json").rename(folder / "notes.txt")
    with pytest.raises(ModelError, match="contains no model") as caught:
        checked_folder(str(folder), argument="pretrained")
    assert caught.value.found == "model.safetensors, notes.txt"


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
    assert Weights(str(folder)).number(CONTEXT) == length


NO_TEMPLATE = '{"eos_token": "x"}'


@pytest.mark.parametrize(
    ("settings", "other", "offline", "without"),
    [
        (NO_TEMPLATE, None, True, True),
        (NO_TEMPLATE, None, False, False),
        # So the cache keeps that a repository has no such file.
        (NO_TEMPLATE, ".no_exist/ab12/chat_template.jinja", False, True),
        (NO_TEMPLATE, "snapshots/ab12/chat_template.jinja", True, False),
        ('{"chat_template": "x"}', None, True, False),
        (None, None, True, False),
    ],
)
def test_a_commit_may_lack_a_template(cache, monkeypatch, *, settings, other, offline, without):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
    told = cache / "snapshots" / "ab12" / "tokenizer_config.json"
    for file, content in ((told, settings), (other and cache / other, "")):
        if file is not None and content is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
    assert Weights(NAME, commit="ab12")._without_template() == (told if without else None)


NAME = "org/name"
LLAMA = {"BF16": 70_553_706_496}
"""141.1 GB: two bytes each."""

QWEN = {"BF16": 8_190_735_360}
"""16.4 GB."""


def memory(share=0.92, count=1):
    return GpuMemory(name="vllm:name", count=count, share=share)


def error(kind):
    """An error of the hub's client, which needs a response to be made in the usual way."""
    return kind.__new__(kind)


def found(shards=1, *, on=None, folder=None, **options):
    wanted = on or memory(count=shards)
    return weights_findings(Weights(NAME, folder), memory=wanted, shards=shards, **options)


@pytest.mark.parametrize(
    ("parameters", "gpus", "shards", "expected"),
    [
        (QWEN, 1, 1, good("weights", "16.4 GB of weights on the hub")),
        (
            LLAMA, 1, 1,
            bad(
                "weights", "141.1 GB of weights do not fit on 1 GPU of 79.6 GiB",
                "use quantized weights (FP8, AWQ, GPTQ), or more GPUs",
            ),
        ),
        # 141.1 GB on two: 70.6 each, of 78.7 that an engine takes: no room for prompts.
        (
            LLAMA, 8, 1,
            bad(
                "weights", "141.1 GB of weights do not fit on 1 of the 8 GPUs with 79.6 GiB",
                "set tensor_parallel_size=4",
            ),
        ),
        (LLAMA, 8, 4, good("weights", "141.1 GB of weights on the hub")),
        (LLAMA, 2, 2, good("weights", "141.1 GB of weights on the hub")),
        # 35.3 GB of four-bit weights, packed in whole numbers of four bytes.
        ({"I32": 8_819_213_312}, 1, 1, good("weights", "35.3 GB of weights on the hub")),
        # Stored in single precision, and loaded in half of it.
        ({"F32": 30_000_000_000}, 1, 1, good("weights", "60.0 GB of weights on the hub")),
    ],
)  # fmt: skip
def test_weights_are_set_against_the_gpus_there(smi, hub, *, parameters, gpus, shards, expected):
    smi(gpus)
    hub(parameters)
    assert found(shards) == [expected]


def test_weights_are_set_against_the_chosen_gpus_and_are_a_doubt_if_they_shrink(smi, hub):
    smi(8)
    hub(LLAMA)
    chosen = GpuMemory(name="vllm:name", count=1, share=0.92, chosen={"CUDA_VISIBLE_DEVICES": "3"})
    (only,) = found(on=chosen, shrunk=True)
    says = "141.1 GB of weights do not fit on 1 GPU of 79.6 GiB"
    assert (only.state, only.says) == ("doubtful", says)


def test_gated_weights_are_told_after_their_size_and_a_hub_that_is_ill_is_a_doubt(smi, hub):
    smi(1)
    hub(LLAMA, refusal=error(GatedRepoError))
    assert [(one.state, one.says) for one in found()] == [
        ("bad", "141.1 GB of weights do not fit on 1 GPU of 79.6 GiB"),
        ("bad", "the hub restricts access to these weights"),
    ]
    hub(QWEN, refusal=error(RepositoryNotFoundError))
    assert found()[1] == bad(
        "weights",
        "the hub has no such repository, or you have no access",
        "accept their licence on the hub, and set HF_TOKEN",
    )
    hub(None, refusal=error(HfHubHTTPError))
    assert found() == [
        doubtful(
            "weights",
            "the hub cannot be asked about the weights: HfHubHTTPError",
            "the start fails if they are not in the cache",
        )
    ]
    hub(None, refusal=UnicodeEncodeError("ascii", "é", 0, 1, "a token"))
    said = ("doubtful", "the hub cannot be asked about the weights: UnicodeEncodeError")
    assert [(one.state, one.says) for one in found()] == [said]
    hub(None)
    assert found() == [doubtful("weights", "the size of the weights is not known")]


def test_weights_that_are_not_in_the_cache_prevent_a_run_where_no_hub_is(smi, hub, monkeypatch):
    smi(1)
    hub(None, refusal=OSError("no route"))
    lacks = "org/name is not in the cache, and {}".format
    assert found() == [bad("weights", lacks("the hub cannot be reached"), FETCH)]
    assert [one.state for one in found(elsewhere=True)] == ["doubtful"]
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert found() == [bad("weights", lacks("HF_HUB_OFFLINE is set"), FETCH)]


@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("meta-llama/Llama-3.3-70B-Instruct", " (about 140 GB)"),
        ("Qwen/Qwen3-30B-A3B", " (about 60 GB)"),
        ("mistralai/Mixtral-8x7B-v0.1", ""),
        ("org/Llama-3.3-70B-AWQ", ""),
        ("org/name", ""),
    ],
)
def test_the_size_of_weights_out_of_reach_is_read_from_their_name(hub, name, about):
    hub(None, refusal=OSError("no route"))
    (only,) = weights_findings(Weights(name))
    assert only.says == f"{name}{about} is not in the cache, and the hub cannot be reached"


def test_weights_in_the_cache_need_no_hub_if_none_is_missing(smi, hub, cache):
    """A GGUF file or a checkpoint of Mistral's has no config.json beside it."""
    smi(1)
    hub(None, refusal=OSError("no route"))
    folder = cache / "snapshots" / ("a" * 40)
    folder.mkdir(parents=True)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("a" * 40)
    (folder / "name-Q4_K_M.gguf").write_bytes(b"\0" * 100_000_000)
    one = [good("weights", "0.1 GB of weights on this machine")]
    assert found() == one
    assert weights_findings(Weights(f"{NAME}:q4_k_m")) == one
    (other,) = weights_findings(Weights(f"{NAME}:Q8_0"))
    assert (other.state, "is not in the cache" in other.says) == ("bad", True)

    hub(QWEN, refusal=error(GatedRepoError))
    index = {"weight_map": {"layer.0": "a.safetensors", "layer.1": "b.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for name in ("a.safetensors", "consolidated.safetensors"):
        (folder / name).write_bytes(b"\0" * 100_000_000)
    assert [one.state for one in found()] == ["good", "bad"]
    (folder / "b.safetensors").write_bytes(b"\0" * 100_000_000)
    two = [good("weights", "0.2 GB of weights on this machine")]
    assert found() == found(folder=folder) == two, "only the files of the index are counted"
    (folder / "config.json").write_text('{"dtype": "float32"}')
    assert found() == one


def test_weights_without_an_index_are_as_large_as_their_files(tmp_path):
    assert Weights(str(tmp_path), tmp_path).size() is None
    for name, size in (("one.safetensors", 5), ("two.safetensors", 3), ("pytorch_model.bin", 1)):
        (tmp_path / name).write_bytes(b"1" * size)
    assert Weights(str(tmp_path), tmp_path).size() == 8
    file = tmp_path / "small.gguf"
    file.write_bytes(b"12")
    assert Weights(str(file), file).size() == 2


def test_without_gpus_the_memory_of_the_machine_counts(hub, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    pages = {"SC_PHYS_PAGES": 4 * 2**20, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(fits.os, "sysconf", pages.__getitem__)
    hub(LLAMA)
    assert weights_findings(Weights(NAME)) == [
        doubtful(
            "weights",
            "141.1 GB of weights do not fit in the 16.0 GiB of memory here",
            "use smaller weights",
        )
    ]


PLAIN = (
    "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}AI:{% endif %}"
)
SWITCHED = PLAIN + (
    "{% if enable_thinking is defined and enable_thinking is false %}"
    "{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}"
)
"""As in Qwen3: thinking is on, and switching it off ends it in the prompt."""

DEEPSEEK = PLAIN + "{% if thinking is defined and thinking %}<think>{% else %}</think>{% endif %}"
"""As in DeepSeek V3.1: thinking is off, and switching it on begins it in the prompt."""


@pytest.mark.parametrize(
    ("source", "variables", "thinks"),
    [
        (PLAIN, {}, False),
        (SWITCHED, {}, True),
        (SWITCHED, {"enable_thinking": True}, True),
        (SWITCHED, {"enable_thinking": False}, False),
        (DEEPSEEK, {}, False),
        (DEEPSEEK, {"thinking": True}, True),
        (PLAIN + "{% if add_generation_prompt %}<think>\n{% endif %}", {}, True),
        (SWITCHED + "{{ strftime_now('%Y') }}", {}, True),
        (SWITCHED + "{{ strftime_now('%Y') }}", {"enable_thinking": False}, False),
        (SWITCHED + "{% oops %}", {}, True),
        (SWITCHED + "{{ eos_token }}", {}, True),
    ],
)
def test_a_template_shows_whether_it_lets_a_model_think(source, variables, thinks):
    assert lets_think(source, variables) is thinks


@pytest.fixture
def weights(tmp_path):
    """Makes the arguments of a folder of weights with these files."""

    def make(files=None, read=vllm_args.read_args, **given):
        for name, text in (files or {}).items():
            (tmp_path / name).write_text(text)
        return read(ModelSettings(args={"pretrained": str(tmp_path), **given}))

    return make


def named(template):
    return json.dumps({"chat_template": template})


@pytest.mark.parametrize(
    "files",
    [
        {"chat_template.jinja": SWITCHED, "tokenizer_config.json": named(PLAIN)},
        {"chat_template.json": named(SWITCHED)},
        {"tokenizer_config.json": named(SWITCHED)},
        {
            "tokenizer_config.json": named(
                [{"name": "tools", "template": PLAIN}, {"name": "default", "template": SWITCHED}]
            )
        },
    ],
)
@pytest.mark.parametrize("read", [vllm_args.read_args, hf_args.read_args])
def test_weights_think_if_their_template_does(weights, files, read):
    args = weights(files, read)
    assert weights_think(args, Weights(args.model)) is True
    off = weights(files, read, chat_template_kwargs="enable_thinking=false")
    assert weights_think(off, Weights(off.model)) is False


@pytest.mark.parametrize(
    ("files", "given", "thinks"),
    [
        ({"tokenizer_config.json": '{"model_max_length": 4096}'}, {}, None),
        (
            {"chat_template.jinja": SWITCHED, "own.jinja": PLAIN}, {"chat_template": "own.jinja"},
            False,
        ),
        ({"chat_template.jinja": PLAIN}, {"reasoning_parser": "deepseek_r1"}, True),
        (
            {}, {"reasoning_parser": "qwen3", "chat_template_kwargs": "enable_thinking=false"},
            False,
        ),
        ({"chat_template.jinja": PLAIN}, {"thinking": "true"}, True),
        ({"chat_template.jinja": SWITCHED}, {"thinking": "false"}, False),
    ],
)  # fmt: skip
def test_what_is_given_beats_a_template(weights, tmp_path, monkeypatch, *, files, given, thinks):
    monkeypatch.chdir(tmp_path)
    args = weights(files, **given)
    assert weights_think(args, Weights(args.model)) is thinks
    assert "thinking" not in args.engine
    other = tmp_path / "tokenizer"
    other.mkdir()
    (other / "chat_template.jinja").write_text(PLAIN)
    args = weights(files)
    assert weights_think(args, Weights(args.model), str(other)) is False


def test_a_served_model_knows_only_what_it_is_told_and_is_the_same_either_way(tmp_path):
    def model(**given):
        return openai.make(ModelSettings(args={"model": "m", **given}))

    for word, thinks in (("auto", None), ("true", True), ("false", False)):
        assert model(thinking=word).thinks() is thinks
        assert model(thinking=word).identity == model().identity
    assert model().thinks() is None
    assert model(endpoint="completions").thinks() is False
    file = tmp_path / "chat.jinja"
    file.write_text(SWITCHED)
    assert model(endpoint="completions", chat_template=str(file)).thinks() is True
