"""Calls and JSON values of records as text for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.contracts.records import CallRecord


def describe_call(call: CallRecord, *, by_rule: bool) -> str:
    """Who was asked, where the reply came from, and how it was read."""
    who = f"{call.role} {call.member}" if call.member else call.role
    parts = [f"{who}, prompt {call.prompt}, from {call.source}"]
    if call.repeat:
        parts.append(f"repeat {call.repeat}")
    if call.finish is not None:
        parts.append(f"ended by {call.finish}")
    if call.rung is not None:
        parts.append(f"read as {call.rung}")
    if call.asked_schema:
        parts.append("schema requested")
    if call.attempts > 1:
        parts.append(f"{call.attempts} attempts")
    if call.usage is not None:
        parts.append(f"{call.usage.prompt_tokens} + {call.usage.completion_tokens} tokens")
    elif call.finish is not None and not by_rule:
        parts.append("tokens unknown")
    if call.source == "model":
        parts.append(f"{call.seconds:.1f} s")
    return ", ".join(parts)


def laid_out(value: Any, *, width: int, before: int = 0) -> str:
    """A JSON value on one line if it fits into the width, otherwise with one member per line.

    `before` is the number of characters before the value on its line.

    >>> laid_out({"a": [1, 2]}, width=80)
    '{"a": [1, 2]}'
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
    # Members are indented by two, and followed by a comma.
    parts = [name + laid_out(one, width=width - 2, before=len(name) + 1) for name, one in members]
    inside = ",\n".join(parts).replace("\n", "\n  ")
    return f"{opened}\n  {inside}\n{closed}"
