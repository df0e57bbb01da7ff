"""Messages as one text, for models that are asked at the completions endpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.errors import UsageError
from harness.contracts.model import CallError, Message

PLAIN_VERSION = 1
"""Raised when the plain form of the same messages would be another text."""

NAMES = {"user": "User", "assistant": "Assistant"}
PLAIN_STOP = "\n\nUser:"
"""Where a model that goes on by itself begins the user's next turn."""

SERVER_ADDS = "bos_token"
"""Servers put it in front of every prompt: a template that does so too gets nothing for it."""

NEEDED = "eos_token"
TRIAL = (Message("user", "Hello"),)


@dataclass(frozen=True, kw_only=True)
class Form:
    """How messages become a text: `render`, what tells this form from another, and where its
    answers stop."""

    render: Callable[[Sequence[Message]], str]
    identity: Mapping[str, Any]
    stop: tuple[str, ...] = ()


def plain_form() -> Form:
    """What the system says, then turns under `User:` and `Assistant:`, blank lines between."""
    return Form(render=_plain, identity={"plain": PLAIN_VERSION}, stop=(PLAIN_STOP,))


def template_form(file: Path, variables: Mapping[str, Any]) -> Form:
    """The form of a chat template in a file; UsageError for one that cannot be used."""
    try:
        source = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise _bad(file, str(reason)) from error
    fill = _compiled(file, source, variables)

    def render(messages: Sequence[Message]) -> str:
        begun = messages[-1].content if messages[-1].role == "assistant" else ""
        asked = messages[:-1] if begun else messages
        try:
            return fill(asked) + begun
        except Exception as error:
            raise CallError("bad_request", f"{file.name}: {_told(error)}") from error

    try:
        tried = fill(TRIAL)
    except Exception as error:
        raise _bad(file, _told(error)) from error
    if TRIAL[0].content not in tried:
        raise _bad(file, f"it says nothing of what the user says, but {tried[:60]!r}")
    digest = hashlib.blake2b(source.encode(), digest_size=16).hexdigest()
    return Form(render=render, identity={"template": digest, "variables": dict(variables)})


def _plain(messages: Sequence[Message]) -> str:
    parts = [
        turn.content if turn.role == "system" else f"{NAMES[turn.role]}: {turn.content}"
        for turn in messages
    ]
    if messages[-1].role != "assistant":
        parts.append(f"{NAMES['assistant']}:")
    return "\n\n".join(parts)


def _compiled(
    file: Path, source: str, variables: Mapping[str, Any]
) -> Callable[[Sequence[Message]], str]:
    """The template as a function of messages, in a sandbox, with what such templates rely on."""
    import jinja2
    from jinja2 import meta
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals["raise_exception"] = _refuse
    # The same messages give the same text.
    environment.globals.pop("lipsum")
    environment.filters.pop("random")
    try:
        used = meta.find_undeclared_variables(environment.parse(source))
        template = environment.from_string(source)
    except jinja2.TemplateSyntaxError as error:
        raise _bad(file, f"line {error.lineno}: {error.message}") from error
    if NEEDED in used and NEEDED not in variables:
        raise _bad(
            file, f"it needs {NEEDED}", hint=f"chat_template_kwargs={NEEDED}=TEXT says what it is"
        )
    given = {SERVER_ADDS: "", **variables}

    def fill(messages: Sequence[Message]) -> str:
        turns = [{"role": turn.role, "content": turn.content} for turn in messages]
        return template.render(messages=turns, add_generation_prompt=True, **given)

    return fill


def _refuse(message: str) -> str:
    import jinja2

    raise jinja2.TemplateRuntimeError(message)


def _told(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _bad(file: Path, found: str, *, hint: str | None = None) -> UsageError:
    return UsageError(
        "the chat template cannot be used",
        where=f"--model_args, chat_template={file}",
        found=found,
        expected="a Jinja template of `messages`, as in a model's chat_template.jinja",
        hint=hint,
    )
