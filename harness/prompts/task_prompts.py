"""The templates of a task: those of its benchmark, and the files that replace some of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.base.errors import PromptError, did_you_mean, one_of
from harness.contracts.task import Task
from harness.prompts.templates import ENDING, Templates
from harness.tasks.resolve import locate

if TYPE_CHECKING:
    from harness.contracts.stage import Stage

ASIDE = (".", "_")
"""How the names of files begin that are no prompts: hidden files, and parts to include."""

NOTES = (".md", ".yaml")


def overrides_in(folder: Path, templates: Templates) -> dict[str, dict[str, str]]:
    """The files that replace prompts, by benchmark and `<prompt>.<role>`.

    PromptError for a file that replaces no prompt, with the nearest name, and for an empty folder.
    """
    known = templates.everything()
    found: dict[str, dict[str, str]] = {}
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        aside = any(part.startswith(".") for part in parts) or file.name.startswith(ASIDE)
        if aside or file.suffix in NOTES or not file.is_file():
            continue
        name = file.relative_to(folder).as_posix()
        if not name.endswith(ENDING) or name.removesuffix(ENDING) not in known:
            near = did_you_mean(name, [f"{one}{ENDING}" for one in known])
            raise PromptError(
                "a file of --prompts replaces no prompt",
                where=str(file),
                found=name,
                expected=f"BENCHMARK/PROMPT.ROLE{ENDING} of an existing prompt; names of parts to "
                "include begin with _",
                hint=near or "`harness list prompts` lists the prompts",
            )
        found.setdefault(file.parent.name, {})[file.name.removesuffix(ENDING)] = str(file)
    if not found:
        raise PromptError(
            "--prompts names no folder of prompts",
            found=str(folder),
            expected=f"a folder with files BENCHMARK/PROMPT.ROLE{ENDING}",
            hint="`harness list prompts` lists the prompts that can be replaced",
        )
    return found


def templates_of(task: Task, templates: Templates) -> Templates:
    """The benchmark's templates, replaced by the task's own, which are compiled.

    PromptError, with the line of the task, for a file that replaces nothing or cannot be read.
    """
    for error in wrong_prompts(task, templates):
        raise error
    return _replaced(task, templates, *task.prompts) if task.prompts else templates


class Overrides:
    """The prompts of `--prompts DIR`, which replace those that tasks ask."""

    def __init__(self, folder: Path | None, templates: Templates) -> None:
        self._folder = folder
        self._files = overrides_in(folder, templates) if folder is not None else {}
        self._asked: set[str] = set()

    def over(self, task: Task, stages: Iterable[Stage], options: Any) -> Task:
        """The task, with its prompts replaced as far as these stages ask them."""
        own: Mapping[str, str] = self._files.get(task.benchmark, {})
        asked = frozenset(name for stage in stages for name in stage.asked(options))
        self._asked |= {f"{task.benchmark}/{name}" for name in asked}
        chosen = {name: file for name, file in own.items() if name in asked}
        return msgspec.structs.replace(task, prompts={**task.prompts, **chosen}) if chosen else task

    def refuse_useless(self) -> None:
        """Raise PromptError if no task asks any of the prompts."""
        given = [f"{benchmark}/{name}" for benchmark, own in self._files.items() for name in own]
        if given and not self._asked.intersection(given):
            raise PromptError(
                "--prompts: no chosen task asks any of these prompts",
                where=str(self._folder),
                found=", ".join(given),
                expected=f"one of {', '.join(sorted(self._asked))}",
                hint=did_you_mean(given[0], self._asked)
                or "the options and data of a task decide which prompts it asks",
            )


def check_prompts_used(task: Task, stages: Iterable[Stage], options: Any) -> None:
    """Raise PromptError for a prompt of the task that none of these stages asks."""
    asked = frozenset(name for stage in stages for name in stage.asked(options))
    for name in task.prompts:
        if name not in asked:
            problem = f"the task {task.name!r} replaces the prompt {name!r} but does not ask it"
            one_of(
                name, sorted(asked), problem, PromptError, listed="one of {}",
                none="no prompts: the task asks none",
                where=locate(task, ["prompts", name], of_key=True),
                hint="the options and data of a task decide which prompts it asks",
            )  # fmt: skip


def wrong_prompts(task: Task, templates: Templates) -> Iterator[PromptError]:
    """An error for each prompt of the task that replaces nothing or cannot be read."""
    for name in task.prompts:
        prompt, _, role = name.rpartition(".")
        try:
            _replaced(task, templates, name).need(task.benchmark, prompt, role)
        except PromptError as error:
            place = locate(task, ["prompts", name], of_key=error.where is None)
            error.where = f"{place}: {error.where}" if error.where else place
            yield error


def _replaced(task: Task, templates: Templates, *names: str) -> Templates:
    return templates.replacing(task.benchmark, {name: Path(task.prompts[name]) for name in names})
