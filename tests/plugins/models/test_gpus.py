"""The memory of GPUs, as a made-up `nvidia-smi` tells it: the words of the real one, from files."""

import os

import pytest
from builders.requests import make_request
from harness_models.server.gpus import (
    Gpu,
    GpuMemory,
    GpusUnknown,
    chosen_by,
    gpu_findings,
    look_at,
    visible,
)

from harness.base.errors import ModelError
from harness.contracts.finding import bad, doubtful, good
from harness.contracts.identity import Identity
from harness.contracts.model import CallError

ONE = "GPU-4a8e1d0c-0000-1111-2222-333344445555"
TWO = "GPU-9b7f2e1d-0000-1111-2222-333344445555"
FREE = f"0, {ONE}, NVIDIA H100 80GB HBM3, 81559, 4, 80994\n"
IDLE = f"1, {TWO}, NVIDIA H100 80GB HBM3, 81559, 4, 80994\n"
TAKEN = f"0, {ONE}, NVIDIA H100 80GB HBM3, 81559, 60004, 20994\n"
HALF_TAKEN = f"0, {ONE}, NVIDIA H100 80GB HBM3, 81559, 10004, 70994\n"
GONE = 2**22 + 1
"""A process id that no process has."""


def memory(**changes):
    return GpuMemory(**{"name": "vllm:tiny", "count": 1, "share": 0.92, "patience": 0.0, **changes})


def silent(line):
    raise AssertionError(line)


@pytest.fixture
async def before(smi):
    """The use of a free GPU before a start."""
    smi(FREE)
    return await memory().before_start(silent)


@pytest.mark.parametrize(
    ("held", "apps", "found", "hint"),
    [
        (
            "60004, 20994", f"4711, {ONE}, 59990, /opt/night, train/python\n",
            "process 4711 (/opt/night, train/python) holds 59990 MiB",
            "end the processes that hold it, or set gpu_memory_utilization=0.23",
        ),
        ("60004, 20994", "", "no visible process", "set gpu_memory_utilization=0.23"),
        (
            "79000, 2000", "", "no visible process",
            "choose another GPU with CUDA_VISIBLE_DEVICES",
        ),
    ],
)  # fmt: skip
async def test_who_holds_the_gpus_memory_is_named_with_what_helps(smi, *, held, apps, found, hint):
    smi(TAKEN.replace("60004, 20994", held), apps)
    with pytest.raises(ModelError) as caught:
        await memory().before_start(silent)
    assert caught.value.where == "vllm:tiny on GPU 0 (NVIDIA H100 80GB HBM3)"
    assert caught.value.problem == (
        f"too little of the GPU's memory is free: {held.split(', ')[1]} of 81559 MiB, and "
        "gpu_memory_utilization=0.92 needs 75035"
    )
    assert (caught.value.found, caught.value.hint) == (found, hint)
    if held == "60004, 20994":
        assert await memory(share=0.25).before_start(silent) is not None


async def test_only_the_gpus_that_the_engine_takes_have_to_be_free(smi, monkeypatch):
    smi(IDLE.replace("1, ", "0, ", 1) + TAKEN.replace("0, ", "1, ", 1))
    assert await memory().before_start(silent) is not None
    with pytest.raises(ModelError, match="GPU 1"):
        await memory(count=2).before_start(silent)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with pytest.raises(ModelError, match="GPU 1"):
        await memory().before_start(silent)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("echo NVIDIA-SMI has failed because it could not reach the driver.; exit 9",
         "nvidia-smi: NVIDIA-SMI has failed because it could not reach the driver."),
        (
            f"echo '0, {ONE}, NVIDIA GB10, [N/A], [N/A], [N/A]'",
            "nvidia-smi does not list the memory of GPU 0 (NVIDIA GB10)",
        ),
        (
            f"echo '0, {ONE}, NVIDIA GH200 480GB, 97871, 90000, 7000'",
            "nvidia-smi does not list the memory of GPU 0 (NVIDIA GH200 480GB)",
        ),
        ("echo 0 N/A", "nvidia-smi lists GPUs in an unknown format"),
    ],
)  # fmt: skip
async def test_gpus_that_cannot_be_looked_at_are_said_and_hold_nothing_up(smi, program, why):
    smi("").write_text(f"#!/bin/sh\n{program}\n")
    told = []
    assert await memory().before_start(told.append) is None
    assert told == [f"vllm:tiny: cannot check the GPU's free memory: {why}"]


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ((FREE,), (FREE.replace(" 4, 80994", " 200, 80798"),)),
        ((FREE,), (TAKEN, f"{os.getpid()}, {ONE}, 59990, python\n")),
        ((HALF_TAKEN, f"{GONE}, {ONE}, 10000, other\n"), (TAKEN, f"{GONE}, {ONE}, 60000, other\n")),
    ],
    ids=["within the margin", "taken by others meanwhile", "held by others from the start"],
)
async def test_memory_that_is_back_but_for_what_others_hold_is_proven(smi, then, now):
    smi(*then)
    before = await memory(share=0.5).before_start(silent)
    smi(*now)
    await memory().wait_until_freed(before, ours=[GONE + 1])


