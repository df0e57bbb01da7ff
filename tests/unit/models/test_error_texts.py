"""What is said of interpreters that cannot serve and templates that say nothing, word for word."""

import stat

import pytest
from harness_models import hf, openai, vllm

from harness.errors import HarnessError
from harness.models import ModelSettings


def said(make=vllm.make, **args):
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


@pytest.fixture
def python(tmp_path):
    """A made-up interpreter: prints a look at the packages, and fails at all else."""

    def make(look):
        file = tmp_path / "python"
        file.write_text(
            f"#!/bin/sh\n[ \"$1\" = -c ] && echo '{look}' && exit 0\necho broken >&2\nexit 3\n"
        )
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    return make


HF = {
    "": """\
WHERE: the interpreter that should run transformers does not work
  found:    exit code 0
  expected: the python of an environment that has transformers[serving]""",
    '["transformers", "fastapi"]': """\
WHERE: transformers is not installed, or not with what serving needs
  found:    no transformers, fastapi
  to do:    pip install "user-understanding-harness[hf]", or pip install "transformers[serving]" \
into another environment, whose python is then named by python=… or HARNESS_HF_PYTHON""",
    "[]": """\
WHERE: transformers serve cannot be started
  found:    broken
  expected: `transformers serve --help` to work, as it does from version 5 on""",
}


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("look", HF)
def test_an_interpreter_that_cannot_serve_transformers(look, folder, python):
    name = python(look)
    given = {"pretrained": str(folder), "python": name, "max_batch_tokens": "9"}
    assert said(hf.make, **given) == HF[look].replace("WHERE", name)


def test_a_chat_template_that_leaves_the_question_out(tmp_path):
    file = tmp_path / "mute.jinja"
    file.write_text("hello")
    assert (
        said(openai.make, model="m", endpoint="completions", chat_template=str(file))
        == f"""\
--model_args, chat_template={file}: the chat template cannot be used
  found:    it says nothing of what the user says, but 'hello'
  expected: a Jinja template of `messages`, as in a model's chat_template.jinja"""
    )
