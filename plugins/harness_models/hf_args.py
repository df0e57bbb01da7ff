"""The arguments of an `hf` model: ours, and those of `transformers serve` by their own names."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.contracts.model import ModelSettings
from harness_models.arguments import (
    bad,
    check_given,
    check_switches,
    count_of,
    file_of,
    model_of,
    template_kwargs,
    unknown_argument,
)

KIND = "hf"
PROGRAM = "transformers serve"

OWN = (
    "pretrained", "model", "python", "revision", "chat_template", "chat_template_kwargs",
    "max_model_len", "concurrency",
)  # fmt: skip

SWITCHES = ("trust_remote_code", "continuous_batching", "compile")

KNOWN = (*SWITCHES, "dtype", "device", "attn_implementation")
"""The server's own that are taken without asking it, which costs three seconds."""

OF_THE_MACHINE = frozenset({
    "device", "compile", "continuous_batching", "cb_block_size", "cb_num_blocks",
    "cb_max_batch_tokens", "cb_max_memory_percent", "cb_use_cuda_graph", "trust_remote_code",
    "log_level",
})  # fmt: skip
"""What decides how fast an answer comes, and whether it fits, but not what it says."""

TAKEN = {
    "host": "the harness chooses the address",
    "port": "the harness chooses the address",
    "force_model": "pretrained=…",
    "default_seed": "--seed, which goes along with each request",
    "model_timeout": "the model stays loaded as long as its server runs",
    "enable_cors": "only the harness asks this server",
    "tokenizer": "transformers serve takes the tokenizer in the checkpoint's own folder",
    "lora": "transformers serve takes whole weights: merge the adapter into them",
    "help": "`transformers serve --help`",
}
"""What stands in our way or is not to be had, and what stands in for it."""

BATCHED = 64
"""Requests in flight where the server can answer several at once."""

OPTION = re.compile(
    r"^[\s│|]*--(?P<name>[a-z][a-z0-9-]*)(?P<off>\s*/\s*--no-[a-z0-9-]+)?(?P<takes>\s+\S+)?", re.M
)
"""A line of the server's help: `--on / --no-on`, `--name TYPE` or `--name [one|two]`."""


@dataclass(frozen=True, kw_only=True)
class HfArgs:
    """What `--model_args` says of the server; `engine` are the arguments that it is given.

    `note` is what the user should know of it.
    """

    model: str
    note: str | None = None
    python: str
    revision: str | None = None
    chat_template: Path | None = None
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    max_model_len: int | None = None
    concurrency: int
    engine: Mapping[str, str]

    @property
    def batching(self) -> bool:
        """Whether the server answers several requests at once."""
        return self.engine.get("continuous_batching") == "true"


def read_args(settings: ModelSettings) -> HfArgs:
    """The arguments, checked as far as the server need not be asked; UsageError for a wrong one."""
    given = dict(settings.args)
    check_given(KIND, given, TAKEN)
    model, note = model_of(KIND, given)
    engine = {name: value for name, value in given.items() if name not in OWN}
    check_switches(KIND, engine, SWITCHES)
    template, more = given.get("chat_template"), given.get("chat_template_kwargs")
    length = given.get("max_model_len")
    return HfArgs(
        model=model,
        note=note,
        python=given.get("python") or os.environ.get("HARNESS_HF_PYTHON") or sys.executable,
        revision=given.get("revision"),
        chat_template=file_of(KIND, "chat_template", template) if template else None,
        chat_template_kwargs=template_kwargs(KIND, more) if more else {},
        max_model_len=count_of(KIND, "max_model_len", length) if length else None,
        concurrency=_concurrency(given, settings, batching=_is_on(engine, "continuous_batching")),
        engine=engine,
    )


def check_with_help(shown: str, engine: Mapping[str, str]) -> None:
    """Hold arguments against what the installed server's help shows; UsageError for a wrong one."""
    known = {found["name"].replace("-", "_"): found for found in OPTION.finditer(shown)}
    for name, value in engine.items():
        if name not in known:
            free = [each for each in known if each not in TAKEN]
            raise unknown_argument(name, PROGRAM, of=f"`{PROGRAM}`", own=OWN, known=free)
        wanted = _unmet(known[name], value)
        if wanted is not None:
            raise bad(KIND, f"{name}={value}", wanted)


def _unmet(option: re.Match[str], value: str) -> str | None:
    """What an option wants of a value that does not suit it."""
    takes = (option["takes"] or "").strip()
    if option["off"]:
        return None if value in ("true", "false") else "true or false"
    if takes == "INTEGER":
        return None if re.fullmatch(r"-?\d+", value) else "a whole number"
    if takes == "FLOAT":
        return None if re.fullmatch(r"-?\d*\.?\d+", value) else "a number"
    if takes.startswith("["):
        choices = takes.strip("[]").split("|")
        return None if value in choices else "one of " + ", ".join(choices)
    return None


def _is_on(engine: Mapping[str, str], name: str) -> bool:
    return engine.get(name) == "true"


def _concurrency(given: Mapping[str, str], settings: ModelSettings, *, batching: bool) -> int:
    """Requests in flight: without batching one, since they would only wait in the server.

    There, seeds would be worse than late: the server has one generator for all, and a request
    sets it as it comes in, under whichever is being answered.
    """
    wanted = given.get("concurrency")
    told = count_of(KIND, "concurrency", wanted) if wanted else None
    if batching:
        return told or settings.concurrency or BATCHED
    if told is not None and told > 1:
        raise bad(
            KIND,
            f"concurrency={told}",
            "1, since transformers serve answers one request after the other",
            hint="continuous_batching=true answers several at once",
        )
    return 1
