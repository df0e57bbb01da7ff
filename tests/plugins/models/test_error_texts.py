"""What is said of arguments of models that mean nothing, word for word."""

import json

import pytest

import harness
from harness import plugin_manager
from harness.errors import HarnessError
from harness.models import ModelSettings

OPENAI_ARGUMENTS = (
    "model, base_url, api_key_env, api_key_file, revision, identity, immutable, concurrency, "
    "max_tokens_field, seed, system_role, endpoint, chat_template, chat_template_kwargs, stop, "
    "logprobs, top_logprobs, azure_endpoint, azure_deployment, api_version, extra_body"
)

CASES = {
    ("openai", ""): """\
--model_args: an openai model needs the name that its server knows it by
  found:    nothing
  expected: model=NAME""",
    ("openai", "base_url=http://x/v1"): """\
--model_args: an openai model needs the name that its server knows it by
  found:    base_url=…
  expected: model=NAME""",
    ("openai", "model=a,api_key_env=MINE,api_key_file=f"): """\
--model_args: the key of an openai model is said to be in two places
  found:    api_key_env and api_key_file
  expected: one of them""",
    ("openai", "model=a,base_url=localhost:80"): """\
--model_args: an argument of the openai model cannot be used
  found:    base_url=localhost:80
  expected: an address such as http://127.0.0.1:8000/v1""",
    ("baseline", "respondents=a"): """\
--model_args: the model 'baseline' has no such argument
  found:    respondents
  expected: respondent
  to do:    did you mean 'respondent'?""",
    ("replay", ""): """\
--model_args: a replay model needs what it answers from
  found:    neither run= nor file=
  expected: run=RUN, a run's folder, or file=FILE, recorded replies""",
    ("replay", "run=a,file=b"): """\
--model_args: a replay model needs what it answers from
  found:    both run= and file=
  expected: run=RUN, a run's folder, or file=FILE, recorded replies""",
    ("replay", "run=a,model=m"): """\
--model_args: model= means nothing here
  found:    model=m
  expected: model= beside file=, role= beside run=""",
    ("replay", "file=a,role=judge"): """\
--model_args: role= means nothing here
  found:    role=judge
  expected: model= beside file=, role= beside run=""",
    ("replay", "rum=a"): """\
--model_args: a replay model has no argument 'rum'
  expected: run, file, model, role, concurrency
  to do:    did you mean 'run'?""",
    ("openai", "model=a,modle=b"): f"""\
--model_args: an openai model has no argument 'modle'
  expected: one of {OPENAI_ARGUMENTS}
  to do:    did you mean 'model'?""",
    ("openai", "model=a,zork=b"): f"""\
--model_args: an openai model has no argument 'zork'
  expected: one of {OPENAI_ARGUMENTS}
  to do:    `harness models openai` tells what each means""",
    ("openai", "model=a,base_url=http://a,azure_endpoint=http://b"): """\
--model_args: the address of an openai model is given twice
  found:    base_url and azure_endpoint
  expected: one of them""",
    ("openai", "model=a,top_logprobs=3"): """\
--model_args: top_logprobs means nothing here
  found:    top_logprobs=3
  expected: logprobs=true""",
    ("openai", "model=a,chat_template_kwargs={}"): """\
--model_args: chat_template_kwargs means nothing here
  found:    chat_template_kwargs={}
  expected: chat_template=FILE
  to do:    extra_body.chat_template_kwargs.NAME=VALUE has a server told""",
    ("openai", "model=a,max_tokens_field=temperature"): """\
--model_args: max_tokens_field names a field that holds something else
  found:    max_tokens_field=temperature
  expected: the name under which the server takes the limit of an answer's tokens
  to do:    --gen_kwargs max_tokens=… says the limit""",
    ("openai", "model=a,extra_body.seed=3"): """\
--model_args: the extra fields of requests cannot be used
  found:    extra_body with 'seed'
  expected: what the harness does not send itself
  to do:    --seed""",
    ("openai", 'model=a,extra_body.b=1,extra_body={"b":2}'): """\
--model_args: the extra fields of requests cannot be used
  found:    extra_body={"b":2}
  expected: each field once: 'b' is there already""",
    ("openai", "model=a,extra_body=[1]"): """\
--model_args: the extra fields of requests cannot be used
  found:    extra_body=[1]
  expected: a JSON object""",
    ("openai", "model=a,extra_body={"): """\
--model_args: the extra fields of requests cannot be used
  found:    extra_body={
  expected: a JSON object (Expecting property name enclosed in double quotes: \
line 1 column 2 (char 1))
  to do:    extra_body.NAME=VALUE gives one field""",
    ("replay", "file=nowhere.jsonl"): """\
nowhere.jsonl: there is no file of recorded replies
  expected: JSON lines with messages and text""",
    ("vllm", "python=/none/python"): """\
--model_args: the interpreter that should run vLLM does not exist
  found:    python=/none/python
  expected: the python of an environment that has vllm""",
}


