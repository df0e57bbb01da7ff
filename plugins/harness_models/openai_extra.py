"""`extra_body`: what a server is sent beside what the harness says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harness.errors import UsageError

NAME = "extra_body"

SAID_BY = {
    "model": "model=NAME",
    "messages": "the prompts say it",
    "prompt": "the prompts say it",
    "temperature": "--gen_kwargs temperature=…",
    "top_p": "--gen_kwargs top_p=…",
    "max_tokens": "--gen_kwargs max_tokens=…",
    "max_completion_tokens": "--gen_kwargs max_tokens=…",
    "stop": "stop=TEXT, or --gen_kwargs stop=…",
    "seed": "--seed",
    "response_format": "--structured",
    "logprobs": "logprobs=true",
    "top_logprobs": "top_logprobs=N",
    "n": "--num_repeats asks several times: one answer is read of each reply",
    "stream": "answers are read whole",
    "api_key": "api_key_env=NAME, the variable that holds it",
    "echo": "answers are read without the prompt",
}
"""What the harness itself sends or relies on, and who says it."""

TOKENS_FIELDS = ("max_tokens", "max_completion_tokens")


def is_extra(name: str) -> bool:
    """Whether an argument is `extra_body`, or a field of it."""
    return name == NAME or name.startswith(f"{NAME}.")


def read_extra(args: Mapping[str, str]) -> dict[str, Any]:
    """The fields that `extra_body={…}` and `extra_body.NAME=VALUE` add to every request."""
    found: dict[str, Any] = {}
    for name, text in args.items():
        if name == NAME:
            _merge(found, _whole(text), written=f"{name}={text}")
        elif is_extra(name):
            below: Any = _value(text)
            for part in reversed(name.split(".")[1:]):
                below = {part: below}
            _merge(found, below, written=f"{name}={text}")
    for field in found:
        if field in SAID_BY:
            raise _bad(f"{NAME} with {field!r}", "what the harness does not send itself",
                       hint=SAID_BY[field])  # fmt: skip
    return found


def _merge(into: dict[str, Any], more: Mapping[str, Any], *, written: str) -> None:
    for name, value in more.items():
        if name not in into:
            into[name] = value
        elif isinstance(into[name], dict) and isinstance(value, dict):
            _merge(into[name], value, written=written)
        else:
            raise _bad(written, f"each field once: {name!r} is there already")


def _whole(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise _bad(f"{NAME}={text}", f"a JSON object ({error})",
                   hint=f"{NAME}.NAME=VALUE gives one field") from None  # fmt: skip
    if not isinstance(value, dict):
        raise _bad(f"{NAME}={text}", "a JSON object")
    return value


def _value(text: str) -> Any:
    """The value as JSON where it is some, else as text."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError:
        return text


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _bad(found: str, expected: str, *, hint: str | None = None) -> UsageError:
    return UsageError(
        "the extra fields of requests cannot be used",
        where="--model_args",
        found=found,
        expected=expected,
        hint=hint,
    )
