"""Renders messages to one text, for models behind the completions endpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.base.errors import UsageError
from harness.base.hashing import digest_bytes
from harness.contracts.model import CallError, Message

PLAIN_VERSION = 1
"""Increase it when the plain form changes the text of the same messages."""

NAMES = {"user": "User", "assistant": "Assistant"}
PLAIN_STOP = "\n\nUser:"
"""Stops a model that continues with the user's next turn."""

SERVER_ADDS = "bos_token"
"""Servers put this token before every prompt, so templates get an empty text for it."""

NEEDED = "eos_token"
TRIAL = (Message("user", "Hello"),)

THINKING = re.compile(r"enable_thinking|reasoning_effort|<(seed:)?think(ing)?>|\[THINK\]")
ENDS = ("</think>", "</thinking>", "</seed:think>", "[/THINK]")
SWITCHES = ("enable_thinking", "thinking")


@dataclass(frozen=True, kw_only=True)
class Form:
    """How messages become one text.

    `render` makes the text, `identity` distinguishes this form from others in a model's identity,
    `stop` are the texts that end its answers, and `thinks` is whether it lets the model think.
    """

    render: Callable[[Sequence[Message]], str]
    identity: Mapping[str, Any]
    stop: tuple[str, ...] = ()
    thinks: bool = False


def plain_form() -> Form:
    """The form without a template: the system text, then turns under `User:` and `Assistant:`."""

    def render(messages: Sequence[Message]) -> str:
        parts = [
            turn.content if turn.role == "system" else f"{NAMES[turn.role]}: {turn.content}"
            for turn in messages
        ]
        open_end = [] if messages[-1].role == "assistant" else [f"{NAMES['assistant']}:"]
        return "\n\n".join([*parts, *open_end])

    return Form(render=render, identity={"plain": PLAIN_VERSION}, stop=(PLAIN_STOP,))


def template_form(file: Path, variables: Mapping[str, Any]) -> Form:
    """The form that a file's chat template defines; UsageError if it cannot be used."""
    try:
        source = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "the file is not UTF-8"
        raise _template_error(file, str(reason)) from error
    fill = _compile(file, source, variables)

    def render(messages: Sequence[Message]) -> str:
        begun = messages[-1].content if messages[-1].role == "assistant" else ""
        asked = messages[:-1] if begun else messages
        try:
            return fill(asked) + begun
        except Exception as error:
            raise CallError("bad_request", f"{file.name}: {_one_line(error)}") from error

    try:
        tried = fill(TRIAL)
    except Exception as error:
        raise _template_error(file, _one_line(error)) from error
    if TRIAL[0].content not in tried:
        raise _template_error(file, f"its text lacks the user's message: {tried[:60]!r}")
    identity = {"template": digest_bytes(source.encode()), "variables": dict(variables)}
    thinks = lets_think(source, variables)
    return Form(render=render, identity=identity, thinks=thinks)


def lets_think(source: str, variables: Mapping[str, Any]) -> bool:
    """Whether a chat template with these variables lets a model think before it answers.

    The template then contains signs of thinking, and its prompts do not end with the end of one.
    """
    if not THINKING.search(source):
        return False
    try:
        prompt = _compile(Path("chat_template"), source, {NEEDED: "", **variables})(TRIAL)
    except Exception:  # it uses what only its own server has
        return not any(variables.get(name) is False for name in SWITCHES)
    return not prompt.rstrip().endswith(ENDS)


def _compile(
    file: Path, source: str, variables: Mapping[str, Any]
) -> Callable[[Sequence[Message]], str]:
    """The template as a function of messages; it runs in a sandbox with the usual extensions."""
    import jinja2
    from jinja2 import meta
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )

    def raise_exception(message: str) -> str:
        raise jinja2.TemplateRuntimeError(message)

    environment.globals["raise_exception"] = raise_exception
    # Without random parts: the same messages give the same text.
    environment.globals.pop("lipsum")
    environment.filters.pop("random")
    try:
        used = meta.find_undeclared_variables(environment.parse(source))
        template = environment.from_string(source)
    except jinja2.TemplateSyntaxError as error:
        raise _template_error(file, f"line {error.lineno}: {error.message}") from error
    if NEEDED in used and NEEDED not in variables:
        hint = f"give its text with chat_template_kwargs={NEEDED}=TEXT"
        raise _template_error(file, f"it uses {NEEDED}, which has no value", hint=hint)
    given = {SERVER_ADDS: "", **variables}

    def fill(messages: Sequence[Message]) -> str:
        turns = [{"role": turn.role, "content": turn.content} for turn in messages]
        return template.render(messages=turns, add_generation_prompt=True, **given)

    return fill


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _template_error(file: Path, found: str, *, hint: str | None = None) -> UsageError:
    return UsageError(
        "the chat template cannot be used",
        where=f"--model_args, chat_template={file}",
        found=found,
        expected="a Jinja template of `messages`, such as a model's chat_template.jinja",
        hint=hint,
    )
