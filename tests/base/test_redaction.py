"""What holds a key is told nowhere; key files of this machine, or handed over by another."""

import time

import pytest

from harness.base import key_files
from harness.base.key_files import hand_over, key_text
from harness.base.redaction import (
    names_a_secret,
    redacted_args,
    redacted_spec,
    safe_text,
    secret_member,
    without_echoes,
    without_key_material,
)


@pytest.mark.parametrize(
    "name",
    ["api_key", "apiKey", "APIKEY", "OPENAI_API_KEY", "token", "hf-token", "client_secret",
     "password", "auth", "Authorization", "db.passwd", "accessToken",
     "extra_body.auth.token", "token_value", "aws_access_key_id"],
)  # fmt: skip
def test_names_of_secrets(name):
    assert names_a_secret(name)


@pytest.mark.parametrize(
    "name",
    ["max_tokens", "eos_token", "tokenizer", "monkey", "keyboard", "author", "model",
     "base_url", "seed",
     "api_key_env", "api_key_file", "stop_token_ids", "long_prefill_token_threshold",
     "return_tokens_as_token_ids", "prompt_cache_key", "image_token"],
)  # fmt: skip
def test_names_of_other_things(name):
    assert not names_a_secret(name)


def test_arguments_at_any_depth_and_values_of_secret_variables_wherever_they_stand():
    args = {"api_key": "x", "token": None, "headers": {"Authorization": "y"}, "n": 3}
    assert redacted_args(args) == {
        "api_key": "[redacted]", "token": None, "headers": {"Authorization": "[redacted]"}, "n": 3,
    }  # fmt: skip
    value = {"a": ["x s3cret-value y", 1, None], "s3cret-value": True}
    assert without_key_material(value, ("s3cret-value",)) == {
        "a": ["x [redacted] y", 1, None],
        "[redacted]": True,
    }


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        ("openai:model=m,api_key=abc,top_k=3", "openai:model=m,api_key=[redacted],top_k=3"),
        ("model=m, api_key = abc, top_k=3", "model=m, api_key = [redacted], top_k=3"),
        ("password=a,b c,model=m", "password=[redacted],model=m"),
        ("http://h/v1?token=abc&top_k=3", "http://h/v1?token=[redacted]&top_k=3"),
        ("api_key=abc model=m", "api_key=[redacted] model=m"),
        ("api_key=abc\nfound: it", "api_key=[redacted]\nfound: it"),
        ('body={"token": "a, b", "n": "c"}', 'body={"token": "[redacted]", "n": "c"}'),
        ("api_key_env=NAME, top_k = 3", "api_key_env=NAME, top_k = 3"),
        ("api_key=", "api_key="),
    ],
)
def test_a_model_spec_keeps_what_is_no_secret(spec, left):
    assert redacted_spec(spec) == left
    assert redacted_spec(left) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("key sk-proj-abcdefghijklmnop1234 refused", "key [redacted] refused"),
        ("hf_abcdefghijklmnopqrst", "[redacted]"),
        ("Authorization: Bearer abc.def-ghi_jkl", "Authorization: Bearer [redacted]"),
        ("https://user:pw@host:80/v1?a=b", "https://[redacted]@host:80/v1?a=b"),
        ("mail me@home or see https://host/@user", "mail me@home or see https://host/@user"),
        ("a task-based ask-for-something-very-long", "a task-based ask-for-something-very-long"),
    ],
)
def test_key_material_in_texts(text, left):
    assert without_key_material(text, ()) == left


def test_short_values_and_other_variables_are_left_alone(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setenv("SOME_TOKEN_PATH", "/home/someone/token")
    assert without_key_material("test /home/someone/token") == "test /home/someone/token"


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"a": [{"b": {"token": "x"}}]}, "token"),
        ([{"password": "x"}], "password"),
        ({"properties": {"key": {"type": "string"}}, "token": "", "secret": None}, None),
        ({"stop_token_ids": [1], "eos_token": "</s>"}, None),
        ("token", None),
    ],
)
def test_a_member_that_is_named_like_a_secret_and_holds_a_text(value, name):
    assert secret_member(value) == name


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a s3cret+value/1 b", "a *** b"),
        (r"a s3cret\u002Bvalue\/1 b", "a *** b"),
        ("a s3cret%2bvalue%2F1 b", "a *** b"),
        ("a s3cret%252Bvalue%252F1 b", "a *** b"),
        ("a s3cret&#43;value&#x2F;1 b", "a *** b"),
        ("a czNjcmV0K3ZhbHVlLzE= b", "a ***E= b"),  # of `s3cret+value/1`
        ("a QmVhcmVyIHMzY3JldCt2YWx1ZS8x b", "a QmVhcmVyIH*** b"),  # of `Bearer s3cret+value/1`
        ("a s3cret+valu b", "a s3cret+valu b"),
        ("s3cret+value/1s3cret+value/1", "******"),
    ],
)
def test_every_form_in_which_servers_repeat_a_secret(text, left):
    assert without_echoes(text, ["s3cret+value/1"]) == left


def test_words_are_no_secrets_and_what_a_model_said_loses_whole_ones_only():
    assert without_echoes("a test of hunter2", ["test", "", "hunter2"]) == "a test of ***"
    said = r'{"text": "understanding people; understanding-of-\u0070eople"}'
    left = '{"text": "understanding people; ***"}'
    assert without_echoes(said, ["understanding-of-people"], whole=True) == left


@pytest.mark.parametrize("sign", ["\\", "%25", "&#0", "\\u0"])
def test_hostile_texts_take_no_time(sign):
    began = time.process_time()
    assert without_echoes(sign * 100_000, ["s3cret+value/1"]) == sign * 100_000
    assert time.process_time() - began < 5


@pytest.fixture(autouse=True)
def nothing_handed(monkeypatch):
    monkeypatch.setattr(key_files, "_handed", {})


def test_a_text_that_was_handed_over_stands_in_for_a_missing_file_and_is_redacted(tmp_path):
    named = str(tmp_path / "key")
    with pytest.raises(FileNotFoundError):
        key_text(named)
    hand_over({named: "key-of-the-driver\n"})
    assert key_text(named) == "key-of-the-driver\n"
    (tmp_path / "key").write_text("own")
    assert key_text(named) == "own"
    hand_over({"key": "handed-3f2a9c71b8\n"})
    assert safe_text("Bearer of handed-3f2a9c71b8.") == "Bearer of [redacted]."
