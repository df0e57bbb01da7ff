"""Which GPUs the engines of a vLLM use: made-up GPUs, and weights of real sizes."""

import json
import math
import sys

import pytest
from builders.runs import make_task
from builders.stages import make_benchmark, make_stage
from harness_models.server.gpus import parallelism
from harness_models.vllm import make

from harness.base.errors import UsageError
from harness.contracts.model import ModelSettings
from harness.contracts.task import RoleSpec
from harness.pipeline.roles import RoleBinder
from harness.pipeline.settings import RunSettings
from harness.registry import load_plugins

H100 = 81559 * 2**20
LLAMA_70B = 141_107_412_992
"""The size of Llama-3.3-70B-Instruct in bfloat16."""

QWEN_8B = 16_381_470_720


@pytest.mark.parametrize(
    ("weights", "gpus", "heads", "tensor"),
    [
        # 141 GB and a share of 0.92 of 85.5 GB, 78.7 GB: two hold it with 8 GB left on each, four
        # with 43 GB.
        (LLAMA_70B, 1, None, None),
        (LLAMA_70B, 2, None, 2),
        (LLAMA_70B, 4, None, 4),
        (LLAMA_70B, 8, None, 4),
        (QWEN_8B, 1, None, 1),
        (QWEN_8B, 8, None, 1),
        (QWEN_8B, 0, None, None),
        (LLAMA_70B, 7, None, 4),
        (LLAMA_70B, 8, 64, 4),
        (LLAMA_70B, 8, 42, 2),  # no four divides them
    ],
)
def test_weights_take_as_few_gpus_as_hold_them_with_room_to_spare(weights, gpus, heads, tensor):
    assert parallelism(weights, gpus, H100, 0.92, heads=heads) == tensor


@pytest.fixture
def node(cuda, smi, folder, package):
    """A model of these weights on a node with eight H100s, or as many as are wanted."""

    def model(weights=QWEN_8B, count=8, concurrency=None, **given):
        smi(count)
        weigh(folder, weights)
        given = {"pretrained": str(folder), "python": sys.executable, "max_model_len": "9", **given}
        return make(ModelSettings(args=given, concurrency=concurrency))

    return model


