"""The interpreter that runs a server of our own: what it has, and whether it can."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

from harness.base.errors import ModelError
from harness.contracts.finding import Finding, bad, good
from harness_models.server.gpus import GpuMemory, gpu_findings

PYTHON = "interpreter"
SECONDS = 20.0
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


def looked_into(python: str, look: str, *, program: str, needs: str) -> tuple[str, Any]:
    """The interpreter's own path, and what the code `look` printed there as JSON.

    ModelError where there is no such interpreter, or none that works.
    """
    path = shutil.which(python)
    expected = f"the python of an environment that has {needs}"
    if path is None:
        raise ModelError(
            f"the interpreter that should run {program} does not exist",
            where="--model_args",
            found=f"python={python}",
            expected=expected,
        )
    done = subprocess.run([path, "-c", look], capture_output=True, text=True, check=False)
    try:
        return path, json.loads(done.stdout)
    except ValueError:
        raise ModelError(
            f"the interpreter that should run {program} does not work",
            where=path,
            found=(done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1],
            expected=expected,
        ) from None
