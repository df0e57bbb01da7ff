"""Checks and readers for arguments that several kinds of model share."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.errors import UsageError, did_you_mean
from harness.base.redaction import names_a_secret, secret_member, without_key_material

DEFAULT_MODEL = "Qwen/Qwen3-8B"
DEFAULT_MODEL_ENV = "HARNESS_PRETRAINED"
"""The environment variable that replaces DEFAULT_MODEL."""

HUB_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
"""The environment variables that hold the hub's token."""

THINKING = {"true": True, "false": False, "auto": None}

_PLACES = {
    "openai": "api_key_env=NAME, a variable that holds the key, or api_key_file=FILE",
    "vllm": "the hub's token in HF_TOKEN; no other key: only the harness uses this server",
    "hf": "the hub's token in HF_TOKEN; no other key: only the harness uses this server",
}
_USER = re.compile(r"//[^\s/@?#]+@")
"""The user in an address, who may have a password there."""


@dataclass(frozen=True, kw_only=True)
class WeightsArgs:
    """The parsed `--model_args` that all servers of weights share.

    `engine` holds the arguments that are passed to the server, `requests` those of an `openai`
    model about requests, `note` a remark for the user.
    """

    model: str
    note: str | None
    python: str
    revision: str | None
    chat_template: Path | None
    chat_template_kwargs: Mapping[str, Any]
    concurrency: int
    engine: Mapping[str, str]
    requests: Mapping[str, Any]
    thinking: bool | None = None

    @property
    def completions(self) -> bool:
        """True if the harness renders the prompts, so that no chat template is needed."""
        return self.requests.get("endpoint") == "completions"


def shared_of(
    kind: str, given: Mapping[str, str], refused: Mapping[str, str], switches: Collection[str]
) -> dict[str, Any]:
    """The fields of WeightsArgs, without those that each kind reads; UsageError if wrong.

    None may be empty, or one of the names in `refused`, which hold the hints, and `switches` are
    true or false.
    """
    for name, value in given.items():
        if name in refused:
            expected = f"--model_args without {name}"
            raise bad(kind, f"{name}={value}", expected, hint=refused[name])
        if not value:
            raise bad(kind, f"{name}=", f"{name}=VALUE")
        if name in switches and value not in ("true", "false"):
            raise bad(kind, f"{name}={value}", "true or false")
    if "model" in given and "pretrained" in given:
        expected = "model= or pretrained=, not both: they are synonyms"
        raise bad(kind, f"model={given['model']}", expected)
    model, note = given.get("pretrained") or given.get("model"), None
    if not model:
        chosen = os.environ.get(DEFAULT_MODEL_ENV)
        source = f"from {DEFAULT_MODEL_ENV}; " if chosen else ""
        model = chosen or DEFAULT_MODEL
        note = f"no model given: using {model} ({source}pretrained=… chooses another)"
    template, variables = given.get("chat_template"), given.get("chat_template_kwargs")
    file = Path(template).expanduser() if template else None
    if file is not None and not file.is_file():
        raise bad(kind, f"chat_template={template}", "the path of an existing file")
    kwargs = template_kwargs(kind, variables) if variables else {}
    thinking = given.get("thinking", "auto")
    if thinking not in THINKING:
        raise bad(kind, f"thinking={thinking}", "true, false or auto")
    python = given.get("python") or os.environ.get(f"HARNESS_{kind.upper()}_PYTHON")
    return {
        "model": model,
        "note": note,
        "python": python or sys.executable,
        "revision": given.get("revision"),
        "chat_template": file,
        "chat_template_kwargs": kwargs,
        "thinking": THINKING[thinking],
    }


def bad(
    kind: str,
    argument: str,
    expected: str,
    *,
    hint: str | None = None,
    where: str = "--model_args",
) -> UsageError:
    """The error for an argument, as `name=value`, that cannot be used."""
    return UsageError(
        f"an argument of the {kind} model cannot be used",
        where=where,
        found=argument,
        expected=expected,
        hint=hint,
    )


