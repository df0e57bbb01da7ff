"""What is said of interpreters that cannot run vLLM, word for word."""

import stat

import pytest
from harness_models.vllm import make

from harness.errors import HarnessError
from harness.models import ModelSettings


def said(**args):
    with pytest.raises(HarnessError) as caught:
        make(ModelSettings(args=args))
    return str(caught.value)


@pytest.mark.usefixtures("package")
def test_an_interpreter_that_is_none(folder, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no such library >&2\nexit 3\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    text = """\
PYTHON: the interpreter that should run vLLM does not work
  found:    FOUND
  expected: the python of an environment that has vllm"""
    known = text.replace("PYTHON", str(python))
    assert said(pretrained=str(folder), python=str(python)) == known.replace(
        "FOUND", "no such library"
    )
    python.write_text("#!/bin/sh\nexit 3\n")
    assert said(pretrained=str(folder), python=str(python)) == known.replace("FOUND", "exit code 3")


def test_a_vllm_whose_server_does_not_start(folder, package):
    server = package / "entrypoints" / "openai" / "api_server.py"
    server.write_text("raise ImportError('libcudart.so.13 is missing')\n")
    where, found, expected = said(pretrained=str(folder), optimization_level="1").splitlines()
    assert where.endswith(": vLLM cannot be started")
    assert found == "  found:    ImportError: libcudart.so.13 is missing"
    assert expected == "  expected: `python -m vllm.entrypoints.openai.api_server --help` to work"
