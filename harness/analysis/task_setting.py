"""How a task was asked, in words: what it sets otherwise than the tasks of a published table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from harness.scoring.finished_task import KeptTask


@dataclass(frozen=True, kw_only=True)
class TaskSetting:
    """Names what a task changes of its benchmark's default options, sampling and prompts.

    `passed_over` are options that every table tells otherwise, such as the cell of a grid.
    `sampling` is how `role` is usually sampled. `words` replace an option with its value,
    `counted` are the options that are told as "3 shots". For example:

        SETTING = TaskSetting(passed_over={"level"}, counted={"shots"},
                              words={("thought", True): "chain of thought"})
        SETTING.describe(task)  # "chain of thought, 3 shots, temperature 0.7"
    """

    passed_over: Collection[str] = ()
    role: str = "candidate"
    sampling: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[tuple[str, Any], str] = field(default_factory=dict)
    counted: Collection[str] = ()

    def describe(self, task: KeptTask, but: Collection[str] = ()) -> str:
        """What a task changes but for the options in `but`; empty if nothing.

        A prompt that the user replaced counts by the name of its file.
        """
        changed = {
            name: value
            for name, value in changed_options(task).items()
            if name not in self.passed_over and name not in but
        }
        settings = [*changed.items(), *self._sampling(task).items()]
        own = sorted(Path(file).name for file in task.task.prompts.values())
        described = [self._described(name, value) for name, value in settings]
        return ", ".join([*described, *(f"own prompt {name}" for name in own)])

    def _sampling(self, task: KeptTask) -> dict[str, Any]:
        """The sampling that differs from the usual one, by task or command."""
        role = task.task.roles.get(self.role)
        given = {**(role.sampling if role else {}), **task.manifest.asked.get("sampling", {})}
        return {name: value for name, value in given.items() if value != self.sampling.get(name)}

    def _described(self, name: str, value: Any) -> str:
        if (name, value) in self.words:
            return self.words[name, value]
        if name in self.counted:
            return f"{value} {name}"
        words = name.replace("_", " ")
        if isinstance(value, float):
            return f"{words} {value:g}"
        return words if value is True else f"{words} {str(value).replace('_', ' ')}"


def changed_options(task: KeptTask) -> dict[str, Any]:
    """The options of a task that are not as they are by default."""
    return {
        field.name: value
        for field in msgspec.structs.fields(type(task.options))
        if (value := getattr(task.options, field.name)) != field.default
    }
