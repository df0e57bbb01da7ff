"""The templates that a task asks with: its benchmark's, but for those that it replaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import PromptError
from harness.prompting import Templates
from harness.tasks.locate import locate
from harness.tasks.task import Task

if TYPE_CHECKING:
    from harness.pipeline.benchmark import Stage


def templates_of(task: Task, templates: Templates) -> Templates:
    """The benchmark's templates with the task's own in place of theirs, each of these compiled.

    PromptError, with the line of the task, for one that replaces nothing or cannot be read.
    """
    for error in wrong_prompts(task, templates):
        raise error
    return _replaced(task, templates, *task.prompts) if task.prompts else templates


def refuse_unasked(task: Task, stages: Iterable[Stage], options: Any) -> None:
    """Raise PromptError for a prompt of the task's own that none of these stages asks."""
    asked = frozenset(name for stage in stages for name in stage.asked(options))
    for name in task.prompts:
        if name not in asked:
            raise PromptError(
                f"the task {task.name!r} replaces the prompt {name!r} and does not ask it",
                where=locate(task, ["prompts", name], of_key=True),
                expected=f"one of {', '.join(sorted(asked))}" if asked else "none",
                hint="its options and data decide which prompts a task asks",
            )


def wrong_prompts(task: Task, templates: Templates) -> Iterator[PromptError]:
    """An error for each prompt of the task's own that replaces nothing or cannot be read."""
    for name in task.prompts:
        prompt, _, role = name.rpartition(".")
        try:
            _replaced(task, templates, name).need(task.benchmark, prompt, role)
        except PromptError as error:
            said = locate(task, ["prompts", name], of_key=error.where is None)
            error.where = f"{said}: {error.where}" if error.where else said
            yield error


def _replaced(task: Task, templates: Templates, *names: str) -> Templates:
    return templates.replacing(task.benchmark, {name: Path(task.prompts[name]) for name in names})
