"""What is said of arguments of models that mean nothing, word for word."""

import pytest

from harness import plugin_manager
from harness.errors import HarnessError
from harness.models import ModelSettings

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
