"""Arguments that several kinds of model read alike."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import UsageError, did_you_mean

USUAL_MODEL = "Qwen/Qwen3-8B"
USUAL_FROM = "HARNESS_PRETRAINED"
"""The variable that names another."""


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


def check_given(kind: str, given: Mapping[str, str], refused: Mapping[str, str]) -> None:
    """Raise UsageError for arguments without a value, and for those `refused`, with what to do."""
    for name, value in given.items():
        if name in refused:
            raise bad(kind, f"{name}={value}", "no such argument", hint=refused[name])
        if not value:
            raise bad(kind, f"{name}=", "a value")


def check_switches(kind: str, given: Mapping[str, str], names: Collection[str]) -> None:
    """Raise UsageError for switches that are neither on nor off."""
    for name in names:
        if given.get(name, "true") not in ("true", "false"):
            raise bad(kind, f"{name}={given[name]}", "true or false")


def unknown_argument(
    name: str, program: str, *, of: str, own: Sequence[str], known: Sequence[str]
) -> UsageError:
    """The error for an argument that is neither our `own` nor one of an installed server."""
    return UsageError(
        f"{program} has no argument {name!r}",
        where="--model_args",
        expected=f"{', '.join(own)}, or an argument of {of} with underscores",
        hint=did_you_mean(name, [*own, *known]),
    )


def model_of(kind: str, given: Mapping[str, str]) -> tuple[str, str | None]:
    """The weights to serve, and what to tell a user who named none."""
    if "model" in given and "pretrained" in given:
        expected = "either model= or pretrained=, which mean the same"
        raise bad(kind, f"model={given['model']}", expected)
    named = given.get("pretrained") or given.get("model")
    if named:
        return named, None
    chosen = os.environ.get(USUAL_FROM)
    because = f"which {USUAL_FROM} names; " if chosen else ""
    usual = chosen or USUAL_MODEL
    return usual, f"no model was named, so {usual} is asked ({because}pretrained=… names another)"


def count_of(kind: str, name: str, text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise bad(kind, f"{name}={text}", "a whole number from 1 on")
    return int(text)


def file_of(kind: str, name: str, text: str) -> Path:
    """A file that is there."""
    path = Path(text).expanduser()
    if not path.is_file():
        raise bad(kind, f"{name}={text}", "a file")
    return path


def refuse_revision(kind: str, revision: str | None) -> None:
    """Raise UsageError for a revision of a folder: a server would pass it over without a word."""
    if revision is not None:
        raise bad(kind, f"revision={revision}", "none, since a folder holds one revision")


def flags_of(engine: Mapping[str, str]) -> list[str]:
    """A server's arguments as its command line spells them: `true` and `false` are switches."""
    flags = []
    for name, value in engine.items():
        dashed = name.replace("_", "-")
        if value in ("true", "false"):
            flags.append(f"--{dashed}" if value == "true" else f"--no-{dashed}")
        else:
            flags += [f"--{dashed}", value]
    return flags


def template_kwargs(kind: str, text: str) -> dict[str, Any]:
    """`enable_thinking=false` or a JSON object; several of the first are separated by `;`."""
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
            expected = "as enable_thinking=false, or a JSON object"
            raise bad(kind, f"chat_template_kwargs={text}", expected)
        values[name.strip()] = _value(value.strip())
    return values


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
