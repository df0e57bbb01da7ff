"""How a task was asked, in words: what differs from the nine tasks of Table 1."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from harness import KeptTask

PLACES = frozenset({"level", "ask", "behaviours"})
"""Options that say which cell a task is, or that mean nothing for groups."""

WORDS = {
    ("profile", "none"): "without profile",
    ("profile", "no_text"): "without profile text",
    ("split", "held_out"): "held-out groups",
    ("thought", True): "chain of thought",
}


def setting_of(task: KeptTask, but: Collection[str] = ()) -> str:
    """What a task asks otherwise than the nine do, but for the options in `but`; empty if nothing.

    A prompt that the user replaced counts as well, by the name of its file.
    """
    told = [
        _said(name, value)
        for name, value in changes_of(task).items()
        if name not in PLACES and name not in but
    ]
    own = sorted(Path(file).name for file in task.task.prompts.values())
    return ", ".join([*told, *(f"own prompt {name}" for name in own)])


def changes_of(task: KeptTask) -> dict[str, Any]:
    """The options of a task that are not as they are by default."""
    return {
        field.name: value
        for field in msgspec.structs.fields(type(task.options))
        if (value := getattr(task.options, field.name)) != field.default
    }


def method_of(task: KeptTask) -> str:
    """How a task prompts, in the words of Table 2."""
    options = task.options
    ways = {
        "chain of thought": options.thought,
        f"self-consistency ({options.samples})": options.samples > 1,
        f"few-shot ({options.shots})": options.shots > 0,
    }
    method = ", ".join(words for words, used in ways.items() if used) or "zero-shot"
    if options.profile != "full":
        method += f" {WORDS['profile', options.profile]}"
    others = setting_of(task, but=("thought", "samples", "shots", "profile"))
    return ", ".join(filter(None, (method, others)))


def _said(name: str, value: Any) -> str:
    if (name, value) in WORDS:
        return WORDS[name, value]
    if name in ("shots", "samples"):
        return f"{value} {name}"
    words = name.replace("_", " ")
    return words if value is True else f"{words} {str(value).replace('_', ' ')}"
