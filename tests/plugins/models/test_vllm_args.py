"""What `--model_args` of a vLLM means, and what of it decides answers."""

import sys

import pytest
from harness_models.arguments import flags_of
from harness_models.vllm_args import read_args

from harness.base.errors import UsageError
from harness.contracts.model import ModelSettings


def read(concurrency=None, **given):
    return read_args(ModelSettings(args=given, concurrency=concurrency))


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.delenv("HARNESS_PRETRAINED", raising=False)
    monkeypatch.delenv("HARNESS_VLLM_PYTHON", raising=False)


def test_arguments_go_before_the_environment_and_that_before_the_usual(monkeypatch):
    args = read()
    assert (args.model, args.python) == ("Qwen/Qwen3-8B", sys.executable)
    assert args.engine == {"enable_prefix_caching": "true", "generation_config": "vllm"}
    monkeypatch.setenv("HARNESS_PRETRAINED", "org/mine")
    monkeypatch.setenv("HARNESS_VLLM_PYTHON", "/opt/python")
    assert (read().model, read().python) == ("org/mine", "/opt/python")
    assert read().note == (
        "no model given: using org/mine (from HARNESS_PRETRAINED; pretrained=… chooses another)"
    )
    args = read(pretrained="org/other", python="/usr/python")
    assert (args.model, args.python) == ("org/other", "/usr/python")


def test_what_is_given_goes_before_a_preset_and_that_before_the_defaults():
    args = read(preset="h200", max_num_batched_tokens="4096")
    assert args.engine == {
        "enable_prefix_caching": "true",
        "generation_config": "vllm",
        "max_num_seqs": "1024",
        "gpu_memory_utilization": "0.94",
        "max_num_batched_tokens": "4096",
    }


@pytest.mark.parametrize(
    ("given", "in_flight"),
    [
        ({}, 288),
        ({"max_num_seqs": "16"}, 24),
        ({"max_num_seqs": "64", "data_parallel_size": "4"}, 288),
    ],
)
def test_more_requests_are_in_flight_than_the_engines_hold_unless_it_is_said(given, in_flight):
    assert read(**given).concurrency == in_flight
    assert read(concurrency=5, **given).concurrency == 5
    own = ModelSettings(args={"concurrency": "7", **given}, concurrency=5)
    assert read_args(own).concurrency == 7


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("enable_thinking=false;effort=low", {"enable_thinking": False, "effort": "low"}),
        ('{"enable_thinking": true, "budget": 7}', {"enable_thinking": True, "budget": 7}),
    ],
)
def test_what_a_chat_template_is_told(text, meaning):
    assert read(chat_template_kwargs=text).chat_template_kwargs == meaning


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"port": "8000"}, "port=8000"),
        ({"preset": "a100"}, "preset=a100"),
        ({"max_num_seqs": "many"}, "max_num_seqs=many"),
        ({"tensor_parallel_size": "0"}, "tensor_parallel_size=0"),
        ({"enable_prefix_caching": "maybe"}, "enable_prefix_caching=maybe"),
        ({"chat_template": "/no/such.jinja"}, "chat_template=/no/such.jinja"),
        ({"chat_template_kwargs": "thinking"}, "chat_template_kwargs=thinking"),
        ({"chat_template_kwargs": "{broken"}, "chat_template_kwargs={broken"),
        ({"pretrained": "a", "model": "b"}, "model=b"),
        ({"dtype": ""}, "dtype="),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(given, found):
    with pytest.raises(UsageError) as caught:
        read(**given)
    assert caught.value.found == found


def test_switches_and_values_as_the_command_line_spells_them():
    flags = flags_of({"enforce_eager": "true", "enable_prefix_caching": "false", "seed": "3"})
    assert flags == ["--enforce-eager", "--no-enable-prefix-caching", "--seed", "3"]
