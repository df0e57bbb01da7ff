"""Whether weights and served models think, as far as files and arguments say so."""

import json

import pytest
from harness_models import hf_args, openai, vllm_args
from harness_models.chat_template import lets_think
from harness_models.server.weights import weights_think

from harness.base.errors import UsageError
from harness.contracts.model import ModelSettings

PLAIN = (
    "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}AI:{% endif %}"
)
QWEN = PLAIN + (
    "{% if enable_thinking is defined and enable_thinking is false %}"
    "{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}"
)
"""As in Qwen3: thinking is on, and switching it off ends it in the prompt."""

DEEPSEEK = PLAIN + "{% if thinking is defined and thinking %}<think>{% else %}</think>{% endif %}"
"""As in DeepSeek V3.1: thinking is off, and switching it on begins it in the prompt."""


@pytest.mark.parametrize(
    ("source", "variables", "thinks"),
    [
        (PLAIN, {}, False),
        (QWEN, {}, True),
        (QWEN, {"enable_thinking": True}, True),
        (QWEN, {"enable_thinking": False}, False),
        (DEEPSEEK, {}, False),
        (DEEPSEEK, {"thinking": True}, True),
        (PLAIN + "{% if add_generation_prompt %}<think>\n{% endif %}", {}, True),
        (QWEN + "{{ strftime_now('%Y') }}", {}, True),
        (QWEN + "{{ strftime_now('%Y') }}", {"enable_thinking": False}, False),
        (QWEN + "{% oops %}", {}, True),
        (QWEN + "{{ eos_token }}", {}, True),
    ],
)
def test_a_template_shows_whether_it_lets_a_model_think(source, variables, thinks):
    assert lets_think(source, variables) is thinks


@pytest.fixture
def weights(tmp_path):
    """Makes the arguments of a folder of weights with these files."""

    def make(files=None, read=vllm_args.read_args, **given):
        for name, text in (files or {}).items():
            (tmp_path / name).write_text(text)
        return read(ModelSettings(args={"pretrained": str(tmp_path), **given}))

    return make


def named(template):
    return json.dumps({"chat_template": template})


@pytest.mark.parametrize(
    "files",
    [
        {"chat_template.jinja": QWEN, "tokenizer_config.json": named(PLAIN)},
        {"chat_template.json": named(QWEN)},
        {"tokenizer_config.json": named(QWEN)},
        {
            "tokenizer_config.json": named(
                [{"name": "tools", "template": PLAIN}, {"name": "default", "template": QWEN}]
            )
        },
    ],
)
@pytest.mark.parametrize("read", [vllm_args.read_args, hf_args.read_args])
def test_weights_think_if_their_template_does(weights, files, read):
    assert weights_think(weights(files, read), commit=None) is True
    off = weights(files, read, chat_template_kwargs="enable_thinking=false")
    assert weights_think(off, commit=None) is False


def test_of_weights_without_a_template_for_chats_nobody_knows(weights):
    files = {"tokenizer_config.json": '{"model_max_length": 4096}'}
    assert weights_think(weights(files), commit=None) is None


def test_a_given_template_comes_before_the_checkpoints(weights, tmp_path):
    files = {"chat_template.jinja": QWEN, "own.jinja": PLAIN}
    args = weights(files, chat_template=str(tmp_path / "own.jinja"))
    assert weights_think(args, commit=None) is False


def test_the_tokenizers_template_comes_before_the_weights(weights, tmp_path):
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    (folder / "chat_template.jinja").write_text(PLAIN)
    args = weights({"chat_template.jinja": QWEN}, tokenizer=str(folder))
    assert weights_think(args, commit=None, tokenizer=args.tokenizer) is False


def test_a_parser_of_reasoning_means_that_weights_think(weights):
    files = {"chat_template.jinja": PLAIN}
    assert weights_think(weights(files, reasoning_parser="deepseek_r1"), commit=None) is True
    off = weights(files, reasoning_parser="qwen3", chat_template_kwargs="enable_thinking=false")
    assert weights_think(off, commit=None) is False


@pytest.mark.parametrize(("word", "thinks"), [("true", True), ("false", False)])
def test_the_user_decides_before_the_template(weights, word, thinks):
    template = PLAIN if thinks else QWEN
    args = weights({"chat_template.jinja": template}, thinking=word)
    assert weights_think(args, commit=None) is thinks
    assert "thinking" not in args.engine


def model(**given):
    return openai.make(ModelSettings(args={"model": "m", **given}))


def test_a_served_model_knows_only_what_it_is_told(tmp_path):
    assert model().thinks() is None
    assert model(thinking="auto").thinks() is None
    assert model(thinking="true").thinks() is True
    assert model(thinking="false").thinks() is False
    assert model(endpoint="completions").thinks() is False
    file = tmp_path / "chat.jinja"
    file.write_text(QWEN)
    assert model(endpoint="completions", chat_template=str(file)).thinks() is True


def test_whether_it_thinks_is_no_part_of_who_it_is():
    assert model(thinking="true").identity == model().identity


def test_any_other_word_is_refused(weights):
    with pytest.raises(UsageError, match="cannot be used") as caught:
        weights(thinking="maybe")
    assert (caught.value.found, caught.value.expected) == ("thinking=maybe", "true, false or auto")
    with pytest.raises(UsageError, match="cannot be used"):
        model(thinking="maybe")
