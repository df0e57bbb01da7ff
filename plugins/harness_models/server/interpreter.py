"""What can be said of a server of our own before it is started, for `harness doctor`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator

from harness.errors import ModelError
from harness.findings import Finding, bad, bad_by, doubtful, good
from harness_models.server.gpus import SMI, GpuMemory, Unseen, look_at

PYTHON, GPU = "interpreter", "gpu"
SECONDS = 20.0
ALL = 1024
"""More GPUs than a machine has."""

MIB_OF_GIB = 1024
LOOK = """
import importlib.metadata, json, platform, sys
print(json.dumps([platform.python_version(), importlib.metadata.version(sys.argv[1])]))
"""


def engine_findings(python: str, package: str, memory: GpuMemory | None = None) -> list[Finding]:
    """The interpreter with its version of the package, and the GPUs that it will see.

    `memory` is what a server that cannot do without GPUs takes of them.
    """
    return [interpreter(python, package), *gpu_findings(memory)]


def interpreter(python: str, package: str) -> Finding:
    """Which version of a package an interpreter has."""
    done = subprocess.run(
        [python, "-c", LOOK, package],
        capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    where = shutil.which(python) or python
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return bad(PYTHON, f"{where} does not tell its version of {package}: {said}")
    version, of_package = json.loads(done.stdout)
    return good(PYTHON, f"{where}; Python {version}, {package} {of_package}")


def gpu_findings(memory: GpuMemory | None) -> Iterator[Finding]:
    """The GPUs that a server would see with what is free of them, and whether that is enough."""
    not_good = good if memory is None else doubtful
    if shutil.which(SMI) is None:
        yield not_good(GPU, f"no {SMI} here, so nothing is known of NVIDIA GPUs")
        return
    try:
        look = look_at(ALL if memory is None else memory.count, os.environ)
    except Unseen as unseen:
        yield not_good(GPU, f"not known: {unseen}")
        return
    if not look.gpus:
        chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
        why = "" if chosen is None else f"; CUDA_VISIBLE_DEVICES is {chosen!r}"
        yield (good if memory is None else bad)(GPU, f"{SMI} shows none that CUDA would see{why}")
    if memory is not None:
        try:
            memory.refuse_too_little(look)
        except ModelError as error:
            yield bad_by(GPU, error)
            return
    for gpu in look.gpus:
        free = f"{(gpu.free or 0) / MIB_OF_GIB:.1f} of {(gpu.total or 0) / MIB_OF_GIB:.1f} GiB free"
        yield good(GPU, f"{gpu.label}, {free}")
