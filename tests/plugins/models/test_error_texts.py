"""What is said of arguments of models that mean nothing, word for word."""

import json
import shutil
import stat
import sys

import pytest
from builders.runs import write_sealed
from harness_models import hf, openai, vllm
from harness_models.server.weights import commit_of
from huggingface_hub import HfApi, constants
from huggingface_hub.errors import RepositoryNotFoundError
from inline_snapshot import snapshot

from harness import registry as plugin_manager
from harness.base.errors import ModelError, UsageError
from harness.contracts.model import ModelSettings
from harness.pipeline.settings import parse_args

CASES = {
    ("openai", "model=a,api_key_env=MINE,api_key_file=f"): (
        UsageError, "--model_args", "api_key_env and api_key_file",
        snapshot("""\
the key of an openai model has two sources
expected: api_key_env or api_key_file, not both\
""")),
    ("openai", "model=a,base_url=localhost:80"): (
        UsageError, "--model_args", "base_url=localhost:80",
        snapshot("""\
an argument of the openai model cannot be used
expected: an address such as http://127.0.0.1:8000/v1\
""")),
    ("baseline", "respondents=a"): (UsageError, "--model_args", "respondents", snapshot("""\
the model 'baseline' has no argument 'respondents'
expected: respondent=NAME
to do: did you mean 'respondent'?\
""")),
    ("replay", "run=a,file=b"): (UsageError, "--model_args", "both run= and file=", snapshot("""\
a replay model needs one recording
expected: run=RUN, a run's folder, or file=FILE, recorded replies\
""")),
    ("replay", "file=a,role=judge"): (UsageError, "--model_args", "role=judge", snapshot("""\
role= cannot be combined with file=
expected: model= with file=, role= with run=\
""")),
    ("replay", "rum=a"): (UsageError, "--model_args", None, snapshot("""\
a replay model has no argument 'rum'
expected: run, file, model, role, concurrency
to do: did you mean 'run'?\
""")),
    ("openai", "model=a,zork=b"): (UsageError, "--model_args", None, snapshot("""\
an openai model has no argument 'zork'
expected: one of model, base_url, api_key_env, api_key_file, revision, identity, immutable, concurrency, batch, max_tokens_field, seed, system_role, endpoint, chat_template, chat_template_kwargs, stop, logprobs, top_logprobs, thinking, azure_endpoint, azure_deployment, api_version, max_answer_bytes, extra_body
to do: `harness list models openai` describes each\
""")),
    ("openai", "model=a,top_logprobs=3"): (UsageError, "--model_args", "top_logprobs=3",
        snapshot("""\
top_logprobs needs logprobs=true
expected: logprobs=true as well, or no top_logprobs\
""")),
    ("openai", "model=a,chat_template_kwargs={}"): (
        UsageError, "--model_args", "chat_template_kwargs={}",
        snapshot("""\
chat_template_kwargs needs chat_template=FILE
expected: chat_template=FILE as well, or no chat_template_kwargs
to do: extra_body.chat_template_kwargs.NAME=VALUE passes it to the server\
""")),
    ("openai", "model=a,max_tokens_field=temperature"): (
        UsageError, "--model_args", "max_tokens_field=temperature",
        snapshot("""\
max_tokens_field names a field that has another meaning
expected: the server's name for the token limit of an answer
to do: --gen_kwargs max_tokens=… sets the limit itself\
""")),
    ("openai", "model=a,extra_body.seed=3"): (UsageError, "--model_args", "extra_body with 'seed'",
        snapshot("""\
the extra fields of requests cannot be used
expected: fields that the harness does not send itself
to do: --seed\
""")),
    ("openai", 'model=a,extra_body.b=1,extra_body={"b":2}'): (
        UsageError, "--model_args", 'extra_body={"b":2}',
        snapshot("""\
the extra fields of requests cannot be used
expected: each field once: 'b' was given before\
""")),
    ("openai", "model=a,extra_body=[1]"): (UsageError, "--model_args", "extra_body=[1]",
        snapshot("""\
the extra fields of requests cannot be used
expected: a JSON object\
""")),
    ("openai", "model=a,extra_body={"): (UsageError, "--model_args", "extra_body={", snapshot("""\
the extra fields of requests cannot be used
expected: a JSON object (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))
to do: extra_body.NAME=VALUE gives one field\
""")),
    ("replay", "file=nowhere.jsonl"): (UsageError, "nowhere.jsonl", None, snapshot("""\
there is no file of recorded replies
expected: JSON lines with messages and text\
""")),
    ("vllm", "python=/none/python"): (ModelError, "--model_args", "python=/none/python",
        snapshot("""\
the interpreter for vLLM does not exist
expected: the python of an environment that has vllm\
""")),
}  # fmt: skip


def made(kind, args):
    return plugin_manager.load_plugins().model(kind).factory(ModelSettings(args=parse_args(args)))


def opened(kind, args):
    return made(kind, args).open()


@pytest.mark.parametrize(("kind", "args"), CASES)
def test_arguments(kind, args, monkeypatch, raised):
    monkeypatch.delenv("HARNESS_PRETRAINED", raising=False)
    error, where, found, wording = CASES[kind, args]
    assert raised(error, made, kind, args, where=where, found=found) == wording


def test_a_respondent_that_nobody_registers(raised):
    given = "baseline", "respondent=defalt"
    wording = raised(UsageError, made, *given, where="--model_args", found="defalt")
    problem, expected, to_do = wording.splitlines()
    assert "default" in expected.removeprefix("expected: ").split(", ")
    assert [problem, to_do] == snapshot(
        ["no plugin registers a respondent named 'defalt'", "to do: did you mean 'default'?"]
    )


