"""One record as text for a terminal: everything in it, nothing that could steer the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from harness.calls.usage import player_name
from harness.reporting.text import clean_text
from harness.results.manifest import Manifest
from harness.results.records import CallRecord, Done, JournalLine

_WIDTH = 88
_INDENT = "    "


def record_lines(
    task: str, stage: str, record: JournalLine[Any, Any], manifest: Manifest
) -> Iterator[str]:
    """The record from its item over each call to its outcome; its manifest says who was asked."""
    yield _rule(f"{task} / {stage} / {record.id}  (user {record.user})", "═")
    yield from _block("item", _json(record.item))
    for number, call in enumerate(record.calls, 1):
        by_rule = manifest.by_rule(task, player_name(call.role, call.member))
        told = _described(call, by_rule=by_rule)
        yield _rule(f"call {number} of {len(record.calls)}: {told}", "─")
        yield from _call(call)
    for judged in record.judged or ():
        if judged.votes:
            yield _rule(f"votes of {judged.role}, prompt {judged.prompt}", "─")
            for vote in judged.votes:
                yield from _block(vote.member, _json(vote.verdict))
    if isinstance(record.outcome, Done):
        yield _rule("value", "─")
        yield from _indented(_json(record.outcome.value))
    else:
        yield _rule(f"failed: {record.outcome.cause}", "─")
        yield from _indented(record.outcome.detail)
    yield ""


def _call(call: CallRecord) -> Iterator[str]:
    for message in call.messages:
        yield from _block(message.role, message.content)
    if call.reasoning is not None:
        yield from _block("reasoning", call.reasoning)
    if call.text is not None:
        yield from _block("answer", call.text)
    if call.failure is not None:
        yield from _block(f"failed: {call.failure.cause}", call.failure.detail)


def _described(call: CallRecord, *, by_rule: bool) -> str:
    who = f"{call.role} {call.member}" if call.member else call.role
    parts = [f"{who}, prompt {call.prompt}, from {call.source}"]
    if call.repeat:
        parts.append(f"repeat {call.repeat}")
    if call.finish is not None:
        parts.append(f"ended by {call.finish}")
    if call.rung is not None:
        parts.append(f"read as {call.rung}")
    if call.asked_schema:
        parts.append("schema asked for")
    if call.attempts > 1:
        parts.append(f"{call.attempts} attempts")
    if call.usage is not None:
        parts.append(f"{call.usage.prompt_tokens} + {call.usage.completion_tokens} tokens")
    elif call.finish is not None and not by_rule:
        parts.append("tokens unknown")
    if call.source == "model":
        parts.append(f"{call.seconds:.1f} s")
    return ", ".join(parts)


def _block(title: str, text: str) -> Iterator[str]:
    yield f"{clean_text(title)}:"
    yield from _indented(text)


def _indented(text: str) -> Iterator[str]:
    for line in clean_text(text, lines=True).split("\n"):
        yield f"{_INDENT}{line}" if line else ""


def _rule(title: str, stroke: str) -> str:
    return f"{stroke * 2} {clean_text(title)} ".ljust(_WIDTH, stroke)


def _json(value: Any) -> str:
    return laid_out(msgspec.to_builtins(value), width=_WIDTH - len(_INDENT))


def laid_out(value: Any, *, width: int, before: int = 0) -> str:
    """A JSON value on one line where it fits into the width, else one member a line.

    `before` are the characters that stand on its line already.
    """
    flat = json.dumps(value, ensure_ascii=False)
    if before + len(flat) <= width or not value or not isinstance(value, (dict, list)):
        return flat
    if isinstance(value, dict):
        opened, closed = "{", "}"
        members = [(f"{json.dumps(str(name), ensure_ascii=False)}: ", one)
                   for name, one in value.items()]  # fmt: skip
    else:
        opened, closed, members = "[", "]", [("", one) for one in value]
    # Two for what members are indented by, one for the comma.
    parts = [name + laid_out(one, width=width - 2, before=len(name) + 1) for name, one in members]
    inside = ",\n".join(parts).replace("\n", "\n  ")
    return f"{opened}\n  {inside}\n{closed}"