def check_no_keys(kind: str, given: Mapping[str, str]) -> None:
    """Raise UsageError, without repeating it, if an argument is a key, or holds one.

    Arguments are shown, recorded and seen by everybody who lists the processes of a machine.
    """
    for name, value in given.items():
        inside = secret_member(json_or_text(value))
        if name == "chat_template_kwargs" and not value.lstrip().startswith("{"):
            names = (part.partition("=")[0].strip() for part in value.split(";"))
            inside = inside or next((one for one in names if names_a_secret(one)), None)
        named = names_a_secret(name) and value not in ("true", "false")
        if inside is not None or named:
            found = name if inside is None else f"{inside} in {name}"
        elif _USER.sub("//", value) != without_key_material(_USER.sub("//", value)):
            found = f"in {name} a key, or the value of a variable that holds one"
        else:
            continue
        raise UsageError(
            f"an argument of the {kind} model is a key, token or password",
            where="--model_args",
            found=found,
            expected=_PLACES.get(kind, "no key: this model needs none"),
        )


def unknown_argument(
    name: str, program: str, *, of: str, own: Sequence[str], known: Sequence[str]
) -> UsageError:
    """The error for an argument that neither the harness (`own`) nor the server (`known`) has."""
    return UsageError(
        f"{program} has no argument {name!r}",
        where="--model_args",
        expected=f"{', '.join(own)}, or an argument of {of} with underscores",
        hint=did_you_mean(name, [*own, *known]),
    )


def variables_of(given: Mapping[str, str]) -> tuple[str, ...]:
    """The environment variables that decide which weights are served, and whether the hub has them
    for us."""
    named = given.get("pretrained") or given.get("model")
    return HUB_TOKENS if named else (*HUB_TOKENS, DEFAULT_MODEL_ENV)


def count_of(kind: str, name: str, text: str, *, least: int = 1) -> int:
    """The whole number, at least `least`, that a text spells; UsageError for any other text."""
    if not text.isdecimal() or int(text) < least:
        raise bad(kind, f"{name}={text}", f"a whole number, at least {least}")
    return int(text)


def flags_of(engine: Mapping[str, str]) -> list[str]:
    """The command-line flags of a server's arguments; `true` and `false` become switches."""
    flags = []
    for name, value in engine.items():
        dashed = name.replace("_", "-")
        if value in ("true", "false"):
            flags.append(f"--{dashed}" if value == "true" else f"--no-{dashed}")
        else:
            flags += [f"--{dashed}", value]
    return flags


def template_kwargs(
    kind: str,
    text: str,
    *,
    form: str = "NAME=VALUE;NAME=VALUE, as in enable_thinking=false",
    strip: bool = True,
) -> dict[str, Any]:
    """The variables in `NAME=VALUE;NAME=VALUE`, with JSON or text values, or in a JSON object.

    `form` describes the former in errors. `strip` removes blanks around texts.
    """
    if text.lstrip().startswith("{"):
        try:
            return dict(json.loads(text))
        except ValueError as error:
            expected = f"a JSON object ({error})"
            raise bad(kind, f"chat_template_kwargs={text}", expected) from None
    values = {}
    for part in text.split(";"):
        name, equals, value = part.partition("=")
        if not equals or not name.strip().isidentifier():
            raise bad(kind, f"chat_template_kwargs={text}", f"{form}, or a JSON object")
        values[name.strip()] = json_or_text(value.strip() if strip else value)
    return values


def json_or_text(text: str) -> Any:
    """The JSON value of a text; the text itself if it is not JSON."""
    try:
        return json.loads(text, parse_constant=reject_constant)
    except ValueError:
        return text


def reject_constant(name: str) -> Any:
    """Raise ValueError: Python's decoder accepts NaN and Infinity, which are not JSON."""
    raise ValueError(f"{name} is not JSON")
