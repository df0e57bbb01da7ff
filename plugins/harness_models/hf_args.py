"""The arguments of an `hf` model: the harness's own, and all arguments of `transformers serve`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.contracts.model import ModelSettings
from harness_models.arguments import (
    WeightsArgs,
    bad,
    count_of,
    shared_of,
    unknown_argument,
)
from harness_models.openai_args import OF_REQUESTS, is_extra, request_args

KIND = "hf"
PROGRAM = "transformers serve"

OWN = (
    "pretrained", "model", "python", "revision", "chat_template", "chat_template_kwargs",
    "thinking", "max_model_len", "concurrency", *OF_REQUESTS, "extra_body",
)  # fmt: skip

SWITCHES = ("trust_remote_code", "continuous_batching", "compile")

KNOWN = (*SWITCHES, "dtype", "device", "attn_implementation")
"""The server's arguments that pass without a look at its help, which takes three seconds."""

SPEED_ARGS = frozenset({
    "device", "compile", "continuous_batching", "cb_block_size", "cb_num_blocks",
    "cb_max_batch_tokens", "cb_max_memory_percent", "cb_use_cuda_graph", "trust_remote_code",
    "log_level",
})  # fmt: skip
"""Arguments that decide the speed and the memory of answers, but not their text."""

RESERVED = {
    "host": "leave it out: the harness chooses the address",
    "port": "leave it out: the harness chooses the address",
    "force_model": "use pretrained=…",
    "default_seed": "use --seed, which is sent with each request",
    "model_timeout": "leave it out: the model stays loaded while its server runs",
    "enable_cors": "leave it out: only the harness uses this server",
    "tokenizer": "transformers serve takes the tokenizer from the checkpoint's own folder",
    "lora": "transformers serve takes whole weights: merge the adapter into them",
    "help": "use `transformers serve --help`",
}
"""Arguments that the harness sets itself or the server lacks → what to do."""

MADE_HERE = {"generation_config", "chat_template_kwargs"}
"""Fields that the harness sets in each request."""

BATCHED = 64
"""Requests in flight if the server can answer several at once."""

OPTION = re.compile(
    r"^[\s│|]*--(?P<name>[a-z][a-z0-9-]*)(?P<off>\s*/\s*--no-[a-z0-9-]+)?(?P<takes>\s+\S+)?", re.M
)
"""A line of the server's help: `--on / --no-on`, `--name TYPE` or `--name [one|two]`."""

TYPES = {
    "off": ("true|false", "true or false"),
    "INTEGER": (r"-?\d+", "a whole number"),
    "FLOAT": (r"-?\d*\.?\d+", "a number"),
}
"""What an option takes → the values that fit, and what they are."""


@dataclass(frozen=True, kw_only=True)
class HfArgs(WeightsArgs):
    """The parsed `--model_args`; with `batching`, the server answers several requests at once."""

    max_model_len: int | None
    batching: bool


def read_args(settings: ModelSettings) -> HfArgs:
    """The arguments, checked as far as is possible without the server; UsageError if wrong."""
    given = dict(settings.args)
    shared = shared_of(KIND, given, RESERVED, SWITCHES)
    requests = request_args(KIND, given, shared)
    taken = sorted(requests.get("extra_body", {}).keys() & MADE_HERE)
    if taken:
        expected = f"extra_body without {taken[0]}: the harness sets it in each request"
        raise bad(KIND, f"extra_body.{taken[0]}", expected)
    engine = {
        name: value for name, value in given.items() if name not in OWN and not is_extra(name)
    }
    length, batching = given.get("max_model_len"), engine.get("continuous_batching") == "true"
    # Without batching, more would only wait in the server, and spoil the seeds: it has a single
    # random generator, and an arriving request sets its seed while another one is being answered.
    in_flight = given.get("concurrency")
    concurrency = count_of(KIND, "concurrency", in_flight) if in_flight else None
    if batching:
        concurrency = concurrency or settings.concurrency or BATCHED
    elif concurrency is not None and concurrency > 1:
        raise bad(
            KIND,
            f"concurrency={concurrency}",
            "concurrency=1: transformers serve answers one request after the other",
            hint="continuous_batching=true answers several at once",
        )
    return HfArgs(
        **shared,
        max_model_len=count_of(KIND, "max_model_len", length) if length else None,
        batching=batching,
        concurrency=concurrency or 1,
        engine=engine,
        requests=requests,
    )


def check_with_help(help_text: str, engine: Mapping[str, str]) -> None:
    """Raise UsageError for arguments that do not fit the installed server's help text."""
    known = {found["name"].replace("-", "_"): found for found in OPTION.finditer(help_text)}
    for name, value in engine.items():
        if name not in known:
            free = [each for each in known if each not in RESERVED]
            raise unknown_argument(name, PROGRAM, of=f"`{PROGRAM}`", own=OWN, known=free)
        takes = "off" if known[name]["off"] else (known[name]["takes"] or "").strip()
        pattern, expected = TYPES.get(takes, (".*", ""))
        if takes.startswith("["):
            choices = takes.strip("[]").split("|")
            pattern, expected = "|".join(map(re.escape, choices)), f"one of {', '.join(choices)}"
        if not re.fullmatch(pattern, value, re.DOTALL):
            raise bad(KIND, f"{name}={value}", expected)
