"""A log opened as a run of its task would open it, and the part that synthetic users are made of.

Nothing depends on the order of the file: users and objects are numbered in the order of their
names, and engagements are ordered by user, time, object and signal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from harness.base.errors import UsageError
from harness_gistbench.records import Options

if TYPE_CHECKING:
    import numpy as np

    from harness import Dataset
    from harness.contracts.task import Task
    from harness_gistbench.log_index import LogIndex

PLAIN = "gist_synthetic"
"""The task whose data is in the plain schema."""

TABLE = "engagements"
"""The one table of that schema."""

SECONDS_A_DAY = 86_400
TICKS = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000}
"""Ticks a second of each unit of time."""


@dataclass(frozen=True, kw_only=True)
class Real:
    """The engagements of real people in the window.

    `users` and `objects` are the names of those in it by number. `starts` are where the engagements
    of each user begin in `object` and `signal`, with the end of the last. `total` counts the whole
    log; `unit` is that of its times, None where there is no time to choose a window by.
    """

    users: tuple[str, ...]
    objects: tuple[str, ...]
    starts: np.ndarray
    object: np.ndarray
    signal: np.ndarray
    total: int
    untimed: int
    unit: str | None

    @property
    def user(self) -> np.ndarray:
        """The user of each engagement."""
        import numpy as np

        return np.repeat(np.arange(len(self.users), dtype=np.int32), np.diff(self.starts))


def task_options(name: str) -> tuple[Task, Options]:
    """The task of that name with its options; refused where it is none of this benchmark."""
    from harness.registry import load_plugins
    from harness.registry.task_catalogue import Catalogue
    from harness.tasks.options import typed_options

    tasks = Catalogue(load_plugins()).select([name]).tasks
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
    from harness.contracts.task import Column
    from harness.data import open_dataset
    from harness.registry import load_plugins

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
        package=load_plugins().package_of("gistbench"),
        task=task.name,
    )


def read(log: LogIndex, *, days: int, unit: str) -> Real:
    """The engagements of the last days of a log; all of it where no engagement has a time."""
    [(total, timed, first, last)] = log.sql(
        f"SELECT count(*), count(time), min(time), max(time) FROM ({log.rows})"
    )
    inside, found = "true", None
    if timed:
        size = max(abs(first), abs(last))  # since 1970
        by_size = "seconds" if size < 1e11 else "milliseconds" if size < 1e14 else "microseconds"
        found = by_size if unit == "auto" else unit
        inside = f"time > {last - days * SECONDS_A_DAY * TICKS[found]}"
    rows = f"SELECT user, object, time, signal FROM ({log.rows}) WHERE {inside}"
    users = log.column(f"SELECT DISTINCT user FROM ({rows}) ORDER BY user")
    objects = log.column(f"SELECT DISTINCT object FROM ({rows}) ORDER BY object")
    numbered = log.arrays(
        "SELECT dense_rank() OVER (ORDER BY user) - 1 AS number, "
        "(dense_rank() OVER (ORDER BY object) - 1)::INTEGER AS thing, signal::UTINYINT AS signal "
        f"FROM ({rows}) ORDER BY number, time, thing, signal"
    )
    import numpy as np

    return Real(
        users=tuple(users),
        objects=tuple(objects),
        starts=np.searchsorted(numbered["number"], np.arange(len(users) + 1)),
        object=numbered["thing"],
        signal=numbered["signal"],
        total=total,
        untimed=total - timed,
        unit=found,
    )


def texts_of(log: LogIndex, names: Iterable[str]) -> dict[str, str]:
    """The text of each of these objects, the first by letters where the log has several."""
    return dict(
        log.sql(
            f"SELECT object, min(text) FROM ({log.texts}) "
            "WHERE object IN (SELECT unnest($1)) GROUP BY object",
            [list(names)],
        )
    )
