"""The settings of a task in words: its differences from the tasks of a published table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.base.errors import UsageError

if TYPE_CHECKING:
    from harness.scoring.finished_task import FinishedTask


@dataclass(frozen=True, kw_only=True)
class TaskSetting:
    """Describes what a task changes of its benchmark's default options, sampling and prompts.

    `passed_over` are options that tables show elsewhere, such as the cell of a grid. `sampling` is
    the usual sampling of `role`. `words` replace an option with its value; `counted` are options
    that are written as "3 shots". For example:

        SETTING = TaskSetting(passed_over={"level"}, counted={"shots"},
                              words={("thought", True): "chain of thought"})
        SETTING.describe(task)  # "chain of thought, 3 shots, temperature 0.7"
    """

    passed_over: Collection[str] = ()
    role: str = "candidate"
    sampling: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[tuple[str, Any], str] = field(default_factory=dict)
    counted: Collection[str] = ()

    def describe(self, task: FinishedTask, but: Collection[str] = ()) -> str:
        """The changes of a task, without the options in `but`; empty if there are none.

        A prompt that the user replaced is described by the name of its file.
        """
        changed = {
            name: value
            for name, value in changed_options(task).items()
            if name not in self.passed_over and name not in but
        }
        role = task.task.roles.get(self.role)
        given = {**(role.sampling if role else {}), **task.manifest.asked.get("sampling", {})}
        unusual = ((name, one) for name, one in given.items() if one != self.sampling.get(name))
        settings = [*changed.items(), *unusual]
        own = sorted(Path(file).name for file in task.task.prompts.values())
        described = [self._described(name, value) for name, value in settings]
        return ", ".join([*described, *(f"own prompt {name}" for name in own)])

    def _described(self, name: str, value: Any) -> str:
        if (name, value) in self.words:
            return self.words[name, value]
        if name in self.counted:
            return f"{value} {name}"
        words = name.replace("_", " ")
        if isinstance(value, float):
            return f"{words} {value:g}"
        return words if value is True else f"{words} {str(value).replace('_', ' ')}"


def changed_options(task: FinishedTask) -> dict[str, Any]:
    """The options of a task that differ from their defaults."""
    return {
        field.name: value
        for field in msgspec.structs.fields(type(task.options))
        if (value := getattr(task.options, field.name)) != field.default
    }


def check_several(found: Collection[Any], what: str) -> None:
    """Raise UsageError for an analysis of a setting that has one value alone in all tasks.

    `check_several({100}, "window size")`
    """
    if len(found) == 1:
        raise UsageError(
            f"all tasks have the same {what}",
            found=", ".join(map(str, found)),
            expected=f"tasks that differ in their {what}",
        )