def weigh(folder, size):
    """Say in the folder how large its weights are."""
    index = {"metadata": {"total_size": size}, "weight_map": {}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def flags(model):
    command = list(model.server_command())
    names = ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size")
    return {name[2:-14]: command[command.index(name) + 1] for name in names if name in command}


TWO_BY_TWO = {"tensor_parallel_size": "2", "pipeline_parallel_size": "2"}


@pytest.mark.parametrize(
    ("given", "sizes", "needed", "said"),
    [
        ({}, {"data": "8"}, 1, "8 engines with 1 GPU each, of 8"),
        ({"weights": LLAMA_70B}, {"tensor": "4", "data": "2"}, 4,
         "2 engines with 4 GPUs each, of 8"),
        ({"weights": LLAMA_70B, "count": 2}, {"tensor": "2"}, 2, "1 engine with 2 GPUs, of 2"),
        ({"weights": 10**13}, {"tensor": "8"}, 8, "1 engine with 8 GPUs, of 8"),
        ({"tensor_parallel_size": "3"}, {"tensor": "3", "data": "2"}, 3,
         "2 engines with 3 GPUs each, of 8, and 2 are left idle"),
        (TWO_BY_TWO, {"tensor": "2", "pipeline": "2", "data": "2"}, 4,
         "2 engines with 4 GPUs each, of 8"),
        ({**TWO_BY_TWO, "data_parallel_size": "2"}, {"tensor": "2", "pipeline": "2", "data": "2"},
         8, "2 engines with 4 GPUs each, of 8"),
        ({"data_parallel_size": "1"}, {"data": "1"}, 1,
         "1 engine with 1 GPU, of 8, and 7 are left idle"),
        ({"gpus": "0,2-3"}, {"data": "3"}, 3, "3 engines with 1 GPU each, of 3"),
        ({"weights": LLAMA_70B, "pipeline_parallel_size": "2"},
         {"tensor": "2", "pipeline": "2", "data": "2"}, 4, "2 engines with 4 GPUs each, of 8"),
        # A single GPU, and engines that are placed by hand.
        ({"count": 1}, {}, 1, None),
        ({"data_parallel_size": "2", "nnodes": "2"}, {"data": "2"}, 2, None),
    ],
)  # fmt: skip
def test_all_gpus_are_used_and_it_is_said_that_not_all_are_needed(node, given, sizes, needed, said):
    model = node(**given)
    assert flags(model) == sizes
    assert model.engine.notes == ((said,) if said else ())
    assert model.engine.memory.count == math.prod(map(int, sizes.values()))
    assert model.gpus == needed


def test_chosen_gpus_are_shown_to_the_server_alone_and_held_alone(node):
    model = node(gpus="4-7")
    assert model.occupies == "gpu:4,5,6,7"
    shown = {"CUDA_VISIBLE_DEVICES": "4,5,6,7", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert model.engine.environment == shown
    assert [gpu.index for gpu in model.engine.memory.look()] == ["4", "5", "6", "7"]
    for text, numbers in (("0-3", "0,1,2,3"), ("4", "4"), ("0,2-3", "0,2,3"), ("1,1", "1")):
        assert node(gpus=text).occupies == f"gpu:{numbers}"


def test_all_engines_are_filled_and_how_many_there_are_decides_no_answer(node):
    assert node().occupies == "gpu"
    assert node().concurrency == 8 * 256 + 256
    assert node(max_num_seqs="64").concurrency == 8 * 64 + 64
    assert node(concurrency=5).concurrency == 5
    for other in ({"count": 1}, {"preset": "h100"}, {"gpus": "0-3"}):
        assert node(**other).identity == node().identity


def test_hidden_gpus_or_those_of_a_vllm_for_cpus_are_not_chosen(node, package, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    assert flags(node()) == {"data": "2"}
    with pytest.raises(UsageError, match="names a GPU that this run cannot use") as caught:
        node(gpus="3-4")
    assert caught.value.found == "gpus=3,4"
    assert caught.value.expected == "some of 2, 3, which CUDA_VISIBLE_DEVICES=2,3 shows"
    (package.parent / "torch" / "version.py").write_text("cuda: Optional[str] = None\n")
    with pytest.raises(UsageError) as caught:
        node(gpus="2")
    assert caught.value.found == "gpus=2"


def test_a_judge_named_by_weights_takes_the_candidates_place_not_its_flags(node, tmp_path):
    """With an AWQ candidate's flags, the run would end when the judge opens."""
    node()
    judge = tmp_path / "Judge-70B"
    judge.mkdir()
    (judge / "config.json").write_text("{}")
    (judge / "chat_template.jinja").write_text("{{ messages }}")
    weigh(judge, LLAMA_70B)
    own = {"quantization": "awq", "trust_remote_code": "true", "kv_cache_dtype": "fp8", "seed": "3"}
    place = {"python": sys.executable, "gpu_memory_utilization": "0.9"}
    given = {"pretrained": str(tmp_path / "tiny"), "tensor_parallel_size": "1", **place, **own}
    asked = RunSettings(tasks=("t",), model="vllm", model_args=given)
    bench = make_benchmark(make_stage("mark", roles=("candidate",), judges=("judge",)))
    wanted = make_task(roles={"judge": RoleSpec(default=str(judge))})
    bound = RoleBinder(asked, load_plugins()).bind(wanted, bench, bench.stages, bound={})
    candidate, second = (bound[role].model for role in ("candidate", "judge"))
    for name in own:
        flag = f"--{name.replace('_', '-')}"
        assert flag in candidate.server_command() and flag not in second.server_command()
    assert "--gpu-memory-utilization 0.9" in " ".join(second.server_command())
    assert flags(candidate) == {"tensor": "1", "data": "8"}
    assert flags(second) == {"tensor": "4", "data": "2"}
