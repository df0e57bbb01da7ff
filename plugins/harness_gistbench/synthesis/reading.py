"""A log opened as a run of its task would open it, and the part that synthetic users are made of.

The log is read twice, first to find the window. Of the engagements in it some 20 bytes each are
held in arrays, about four times as much while they are put in order, and each distinct user id and
object id once. Nothing depends on the order of the file: users and objects are numbered in the
order of their names, and engagements are ordered by user, time, object and signal.
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
    from harness_gistbench.log_index import Engagements, Log

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


@dataclass(frozen=True, kw_only=True)
class Window:
    """What a first walk over a log shows: its size, and which times are in the window.

    `unit` and `after` are None where there is no time at all, and everything is in the window.
    """

    total: int
    untimed: int
    unit: str | None
    after: float | None

    def holds(self, batch: Engagements) -> np.ndarray:
        """Which engagements are in the window; where others have a time, none without one is."""
        import numpy as np

        if self.after is None or batch.times is None:
            return np.full(len(batch.users), self.after is None)
        return batch.has_time() & (batch.times > self.after)


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


def window(log: Log, *, days: int, unit: str) -> Window:
    """The last days of a log."""
    total = untimed = 0
    ends: list[float] = []
    for batch in log.engagements():
        timed = batch.has_time()
        total += len(timed)
        untimed += int((~timed).sum())
        if batch.times is not None and timed.any():
            times = batch.times[timed]
            ends += [times.min().item(), times.max().item()]
    if not ends:
        return Window(total=total, untimed=untimed, unit=None, after=None)
    found = _unit(max(map(abs, ends))) if unit == "auto" else unit
    after = max(ends) - days * SECONDS_A_DAY * TICKS[found]
    return Window(total=total, untimed=untimed, unit=found, after=after)


def read(log: Log, *, days: int, unit: str) -> Real:
    """The engagements of the last days of a log; all of it where no engagement has a time."""
    import numpy as np

    chosen = window(log, days=days, unit=unit)
    users: dict[str, int] = {}
    objects: dict[str, int] = {}
    parts = []
    for batch in log.engagements():
        kept = np.flatnonzero(chosen.holds(batch))
        time = np.zeros(len(kept), dtype=np.int64) if batch.times is None else batch.times[kept]
        numbers = _numbers(batch.users, kept, users), _numbers(batch.objects, kept, objects)
        parts.append((*numbers, batch.signals[kept], time))
    user, thing, signal, time = (np.concatenate(part) for part in zip(*parts, strict=True))
    del parts
    user_names, user = _by_name(users, user)
    object_names, thing = _by_name(objects, thing)
    order = np.lexsort((signal, thing, time, user))
    user = user[order]
    return Real(
        users=user_names,
        objects=object_names,
        starts=np.searchsorted(user, np.arange(len(user_names) + 1)),
        object=thing[order],
        signal=signal[order],
        total=chosen.total,
        untimed=chosen.untimed,
        unit=chosen.unit,
    )


def texts_of(log: Log, names: Iterable[str]) -> dict[str, str]:
    """The text of each of these objects, the first by letters where the log has several."""
    found = dict.fromkeys(names, "")
    for part in log.texts():
        for name, text in zip(part.objects, part.texts, strict=True):
            known = found.get(name)
            if known is not None and (not known or text < known):
                found[name] = text
    return found


def _numbers(names: list[str], kept: np.ndarray, known: dict[str, int]) -> np.ndarray:
    """The numbers of some of the names; new ones get the next."""
    import numpy as np

    number = known.setdefault
    places = kept.tolist()
    return np.array([number(names[one], len(known)) for one in places], dtype=np.int32)


def _by_name(known: dict[str, int], numbers: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """The names in their order, and the numbers changed to it."""
    import numpy as np

    names = tuple(sorted(known))
    new = np.empty(len(names), dtype=np.int32)
    new[[known[name] for name in names]] = np.arange(len(names), dtype=np.int32)
    return names, new[numbers]


def _unit(size: float) -> str:
    """The unit of times since 1970 of at most this size."""
    if size < 1e11:
        return "seconds"
    return "milliseconds" if size < 1e14 else "microseconds"
