"""The place of each task's data: from the command, else from the task, else from its sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path

from harness.base.errors import UsageError, did_you_mean
from harness.base.home import expanded
from harness.contracts.task import DataSpec, Group
from harness.data.dataset import BUILD, SAMPLE
from harness.data.files import GLOB, holder_of, no_table
from harness.data.task_sources import name_of
from harness.data.wording import join_names
from harness.pipeline.settings import ALL_OTHERS


@dataclass(frozen=True, kw_only=True)
class Places:
    """The place of each task's data by the task's name, where None stands for its sources.

    `notes` are lines for the user about places that are not as given.
    """

    of: Mapping[str, str | None]
    notes: tuple[str, ...] = ()


def places_of(
    data: str | Mapping[str, str] | None, specs: Mapping[str, DataSpec], groups: Iterable[Group]
) -> Places:
    """The place of each task's data, for the `data` of the settings; `specs` are those of the tasks
    by name.

    A place for all tasks goes to those whose tables it holds; if there are any, the others read
    what they read without it. If one folder in a given folder holds a task's tables, and the given
    folder holds none, the task reads that one.
    """
    given = data if isinstance(data, Mapping) else {} if data is None else {ALL_OTHERS: data}
    named = named_places(given, list(specs), groups)
    of = {task: spec.folder for task, spec in specs.items()}
    deeper: dict[str, list[str]] = {}
    lacking: dict[str, Path] = {}
    held = False
    for task, spec in specs.items():
        place = named.get(task, given.get(ALL_OTHERS))
        if place is None:
            continue
        of[task] = place
        if place in (SAMPLE, BUILD):
            continue
        folder = expanded(place, where="--data")
        holder = holder_of(folder, spec.tables, task=task)
        if holder is None:
            lacking[task] = folder
            continue
        held = held or task not in named
        if holder != folder:
            of[task] = str(holder)
            deeper.setdefault(str(holder), []).append(task)
    elsewhere: dict[str, list[str]] = {}
    for task, folder in lacking.items():
        if held and task not in named:
            of[task] = specs[task].folder
            elsewhere.setdefault(_without(task, specs[task], folder), []).append(task)
        elif not any(table.required for table in specs[task].tables.values()):
            # The error for a required table has such a hint too.
            error = no_table(folder, specs[task].tables, task=task)
            if error.hint is not None:
                raise error
    notes = [f"{join_names(tasks)}: the data is in {place}" for place, tasks in deeper.items()]
    notes += [
        f"{join_names(tasks)}: no table in --data {given[ALL_OTHERS]}, so read from {where}"
        for where, tasks in elsewhere.items()
    ]
    return Places(of=of, notes=tuple(notes))


def _without(task: str, spec: DataSpec, place: Path) -> str:
    """What a task reads instead of a place without its tables, in words.

    DataError if it can read nothing else, or if its tables seem to be near.
    """
    error = no_table(place, spec.tables, task=task)
    if error.hint is None and spec.folder is not None:
        return spec.folder
    automatic = [name_of(source) for source in spec.sources if source.ask is None]
    if error.hint is None and automatic:
        return automatic[0]
    error.hint = error.hint or f"give the task a folder of its own with --data {task}=DIR"
    raise error


def named_places(
    given: Mapping[str, str], tasks: Sequence[str], groups: Iterable[Group]
) -> dict[str, str]:
    """The places of the tasks that are named, alone or by a group or a glob.

    The name of a task comes before a group, and a group before a glob; of two groups or two globs,
    the one with fewer tasks comes first.
    """
    members = _tasks_by_group(groups, tasks)
    reach: dict[str, tuple[int, list[str]]] = {}
    for name in given:
        if name == ALL_OTHERS:
            continue
        if name in tasks:
            reach[name] = 0, [name]
        elif name in members:
            reach[name] = 1, members[name]
        elif GLOB & set(name) and any(fnmatchcase(task, name) for task in tasks):
            reach[name] = 2, [task for task in tasks if fnmatchcase(task, name)]
        else:
            also = f"; or a group: {', '.join(members)}" if members else ""
            raise UsageError(
                f"--data names a task that is not run: {name!r}",
                expected=f"TASK=PLACE with one of: {', '.join(tasks)}{also}",
                hint=did_you_mean(name, [*tasks, *members])
                or f"write a path with = in its name as --data ./{name}=…",
            )
    places: dict[str, str] = {}
    by: dict[str, str] = {}
    breadth = {name: (kind, len(reached)) for name, (kind, reached) in reach.items()}
    for name in sorted(reach, key=breadth.__getitem__):
        for task in reach[name][1]:
            first = by.setdefault(task, name)
            if breadth[first] == breadth[name] and given[first] != given[name]:
                raise UsageError(
                    f"--data gives the task {task!r} two places",
                    found=f"{first}={given[first]}, {name}={given[name]}",
                    expected="one place for each task",
                    hint=f"name the task itself: --data {task}=DIR",
                )
            places.setdefault(task, given[name])
    return places


def _tasks_by_group(groups: Iterable[Group], tasks: Sequence[str]) -> dict[str, list[str]]:
    """The tasks of each group, those of groups in it included."""
    by_name = {group.name: group for group in groups}

    def within(name: str) -> Iterable[str]:
        if name not in by_name:
            return [name]
        return chain.from_iterable(map(within, by_name[name].members))

    return {
        name: [task for task in dict.fromkeys(within(name)) if task in tasks] for name in by_name
    }