async def test_memory_that_comes_back_after_a_while_is_waited_for(smi, before):
    program = smi(TAKEN)
    program.with_name("later").write_text(FREE)
    slow = """
echo look >> "$0.looks"
[ $(wc -l < "$0.looks") -gt 2 ] && cp "${0%/*}/later" "$0.gpus"
"""
    program.write_text(program.read_text().replace("#!/bin/sh", f"#!/bin/sh{slow}"))
    await memory(patience=60.0).wait_until_freed(before, ours=[GONE])


@pytest.mark.parametrize(
    ("apps", "found"),
    [
        (f"{GONE}, {ONE}, 60000, VLLM::Worker\n", f"process {GONE} (VLLM::Worker) holds 60000 MiB"),
        ("", "no visible process"),
    ],
)
async def test_memory_that_does_not_come_back_is_an_error_with_its_holder(smi, before, apps, found):
    smi(TAKEN, apps)
    with pytest.raises(ModelError, match="is not free 0 s after") as caught:
        await memory().wait_until_freed(before, ours=[GONE])
    assert caught.value.where == "vllm:tiny on GPU 0 (NVIDIA H100 80GB HBM3)"
    assert "60004 MiB are in use, and 4 were before the engine started" in str(caught.value)
    assert caught.value.found == found
    # A process of the engine that still shows is not back, however little it holds.
    smi(FREE, f"{GONE}, {ONE}, 10, VLLM::Worker\n")
    with pytest.raises(ModelError, match="is not free"):
        await memory().wait_until_freed(before, ours=[GONE])
    smi(FREE).write_text("#!/bin/sh\necho Unable to determine the device handle; exit 15\n")
    with pytest.raises(ModelError, match="cannot verify that the GPU memory was freed") as caught:
        await memory().wait_until_freed(before, ours=[GONE])
    assert caught.value.found == "nvidia-smi: Unable to determine the device handle"


def gpus(*names):
    kinds = [f"GPU-{number}{'e' * 7}-x" for number in range(len(names))]
    return [
        Gpu(index=str(number), uuid=uuid, name=name, total=1, used=0, free=1)
        for number, (uuid, name) in enumerate(zip(kinds, names, strict=True))
    ]


ALIKE, MIXED = ("H100", "H100", "H100"), ("H100", "T4")


