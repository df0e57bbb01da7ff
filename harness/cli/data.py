"""`harness data`: data tools of plugins, and the data that tasks name themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.base.errors import DataError, HarnessError
from harness.cli.command import Option, argument, command
from harness.cli.output import Row, print_error, print_rows
from harness.cli.run_options import include_path_option, task_folders
from harness.cli.tools import Tools
from harness.registry import load_plugins
from harness.registry.hookspecs import TAKEN_TOOLS

if TYPE_CHECKING:
    from harness.contracts.task import Task
    from harness.data import TaskData
    from harness.data.fetch import Fetching

names_of_tasks = argument(
    "names", metavar="TASK", nargs=-1, required=True, help="tasks, groups, globs or YAML files",
    candidates="tasks",
)  # fmt: skip


@command(
    "harness data fetch my_task.yaml",
    short_help="fetch the data of tasks, for runs without a network",
    params=[
        Option(
            ["--download/--offline"], is_flag=True, default=None,
            help="fetch data above 1 GB without asking, or check what is in the caches",
        ),
    ],
)  # fmt: skip
@names_of_tasks
@include_path_option
def fetch(names: Sequence[str], include_path: Sequence[Path], download: bool | None) -> int:
    """Fetch the data of tasks from their sources, so that a run needs no network for it.

    Prints the files of each task.
    """
    failed = 0
    fetching = replace(_fetching(), offline=download is False, download=download is True)
    for task in _tasks(names, include_path):
        try:
            data = _opened(task, fetching)
        except HarnessError as error:
            print_error(error)
            failed += 1
        else:
            print_rows([*_files(task, data)])
    return 1 if failed else 0


@command("harness data where my_task.yaml", short_help="print where the data of tasks lies")
@names_of_tasks
@include_path_option
def where(names: Sequence[str], include_path: Sequence[Path]) -> int:
    """Print where the data of tasks lies on this machine; fetches nothing."""
    from harness.data.files import patterns

    absent: dict[bytes, tuple[DataError, list[Task]]] = {}
    fetching = replace(_fetching(), offline=True, look=True, say=lambda line: None)
    for task in _tasks(names, include_path):
        shared = msgspec.json.encode(task.data)
        if shared not in absent:
            try:
                print_rows([*_files(task, _opened(task, fetching))])
                continue
            except DataError as error:
                absent[shared] = error, []
        absent[shared][1].append(task)
    for reason, tasks in absent.values():
        rows = [(task.name, "not on this machine") for task in tasks]
        tables = tasks[0].data.tables.items()
        print_rows([*rows, *((f"  {table}", patterns(table, spec)[0]) for table, spec in tables)])
        print_error(reason)
    return 1 if absent else 0


def _tasks(names: Sequence[str], include_path: Sequence[Path]) -> tuple[Task, ...]:
    from harness.registry.task_catalogue import Catalogue

    catalogue = Catalogue(load_plugins(), include_path=task_folders(include_path))
    return catalogue.select([part for name in names for part in name.split(",") if part]).tasks


def _fetching() -> Fetching:
    from harness.data.fetch import Fetching
    from harness.registry.data_tools import build_tool

    return Fetching(tools=partial(build_tool, load_plugins()))


def _opened(task: Task, fetching: Fetching) -> TaskData:
    """A task's own data, as a run without --data opens it."""
    from harness.data import open_dataset

    return open_dataset(
        task.data, data=task.data.folder, limit=None, seed=0, package=None, task=task.name,
        fetching=fetching,
    )  # fmt: skip


def _files(task: Task, data: TaskData) -> Iterator[Row]:
    from harness.reporting.tables import data_name

    digest = data.about.get("digest")
    name = data_name({"origin": data.origin, **data.about})
    yield task.name, f"{name}, {digest}" if digest else name
    for table in data.tables:
        if table in data.files:
            for path in data.paths(table):
                yield f"  {table}", str(path)


data = Tools(
    "data", "harness data", "harness data describe --data sample",
    own=dict(zip(TAKEN_TOOLS, (fetch, where), strict=True)),
    about=" `fetch TASK…` fetches the data of tasks; `where TASK…` finds it.",
)  # fmt: skip
