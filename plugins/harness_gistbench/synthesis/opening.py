"""A log opened under the columns of a task, as a run of that task would open it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from harness.errors import UsageError
from harness_gistbench.records import Options

if TYPE_CHECKING:
    from harness import Dataset
    from harness.plugin_manager import Plugins
    from harness.tasks.task import Task

PLAIN = "gist_synthetic"
"""The task whose data is in the plain schema."""

TABLE = "engagements"
"""The one table of that schema."""


def task_options(name: str) -> tuple[Task, Options]:
    """The task of that name with its options; refused where it is none of this benchmark."""
    from harness.tasks.catalogue import Catalogue
    from harness.tasks.options import typed_options

    tasks = Catalogue(_plugins()).select([name]).tasks
    if len(tasks) != 1 or tasks[0].benchmark != "gistbench":
        raise UsageError(
            "this is not one task of GISTBench",
            where="--task",
            found=name,
            expected="one such as gist_synthetic; `harness tasks gist` lists them",
        )
    return tasks[0], typed_options(tasks[0], Options)


def opened(task: Task, data: str | None, *, optional: str | None = None) -> Dataset:
    """The data of a task, of the hub where none is named.

    `optional` is one more column of the plain schema, whose cells may be empty.
    """
    from harness.data import open_dataset
    from harness.tasks.task import Column

    spec = task.data
    if optional is not None and optional not in spec.tables[TABLE].columns:
        table = spec.tables[TABLE]
        columns = {**table.columns, optional: Column(type="string", required=False)}
        wider = msgspec.structs.replace(table, columns=columns)
        spec = msgspec.structs.replace(spec, tables={**spec.tables, TABLE: wider})
    return open_dataset(
        spec,
        data=data,
        limit=None,
        seed=0,
        package=_plugins().package_of("gistbench"),
        task=task.name,
    )


def _plugins() -> Plugins:
    from harness.plugin_manager import load_plugins

    return load_plugins()
