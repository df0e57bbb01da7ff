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

SAMPLING = {"temperature": 0.1, "max_tokens": 800}
"""How the candidate of the nine tasks is sampled; comparisons have their own, shorter limit."""

METHODS = ("thought", "samples", "shots", "profile")
"""The options by which the methods of Table 2 differ."""

WORDS = {
    ("profile", "none"): "without profile",
    ("profile", "no_text"): "without profile text",
    ("split", "held_out"): "held-out groups",
    ("thought", True): "chain of thought",
}


def setting_of(task: KeptTask, but: Collection[str] = ()) -> str:
    """What a task asks otherwise than the nine do, but for the options in `but`; empty if nothing.

    Sampling counts as well, and a prompt that the user replaced, by the name of its file.
    """
    told = [
        _said(name, value)
        for name, value in changes_of(task).items()
        if name not in PLACES and name not in but
    ]
    own = sorted(Path(file).name for file in task.task.prompts.values())
    told += [_said(name, value) for name, value in sampling_of(task).items()]
    return ", ".join([*told, *(f"own prompt {name}" for name in own)])


def sampling_of(task: KeptTask) -> dict[str, Any]:
    """The candidate's sampling where it is not that of the nine, by task or command."""
    role = task.task.roles.get("candidate")
    given = {**(role.sampling if role else {}), **task.manifest.asked.get("sampling", {})}
    return {name: value for name, value in given.items() if value != SAMPLING.get(name)}


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
    return ", ".join(filter(None, (method, setting_of(task, but=METHODS))))


def place_of_method(task: KeptTask) -> tuple[object, ...]:
    """What sorts tasks by method as Table 2 does; those that differ in something else come last."""
    options = task.options
    others = setting_of(task, but=METHODS)
    ways = (options.thought, options.samples > 1, options.shots > 0, options.profile != "full")
    return others != "", *ways, options.samples, options.shots, method_of(task)


def _said(name: str, value: Any) -> str:
    if (name, value) in WORDS:
        return WORDS[name, value]
    if name in ("shots", "samples"):
        return f"{value} {name}"
    words = name.replace("_", " ")
    if isinstance(value, float):
        return f"{words} {value:g}"
    return words if value is True else f"{words} {str(value).replace('_', ' ')}"
