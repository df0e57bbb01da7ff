"""Whether weights can be had and fit, with GPUs that a made-up `nvidia-smi` tells."""

import json

import pytest
from harness_models.server import fits
from harness_models.server.fits import weights_findings
from harness_models.server.gpus import GpuMemory
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError
from huggingface_hub.hf_api import ModelInfo

from harness.contracts.finding import bad, doubtful, good

NAME = "org/name"
LLAMA = {"BF16": 70_553_706_496}
"""141.1 GB: two bytes each."""

QWEN = {"BF16": 8_190_735_360}
"""16.4 GB."""


def memory(share=0.92, count=1):
    return GpuMemory(name="vllm:name", count=count, share=share)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """Has the hub hold these numbers of parameters, or refuse with this error."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))

    def hold(parameters, refusal=None, siblings=()):
        def check(self, name):
            if refusal is not None:
                raise refusal

        about = {"safetensors": {"parameters": parameters, "total": 0}} if parameters else {}
        monkeypatch.setattr("huggingface_hub.HfApi.auth_check", check)
        monkeypatch.setattr(
            "huggingface_hub.HfApi.model_info",
            lambda self, name, **options: ModelInfo(id=name, siblings=list(siblings), **about),
        )

    return hold


def error(kind):
    """An error of the hub's client, which needs a response to be made in the usual way."""
    return kind.__new__(kind)


def h100s(count):
    return "".join(
        f"{n}, GPU-aaaa{n}-0000, NVIDIA H100 80GB HBM3, 81559, 4, 80994\n" for n in range(count)
    )


def found(shards=1, *, on=None, **options):
    given = {"folder": None, "revision": None, **options}
    return weights_findings(NAME, memory=on or memory(count=shards), shards=shards, **given)


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
def test_weights_are_set_against_the_gpus_that_are_there(
    smi, hub, *, parameters, gpus, shards, expected
):
    smi(h100s(gpus))
    hub(parameters)
    assert found(shards) == [expected]


def test_weights_are_set_against_the_chosen_gpus_and_are_a_doubt_if_they_shrink(smi, hub):
    smi(h100s(8))
    hub(LLAMA)
    chosen = GpuMemory(name="vllm:name", count=1, share=0.92, chosen={"CUDA_VISIBLE_DEVICES": "3"})
    (only,) = found(on=chosen)
    assert (only.state, only.says) == (
        "bad", "141.1 GB of weights do not fit on 1 GPU of 79.6 GiB",
    )  # fmt: skip
    assert [one.state for one in found(shrunk=True)] == ["doubtful"]


def test_gated_weights_are_told_after_their_size(smi, hub):
    smi(h100s(1))
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


FETCH = "fetch the weights where there is a network, or give pretrained=FOLDER"


def test_a_hub_that_is_ill_is_a_doubt(smi, hub):
    smi(h100s(1))
    hub(None, refusal=error(HfHubHTTPError))
    assert found() == [
        doubtful(
            "weights",
            "the hub cannot be asked about the weights: HfHubHTTPError",
            "the start fails if they are not in the cache",
        )
    ]
    hub(None, refusal=UnicodeEncodeError("ascii", "é", 0, 1, "a token"))
    (only,) = found()
    assert only.says == "the hub cannot be asked about the weights: UnicodeEncodeError"
    assert only.state == "doubtful"
    hub(None)
    assert found() == [doubtful("weights", "the size of the weights is not known")]


def test_weights_that_are_not_in_the_cache_prevent_a_run_where_no_hub_is(smi, hub, monkeypatch):
    smi(h100s(1))
    hub(None, refusal=OSError("no route"))
    assert found() == [
        bad("weights", "org/name is not in the cache, and the hub cannot be reached", FETCH)
    ]
    assert [one.state for one in found(elsewhere=True)] == ["doubtful"]
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert found() == [
        bad("weights", "org/name is not in the cache, and HF_HUB_OFFLINE is set", FETCH)
    ]


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
    (only,) = weights_findings(name, folder=None, revision=None)
    assert only.says == f"{name}{about} is not in the cache, and the hub cannot be reached"


def test_weights_of_one_file_in_the_cache_need_no_hub(smi, hub, tmp_path):
    """A GGUF file or a checkpoint of Mistral's has no config.json beside it."""
    smi(h100s(1))
    hub(None, refusal=OSError("no route"))
    folder = tmp_path / "hub" / "models--org--name" / "snapshots" / ("a" * 40)
    folder.mkdir(parents=True)
    (folder.parents[1] / "refs").mkdir()
    (folder.parents[1] / "refs" / "main").write_text("a" * 40)
    (folder / "name-Q4_K_M.gguf").write_bytes(b"\0" * 100_000_000)
    expected = [good("weights", "0.1 GB of weights on this machine")]
    assert found() == expected
    assert weights_findings(f"{NAME}:q4_k_m", folder=None, revision=None) == expected
    (other,) = weights_findings(f"{NAME}:Q8_0", folder=None, revision=None)
    assert (other.state, "is not in the cache" in other.says) == ("bad", True)


def checkpoint(folder, names, size=1_500_000, missing=()):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {f"layer.{n}": name for n, name in enumerate(names)}})
    )
    for name in names:
        if name not in missing:
            (folder / name).write_bytes(b"\0" * size)
    (folder / "consolidated.safetensors").write_bytes(b"\0" * 9_000_000)
    return folder


def test_the_files_of_the_index_are_counted_and_others_are_not(smi, tmp_path):
    smi(h100s(1))
    folder = checkpoint(tmp_path / "weights", ["a.safetensors", "b.safetensors"], 100_000_000)
    assert found(folder=folder) == [good("weights", "0.2 GB of weights on this machine")]
    (folder / "config.json").write_text('{"dtype": "float32"}')
    assert found(folder=folder) == [good("weights", "0.1 GB of weights on this machine")]


def test_weights_in_the_cache_need_no_hub_if_none_is_missing(smi, hub, tmp_path):
    smi(h100s(1))
    hub(QWEN, refusal=error(GatedRepoError))
    commit = "a" * 40
    cache = tmp_path / "hub" / "models--org--name"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs" / "main").write_text(commit)
    names = ["a.safetensors", "b.safetensors"]
    folder = checkpoint(cache / "snapshots" / commit, names, missing=["b.safetensors"])
    assert [one.state for one in found(revision=commit)] == ["good", "bad"]
    (folder / "b.safetensors").write_bytes(b"\0" * 100_000_000)
    assert found(revision=commit) == [good("weights", "0.1 GB of weights on this machine")]


def test_without_gpus_the_memory_of_the_machine_counts(hub, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    pages = {"SC_PHYS_PAGES": 4 * 2**20, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(fits.os, "sysconf", pages.__getitem__)
    hub(LLAMA)
    assert weights_findings(NAME, folder=None, revision=None) == [
        doubtful(
            "weights",
            "141.1 GB of weights do not fit in the 16.0 GiB of memory here",
            "use smaller weights",
        )
    ]