@pytest.mark.parametrize(
    ("names", "environment", "seen"),
    [
        (ALIKE, {}, ["0", "1", "2"]),
        (ALIKE, {"CUDA_VISIBLE_DEVICES": "2,0"}, ["2", "0"]),
        (ALIKE, {"CUDA_VISIBLE_DEVICES": "GPU-1ee, 2"}, ["1", "2"]),
        (ALIKE, {"CUDA_VISIBLE_DEVICES": ""}, []),
        (ALIKE, {"CUDA_VISIBLE_DEVICES": "1,-1,2"}, ["1"]),
        (ALIKE, {"CUDA_VISIBLE_DEVICES": "7,1"}, []),
        (ALIKE, {"CUDA_VISIBLE_DEVICES": "GPU-"}, []),
        # Of several kinds, only names and a known order tell which.
        (MIXED, {}, None),
        (MIXED, {"CUDA_VISIBLE_DEVICES": "1"}, None),
        (MIXED, {"CUDA_VISIBLE_DEVICES": "MIG-5"}, None),
        (MIXED, {"CUDA_VISIBLE_DEVICES": "GPU-1eee"}, ["1"]),
        (MIXED, {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, ["1"]),
    ],
)
def test_the_gpus_that_cuda_shows(names, environment, seen):
    if seen is None:
        with pytest.raises(GpusUnknown):
            visible(gpus(*names), environment)
    else:
        assert [gpu.index for gpu in visible(gpus(*names), environment)] == seen


def test_who_holds_memory_of_which_gpu(smi):
    smi(FREE + IDLE, f"7, {TWO}, 10, a\n8, {ONE}, 20, b\n9, {TWO}, [N/A], c\n[N/A], {ONE}, 1, d\n")
    both = look_at(2, {})
    assert [[holder.pid for holder in gpu.holders] for gpu in both] == [[8], [7, 9]]
    assert str(both[1].holders[1]) == "process 9 (c) holds memory"


async def test_an_engine_closes_or_restarts_when_its_gpu_is_free(smi, serve_model, tmp_path):
    model = serve_model(identity=Identity(kind="vllm", name="tiny"), memory=memory())
    smi(FREE)
    await model.open()
    smi(TAKEN)
    server = model._server.launched
    with pytest.raises(ModelError, match="is not free"):
        await model.close()
    assert server.ended() is not None
    smi(FREE)
    await model.open()
    smi(TAKEN)
    with pytest.raises(CallError, match="is not free") as caught:
        await model.ask(make_request("die 2"))
    assert caught.value.fatal
    assert (tmp_path / "starts").read_text() == "start\nstart\n"
    smi(FREE)


async def test_make_and_driver_are_for_the_manifest_if_there_are_tools(smi, monkeypatch):
    smi(FREE + IDLE)
    both = {"gpu": "NVIDIA H100 80GB HBM3", "gpus": 2, "driver": "570.86.15"}
    assert memory(count=2).make_and_driver() == both
    assert memory(count=2, chosen=chosen_by("1")).make_and_driver() == both | {"gpus": 1}
    monkeypatch.setenv("PATH", "/none")
    assert memory().make_and_driver() == {}
    assert await memory().before_start(silent) is None


def test_findings_are_each_gpu_and_who_holds_the_memory_of_one_that_is_wanted(smi, monkeypatch):
    free = good("gpu", "GPU 0 (NVIDIA H100 80GB HBM3), 79.1 of 79.6 GiB free")
    taken = good("gpu", "GPU 1 (NVIDIA H100 80GB HBM3), 20.5 of 79.6 GiB free")
    smi(FREE + TAKEN.replace("0, ", "1, ", 1).replace(ONE, TWO), f"4711, {TWO}, 59990, python\n")
    assert [*gpu_findings(None)] == [free, taken]
    assert [*gpu_findings(memory())] == [free]
    how = "set tensor_parallel_size × pipeline_parallel_size × data_parallel_size to 2 at most"
    lacking = bad("gpu", "16 GPUs are needed, and there are 2", how)
    assert [*gpu_findings(memory(count=16))] == [lacking]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert [*gpu_findings(None)] == [taken]
    (only,) = gpu_findings(memory())
    assert (only.about, only.state) == ("gpu", "bad")
    assert "; found process 4711 (python) holds 59990 MiB" in only.says


def test_gpus_that_are_hidden_have_a_broken_driver_or_none(smi, monkeypatch, tmp_path):
    def finds(kind, says):
        assert [*gpu_findings(None)] == [good("gpu", says)]
        assert [*gpu_findings(memory())] == [kind("gpu", says)]

    smi(FREE)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    finds(bad, "nvidia-smi shows no GPU that CUDA can use; CUDA_VISIBLE_DEVICES is '7'")
    said = "Failed to initialize NVML: Driver/library version mismatch"
    smi("").write_text(f"#!/bin/sh\necho '{said}'; exit 18\n")
    finds(doubtful, f"unknown: nvidia-smi: {said}")
    monkeypatch.setenv("PATH", str(tmp_path))
    finds(doubtful, "nvidia-smi is not installed, so NVIDIA GPUs are unknown")
