"""What is said of interpreters that cannot serve and templates that say nothing, word for word."""

import stat
import sys

import pytest
from harness_models import hf, openai, vllm
from inline_snapshot import snapshot

from harness.base.errors import ModelError, UsageError
from harness.contracts.model import ModelSettings


def made(make, **args):
    return lambda: make(ModelSettings(args=args))


@pytest.fixture
def python(tmp_path):
    """A made-up interpreter: a shell script with these lines."""

    def write(script):
        file = tmp_path / "python"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    return write


@pytest.mark.usefixtures("package")
def test_an_interpreter_that_is_none(folder, python, raised):
    for script, found in (
        ("echo no such library >&2\nexit 3", "no such library"),
        ("exit 3", "exit code 3"),
    ):
        serve = made(vllm.make, pretrained=str(folder), python=python(script))
        assert raised(ModelError, serve, where="DIR/python", found=found) == snapshot("""\
the interpreter for vLLM does not work
expected: the python of an environment that has vllm\
""")


def test_a_vllm_whose_server_does_not_start(folder, package, raised):
    server = package / "entrypoints" / "openai" / "api_server.py"
    server.write_text("raise ImportError('libcudart.so.13 is missing')\n")
    serve = made(vllm.make, pretrained=str(folder), optimization_level="1")
    found = "ImportError: libcudart.so.13 is missing"
    assert raised(ModelError, serve, where=sys.executable, found=found) == snapshot("""\
vLLM cannot be started
expected: a vLLM for which `python -m vllm.entrypoints.openai.api_server --help` works\
""")


HF = {
    "": ("DIR/python", "exit code 0", snapshot("""\
the interpreter for transformers does not work
expected: the python of an environment that has transformers[serving]\
""")),
    '{"missing": [], "version": "5.23.0"}': ("DIR/python", "broken", snapshot("""\
transformers serve cannot be started
expected: transformers 5 or newer, in which `transformers serve --help` works\
""")),
}  # fmt: skip


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("look", HF)
def test_an_interpreter_that_cannot_serve_transformers(look, folder, python, raised):
    # It prints a look at the packages, and fails at all else.
    name = python(f"[ \"$1\" = -c ] && echo '{look}' && exit 0\necho broken >&2\nexit 3")
    serve = made(hf.make, pretrained=str(folder), python=name, max_batch_tokens="9")
    where, found, wording = HF[look]
    assert raised(ModelError, serve, where=where, found=found) == wording


def test_a_chat_template_that_leaves_the_question_out(tmp_path, raised):
    file = tmp_path / "mute.jinja"
    file.write_text("hello")
    ask = made(openai.make, model="m", endpoint="completions", chat_template=str(file))
    where = "--model_args, chat_template=DIR/mute.jinja"
    found = "its text lacks the user's message: 'hello'"
    assert raised(UsageError, ask, where=where, found=found) == snapshot("""\
the chat template cannot be used
expected: a Jinja template of `messages`, such as a model's chat_template.jinja\
""")