def made(kind, args):
    from harness.pipeline.roles import parse_args

    factory = plugin_manager.load_plugins().model(kind).factory
    return factory(ModelSettings(args=parse_args(args)))


@pytest.mark.parametrize(("kind", "args"), CASES)
def test_arguments(kind, args, monkeypatch):
    monkeypatch.delenv("HARNESS_PRETRAINED", raising=False)
    with pytest.raises(HarnessError) as caught:
        made(kind, args)
    assert str(caught.value) == CASES[kind, args]


def test_a_respondent_that_nobody_registers():
    with pytest.raises(HarnessError) as caught:
        made("baseline", "respondent=defalt")
    first, found, expected, to_do = str(caught.value).splitlines()
    assert first == "--model_args: no plugin registers a respondent of that name"
    assert found == "  found:    defalt"
    assert "default" in expected.removeprefix("  expected: ").split(", ")
    assert to_do == "  to do:    did you mean 'default'?"


async def test_recorded_replies_that_cannot_be_used(tmp_path):
    file = tmp_path / "replies.jsonl"
    file.write_text('{"messages": [], "text": "a"}\n{}\n')
    with pytest.raises(HarnessError) as caught:
        await made("replay", f"file={file}").open()
    assert str(caught.value) == (
        f"{file}:2: a recorded reply cannot be used\n"
        "  found:    Object missing required field `messages`\n"
        '  expected: {"messages": [{"role": …, "content": …}], "text": …}, with repeat, finish, '
        "reasoning, usage, sampling where they matter; one answer a question"
    )
    with pytest.raises(HarnessError) as caught:
        made("replay", f"file={file},concurrency=0")
    assert str(caught.value) == (
        "--model_args: an argument of the replay model cannot be used\n"
        "  found:    concurrency=0\n"
        "  expected: a whole number from 1 on"
    )


def test_a_repository_that_the_hub_does_not_have(monkeypatch):
    from harness_models.weights import commit_of
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import RepositoryNotFoundError

    def none(*_, **__):
        raise RepositoryNotFoundError.__new__(RepositoryNotFoundError)

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(HfApi, "model_info", none)
    with pytest.raises(HarnessError) as caught:
        commit_of("acme/none", "v2")
    assert str(caught.value) == (
        "--model_args: the hub has no such model, or does not show it to you\n"
        "  found:    acme/none@v2\n"
        "  expected: a repository of weights\n"
        "  to do:    HF_TOKEN in the environment opens those that are not public"
    )


@pytest.fixture
def run(tmp_path):
    """The folder of a run that a respondent played."""
    return harness.evaluate(
        "interests", model="baseline", judge="lexical", data="sample", limit=2,
        output_path=tmp_path, use_store=False,
    ).folder  # fmt: skip


async def test_a_recorded_run_that_is_damaged(run):
    (journal,) = run.rglob("*name.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"{torn\n", *lines[1:]]))
    with pytest.raises(HarnessError) as caught:
        await made("replay", f"run={run}").open()
    assert (
        str(caught.value)
        == f"""\
{journal}:2: the recording cannot be used: damaged record
  found:    JSON is malformed: object keys must be strings (byte 1)
  expected: one whole JSON record a line
  to do:    delete the line and give the run's command again: its item is asked anew"""
    )


def test_a_run_in_which_several_models_played_a_role(run):
    file = run / "manifest.json"
    manifest = json.loads(file.read_text())
    played = manifest["roles"]["candidate"]
    other = {**played["identity"], "model": {**played["identity"]["model"], "name": "other"}}
    manifest["roles"]["films/candidate"] = {**played, "identity": other}
    file.write_text(json.dumps(manifest))
    with pytest.raises(HarnessError) as caught:
        made("replay", f"run={run}")
    assert (
        str(caught.value)
        == f"""\
{run}: several models played the role 'candidate' in this run
  found:    2 models
  expected: a run whose tasks have one"""
    )
