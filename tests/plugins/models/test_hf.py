"""The `hf` kind: what is found before a start, over the real interpreter and made-up packages."""

import json
import sys

import pytest
from builders.requests import make_request
from harness_models.hf import make

from harness import CallError
from harness.base.errors import ModelError, UsageError
from harness.contracts.model import ModelSettings, Reply, Usage

HELP = """
Options:
  --continuous-batching / --no-continuous-batching
                                  Enable continuous batching.
  --reasoning [on|off|auto]       Reasoning mode.  [default: auto]
  --cb-block-size INTEGER         KV cache block size in tokens.
  --cb-max-memory-percent FLOAT   Max GPU memory fraction.
  --quantization TEXT             Quantization method.
  --port INTEGER                  Server listen port.  [default: 8000]
  -h, --help                      Show this message and exit.
"""


@pytest.fixture(autouse=True)
def packages(tmp_path, monkeypatch):
    """A transformers that can be found, and whose server shows a help."""
    site = tmp_path / "site"
    needed = "transformers torch accelerate fastapi uvicorn openai pydantic transformers/cli"
    for name in needed.split():
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").touch()
    shown = f"import sys\nif sys.argv[1:] == ['serve', '--help']:\n    print({HELP!r})\n"
    (site / "transformers" / "cli" / "transformers.py").write_text(shown)
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    for name in ("HARNESS_PRETRAINED", "HARNESS_HF_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    return site


def checkpoint(folder):
    folder.mkdir()
    (folder / "config.json").write_text('{"max_position_embeddings": 4096}')
    (folder / "generation_config.json").write_text('{"eos_token_id": [2, 5], "top_k": 20}')
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    return folder


@pytest.fixture
def folder(tmp_path):
    return checkpoint(tmp_path / "tiny")


def model(ceiling=None, **given):
    return make(ModelSettings(args={"python": sys.executable, **given}, concurrency=ceiling))


def request(max_tokens=96, **sampling):
    return make_request(seed=7, max_tokens=max_tokens, **sampling)


def reply(text, *, prompt=10):
    return Reply(text=text, finish="length", usage=Usage(prompt_tokens=prompt))


def test_the_server_is_started_on_a_port_with_what_was_said(folder):
    made = model(pretrained=str(folder), dtype="float16", trust_remote_code="false", device="cpu")
    assert made.server_command() == [
        sys.executable, "-m", "transformers.cli.transformers", "serve", str(folder),
        "--host", "127.0.0.1", "--port", "PORT",
        "--dtype", "float16", "--no-trust-remote-code", "--device", "cpu",
    ]  # fmt: skip
    assert (made.occupies, made.engine.listens_on) == ("gpu", "port")


@pytest.mark.parametrize(
    ("given", "driver", "needed"),
    [
        ({}, True, 1),
        ({}, False, 0),
        ({"device": "cpu"}, True, 0),
        ({"device": "cuda:1"}, False, 1),
        ({"device": "0"}, False, 1),
    ],
)
def test_the_device_decides_if_a_gpu_is_needed(folder, monkeypatch, given, driver, needed):
    there = (str(folder),) if driver else ("/no/such/device",)
    monkeypatch.setattr("harness_models.hf.GPU_DEVICES", there)
    assert model(pretrained=str(folder), **given).gpus == needed


def test_a_template_and_what_it_is_told_go_to_the_server_together(folder, tmp_path):
    (folder / "chat_template.jinja").rename(tmp_path / "own.jinja")
    with pytest.raises(ModelError, match="no chat template") as caught:
        model(pretrained=str(folder))
    hint = "give the template that it was trained with: chat_template=FILE.jinja"
    assert caught.value.hint == hint
    own = {"chat_template": str(tmp_path / "own.jinja")}
    made = model(pretrained=str(folder), chat_template_kwargs="enable_thinking=false", **own)
    flag, told = made.server_command()[-2:]
    assert flag == "--chat-template-kwargs"
    assert json.loads(told) == {"enable_thinking": False, "chat_template": "{{ messages }}"}
    assert {"chat_template", "chat_template_kwargs"} <= made.identity.details.keys()


def test_an_identity_holds_what_decides_answers_and_not_how_fast_they_come(folder):
    plain = model(pretrained=str(folder)).identity
    assert (plain.kind, plain.name, plain.scope) == ("hf", "tiny", "everywhere")
    fast = {"device": "cpu", "continuous_batching": "true", "max_model_len": "99",
            "compile": "true"}  # fmt: skip
    assert model(pretrained=str(folder), **fast).identity == plain
    for other in ({"dtype": "float16"}, {"reasoning": "off"}, {"quantization": "bnb-4bit"}):
        assert model(pretrained=str(folder), **other).identity != plain
    (folder / "config.json").write_text("{}")
    assert model(pretrained=str(folder)).identity != plain


def test_a_name_of_the_hub_is_asked_at_its_commit_and_what_is_not_known_is_said(tmp_path):
    loose = model()
    assert (loose.identity.scope, loose.engine.model) == ("run", "Qwen/Qwen3-8B")
    assert loose.engine.notes == (
        "no model given: using Qwen/Qwen3-8B (pretrained=… chooses another)",
        "its configuration does not limit the length of prompts (max_model_len=N does)",
    )
    refs = tmp_path / "hub" / "models--org--name" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("ab12")
    pinned = model(pretrained="org/name")
    assert (pinned.identity.scope, pinned.engine.model) == ("everywhere", "org/name@ab12")
    assert "org/name@ab12" in pinned.server_command()


def test_structured_answers_are_refused_with_who_and_cure(folder, printed):
    args = f"pretrained={folder},python={sys.executable}"
    command = ["--model", "hf", "--model_args", args, "--tasks", "interests", "--judge", "lexical"]
    shown = printed(*command, "--data", "sample", "--structured", "--dry-run", code=2).err
    assert "transformers serve cannot constrain answers to a schema" in shown
    assert "--model vllm" in shown


@pytest.mark.parametrize(
    ("given", "ceiling", "in_flight"),
    [
        ({"concurrency": "1"}, 64, 1),
        ({"continuous_batching": "true"}, None, 64),
        ({"continuous_batching": "true"}, 8, 8),
        ({"continuous_batching": "true", "concurrency": "16"}, 8, 16),
    ],
)
def test_requests_go_one_by_one_unless_the_server_batches(folder, given, ceiling, in_flight):
    assert model(pretrained=str(folder), ceiling=ceiling, **given).concurrency == in_flight


@pytest.mark.parametrize(
    ("given", "expected", "hint"),
    [
        ({"concurrency": "2"}, "one request after the other", "continuous_batching=true"),
        ({"port": "8000"}, "--model_args without ", "chooses the address"),
        ({"compile": "yes"}, "true or false", ""),
        ({"max_model_len": "long"}, "a whole number", ""),
        ({"revision": "main"}, "a folder holds a single revision", ""),
        ({"cb_block_size": "big"}, "a whole number", ""),
        ({"cb_max_memory_percent": "half"}, "a number", ""),
        ({"pretrained": "{}@2"}, "without @", "rename the folder"),
        ({"reasoning": "maybe"}, "one of on, off, auto", ""),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(folder, given, expected, hint):
    with pytest.raises(UsageError, match="an argument of the hf model cannot be used") as caught:
        checkpoint(folder.with_name("tiny@2"))
        model(**given | {"pretrained": given.get("pretrained", "{}").format(folder)})
    assert expected in caught.value.expected
    assert hint in (caught.value.hint or "")


def test_the_servers_own_help_is_asked_for_an_argument_that_we_do_not_know(folder):
    made = model(pretrained=str(folder), cb_block_size="16", cb_max_memory_percent="0.5")
    assert made.server_command()[-4:] == ["--cb-block-size", "16", "--cb-max-memory-percent", "0.5"]
    with pytest.raises(UsageError, match="no argument 'cb_blok_size'") as caught:
        model(pretrained=str(folder), cb_blok_size="16")
    assert caught.value.hint == "did you mean 'cb_block_size'?"


def test_without_what_serving_needs_the_interpreter_and_the_cure_are_named(folder, packages):
    (packages / "accelerate" / "__init__.py").unlink()
    (packages / "accelerate").rmdir()
    with pytest.raises(ModelError, match="accelerate, which serving needs") as caught:
        model(pretrained=str(folder))
    (only,) = caught.value.findings
    assert only.says == f"no accelerate, which serving needs, for {sys.executable}"
    assert "[hf]" in only.to_do


def test_requests_leave_nothing_to_the_checkpoints_settings_and_no_penalty_is_ignored(folder):
    fields = model(pretrained=str(folder)).engine.fields
    assert json.loads(fields(request())["generation_config"]) == {
        "do_sample": False, "num_beams": 1, "repetition_penalty": 1.0, "no_repeat_ngram_size": 0,
    }  # fmt: skip
    drawn = json.loads(fields(request(temperature=0.5))["generation_config"])
    assert (drawn["do_sample"], drawn["top_k"], drawn["top_p"]) == (True, 0, 1.0)

    sent = fields(request(temperature=0.5, top_k=20))
    assert json.loads(sent["generation_config"])["top_k"] == 20
    assert sent["top_k"] is None, "the server refuses requests with a top_k of their own"
    assert "top_k" not in json.loads(fields(request(top_k=20))["generation_config"])
    with pytest.raises(CallError, match="ignores a request's presence_penalty"):
        fields(request(presence_penalty=0.5))


def test_a_prompt_is_cut_one_token_above_what_has_room_and_known_by_that(folder):
    engine = model(pretrained=str(folder)).engine
    fields = engine.fields(request(max_tokens=96))
    assert fields["chat_template_kwargs"] == {"truncation": True, "max_length": 4001}
    asked = request(max_tokens=96)
    assert engine.checked(asked, reply("fits", prompt=4000)).text == "fits"
    with pytest.raises(CallError) as caught:
        engine.checked(asked, reply("cut", prompt=4001))
    assert (caught.value.cause, caught.value.retryable) == ("overflow", False)
    with pytest.raises(CallError, match="overflow"):
        engine.fields(request(max_tokens=4096))
    # The longest context is the model's own, and 100,000 at most.
    for length, given, cut in (("131072", {}, 99905), ("131072", {"max_model_len": "2000"}, 1905)):
        (folder / "config.json").write_text(f'{{"max_position_embeddings": {length}}}')
        fields = model(pretrained=str(folder), **given).engine.fields(request(max_tokens=96))
        assert fields["chat_template_kwargs"]["max_length"] == cut
    (folder / "config.json").write_text("{}")
    assert "chat_template_kwargs" not in model(pretrained=str(folder)).engine.fields(request())


def test_an_answer_ends_before_the_first_word_at_which_it_should_stop(folder):
    checked = model(pretrained=str(folder)).engine.checked
    asked = request(stop=("END", "\n"))
    ended = checked(asked, reply("one two\nthree END"))
    assert (ended.text, ended.finish) == ("one two", "stop")
    assert checked(asked, reply("one two")).finish == "length"
    with pytest.raises(CallError, match="number of prompt tokens"):
        checked(asked, Reply(text="x"))


def test_a_batching_server_is_told_which_tokens_end_an_answer_and_not_asked_what_it_ignores(folder):
    fields = model(pretrained=str(folder), continuous_batching="true").engine.fields
    assert json.loads(fields(request())["generation_config"])["eos_token_id"] == [2, 5]
    for sampling in ({"temperature": 0.7}, {"stop": ("END",)}):
        with pytest.raises(CallError, match="continuous_batching=false") as caught:
            fields(request(**sampling))
        assert caught.value.fatal
    (folder / "generation_config.json").unlink()
    with pytest.raises(UsageError, match="which token ends an answer"):
        model(pretrained=str(folder), continuous_batching="true")
    (folder / "config.json").write_text('{"text_config": {"eos_token_id": 3}}')
    fields = model(pretrained=str(folder), continuous_batching="true").engine.fields
    assert json.loads(fields(request())["generation_config"])["eos_token_id"] == [3]