def test_recorded_replies_that_cannot_be_used(tmp_path, raised):
    file = tmp_path / "replies.jsonl"
    file.write_text('{"messages": [], "text": "a"}\n{}\n')
    where, found = "DIR/replies.jsonl:2", "Object missing required field `messages`"
    given = "replay", f"file={file}"
    assert raised(UsageError, opened, *given, where=where, found=found) == snapshot("""\
a recorded reply cannot be used
expected: {"messages": [{"role": …, "content": …}], "text": …}, with repeat, finish, reasoning, usage and sampling where they matter; one answer per question\
""")
    given = "replay", f"file={file},concurrency=0"
    where, found = "--model_args", "concurrency=0"
    assert raised(UsageError, made, *given, where=where, found=found) == snapshot("""\
an argument of the replay model cannot be used
expected: a whole number, at least 1\
""")


def test_a_repository_that_the_hub_does_not_have(monkeypatch, raised):
    def none(*_, **__):
        raise RepositoryNotFoundError.__new__(RepositoryNotFoundError)

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(HfApi, "model_info", none)
    where, found = "--model_args", "acme/none@v2"
    assert raised(ModelError, commit_of, "acme/none", "v2", where=where, found=found) == snapshot("""\
the hub has no such repository or revision, or you have no access to it
expected: the name of an existing repository of weights
to do: for private repositories, set HF_TOKEN in the environment\
""")


@pytest.fixture
def run(small_run, tmp_path):
    """A copy of a finished run, to be damaged."""
    return shutil.copytree(small_run, tmp_path / "run")


def test_a_recorded_run_that_is_damaged(run, raised):
    (journal,) = run.rglob("*name.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"{torn\n", *lines[1:]]))
    where = "DIR/run/interests/1-name.jsonl:2"
    found = "no checksum at its end"
    given = "replay", f"run={run}"
    assert raised(ModelError, opened, *given, where=where, found=found) == snapshot("""\
the recording cannot be used: damaged record
expected: one whole JSON record a line, with its checksum
to do: delete the line, then repeat the run's command with --resume and the run's folder: it asks again for the item\
""")


def test_a_run_in_which_several_models_played_a_role(run, raised):
    file = run / "manifest.json"
    manifest = json.loads(file.read_text())
    played = manifest["roles"]["candidate"]
    other = {**played["identity"], "model": {**played["identity"]["model"], "name": "other"}}
    manifest["roles"]["films/candidate"] = {**played, "identity": other}
    write_sealed(file, manifest)
    given = "replay", f"run={run}"
    assert raised(UsageError, made, *given, where="DIR/run", found="2 models") == snapshot("""\
several models had the role 'candidate' in this run
expected: a run with a single model in this role\
""")


def making(make, **args):
    return lambda: make(ModelSettings(args=args))


LOOK = "[ \"$1\" = -c ] && echo '{}' && exit 0\necho broken >&2\nexit 3"
"""An interpreter that prints a look at its packages, and fails at all else."""

OTHER = snapshot("""\
the interpreter for vLLM does not work
expected: the python of an environment that has vllm\
""")
INTERPRETERS = {
    (vllm, "echo no such library >&2\nexit 3"): ("no such library", OTHER),
    (vllm, "exit 3"): ("exit code 3", OTHER),
    (hf, LOOK.replace("{}", "")): ("exit code 0", snapshot("""\
the interpreter for transformers does not work
expected: the python of an environment that has transformers[serving]\
""")),
    (hf, LOOK.replace("{}", '{"missing": [], "version": "5.23.0"}')): ("broken", snapshot("""\
transformers serve cannot be started
expected: transformers 5 or newer, in which `transformers serve --help` works\
""")),
}  # fmt: skip


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(("kind", "script"), INTERPRETERS)
def test_an_interpreter_that_cannot_serve(folder, tmp_path, raised, kind, script):
    file = tmp_path / "python"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    more = {"max_batch_tokens": "9"} if kind is hf else {}
    serve = making(kind.make, pretrained=str(folder), python=str(file), **more)
    found, wording = INTERPRETERS[kind, script]
    assert raised(ModelError, serve, where="DIR/python", found=found) == wording


def test_a_vllm_whose_server_does_not_start(folder, package, raised):
    server = package / "entrypoints" / "openai" / "api_server.py"
    server.write_text("raise ImportError('libcudart.so.13 is missing')\n")
    serve = making(vllm.make, pretrained=str(folder), optimization_level="1")
    found = "ImportError: libcudart.so.13 is missing"
    assert raised(ModelError, serve, where=sys.executable, found=found) == snapshot("""\
vLLM cannot be started
expected: a vLLM for which `python -m vllm.entrypoints.openai.api_server --help` works\
""")


def test_a_chat_template_that_leaves_the_question_out(tmp_path, raised):
    file = tmp_path / "mute.jinja"
    file.write_text("hello")
    ask = making(openai.make, model="m", endpoint="completions", chat_template=str(file))
    where = "--model_args, chat_template=DIR/mute.jinja"
    found = "its text lacks the user's message: 'hello'"
    assert raised(UsageError, ask, where=where, found=found) == snapshot("""\
the chat template cannot be used
expected: a Jinja template of `messages`, such as a model's chat_template.jinja\
""")
