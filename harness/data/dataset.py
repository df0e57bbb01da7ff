"""The opened data of one task: its tables, which ids are kept, and what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from harness.base.errors import DataError, UsageError
from harness.base.hashing import canonical
from harness.data import sampling
from harness.data.files import find_tables, patterns
from harness.data.fingerprint import combined, sha256_of, stamp_of
from harness.data.source import FileSource, Source
from harness.data.table import Table
from harness.data.wording import listed, nearest

if TYPE_CHECKING:
    from harness.contracts.task import DataSpec, TableSpec

T = TypeVar("T")

Origin = Literal["hub", "local", "sample"]
SAMPLE = "sample"


@dataclass(eq=False, kw_only=True)
class TaskData:
    """What a benchmark's `load` is given.

    `absent` are the tables that the task can do without and that this data lacks, each with what it
    would have been. State: which ids were chosen, what was noted, what was made of tables for all
    tasks that `shared` is given to, and hashes once made.
    """

    origin: Origin
    task: str
    about: Mapping[str, Any]
    tables: Mapping[str, Table]
    files: Mapping[str, tuple[FileSource, ...]]
    pinned: Mapping[str, Mapping[str, Any]]
    size: int | None
    limit: int | None
    seed: int
    absent: Mapping[str, str] = field(default_factory=dict)
    chosen: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    shared: dict[Any, Any] = field(default_factory=dict)
    _hashes: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def comparable(self) -> bool:
        """Whether results on this data may stand beside others: not on a bundled sample."""
        return self.origin != SAMPLE

    def has(self, name: str) -> bool:
        """Whether there is data for a table that the task need not have."""
        return name not in self.absent and bool(self._name(name))

    def table(self, name: str | None = None) -> Table:
        """The table of that name; without one, the only table there is."""
        return self.tables[self._name(name)]

    def once(self, name: str, make: Callable[[Table], T]) -> T:
        """What `make` gives of a table: made once for all tasks of a run that read the same one.

        It must not be changed, and depend on nothing but the table. `make` is known by its
        identity: a function of a module, not one made anew for each call.
        """
        table = self.table(name)
        source = canonical(self.pinned[name]) if name in self.pinned else self.files[name]
        key = make, source, tuple(table.columns.items())
        if key not in self.shared:
            self.shared[key] = make(table)
        made: T = self.shared[key]
        return made

    def path(self, name: str | None = None) -> Path:
        """The one file that holds a table, for layouts that are no tables."""
        paths = self.paths(name)
        if len(paths) > 1:
            raise DataError(
                f"table '{self._name(name)}' of task '{self.task}' is in several files",
                found=listed(str(path) for path in paths),
                expected="one file",
            )
        return paths[0]

    def paths(self, name: str | None = None) -> tuple[Path, ...]:
        """The files that hold a table, in the order in which they are read."""
        table = self._name(name)
        if table not in self.files:
            raise DataError(
                f"table '{table}' of task '{self.task}' is in no file",
                found="a split that the datasets library prepared",
                expected="a table with `hub_files`, or data given with --data",
            )
        return tuple(source.path for source in self.files[table])

    def choose(self, ids: Iterable[str], *, of: str = "users") -> list[str]:
        """The ids that this run keeps, in an order that depends on nothing but seed and ids.

        At most the task's size and the run's limit; a smaller choice is a part of a larger one.
        """
        bounds = [bound for bound in (self.size, self.limit) if bound is not None]
        ids_kept, there = sampling.choose(ids, seed=self.seed, most=min(bounds) if bounds else None)
        if not there:
            raise DataError(
                f"the data of task '{self.task}' leaves no {of} to choose from",
                where=listed(source.label for t in self.tables.values() for source in t.sources),
                found="; ".join(self.noted) or None,
                expected=f"at least one of the {of}",
            )
        self.chosen[of] = {"chosen": len(ids_kept), "of": there}
        return ids_kept

    def note(self, fact: str, number: int) -> None:
        """Has a reader of the scores know of this many: rows left out, users without enough, …

        Said at the start of a run, and kept in its manifest, summaries and tables. The same fact
        told again has the new number; no key and no fingerprint depends on it.
        """
        self.notes[fact] = number

    @property
    def noted(self) -> tuple[str, ...]:
        """What was noted, a line a fact."""
        return tuple(f"{fact}: {number:,}" for fact, number in self.notes.items())

    def describe(self) -> dict[str, Any]:
        """What was read, as JSON values for the manifest: origin, revision, files, fingerprints.

        `fingerprint` depends on content alone: the bytes of files, or repository, revision,
        configuration and split.
        """
        tables = {name: self._described(name) for name in self.tables}
        return {
            "origin": self.origin,
            "comparable": self.comparable,
            "fingerprint": combined(
                [part for name in sorted(tables) for part in (name, tables[name]["fingerprint"])]
            ),
            **self.about,
            "tables": tables,
            "size": self.size,
            "limit": self.limit,
            "seed": self.seed,
            "chosen": self.chosen,
            "notes": self.notes,
        }

    def _described(self, name: str) -> dict[str, Any]:
        if name not in self._hashes:
            if name in self.pinned:
                self._hashes[name] = dict(self.pinned[name])
            else:
                files = [
                    {
                        "file": str(source.path),
                        "bytes": source.stamp.size,
                        "sha256": sha256_of(source.path, source.stamp),
                    }
                    for source in self.files[name]
                ]
                self._hashes[name] = {
                    "fingerprint": combined([str(one["sha256"]) for one in files]),
                    "files": files,
                }
        return self._hashes[name]

    def _name(self, name: str | None) -> str:
        known = (*self.tables, *self.absent)
        if name is None and len(known) == 1:
            name = known[0]
        if name is not None and name in self.absent:
            raise DataError(
                f"this data holds no table '{name}', which task '{self.task}' can do without",
                expected=self.absent[name],
            )
        if name is not None and name in self.tables:
            return name
        near = nearest(name, known) if name else None
        raise DataError(
            f"task '{self.task}' has no table '{name}'"
            if name
            else f"task '{self.task}' has several tables, and none was named",
            expected=f"one of: {listed(known)}",
            hint=f"'{near}' is the nearest name" if near else None,
        )


def open_dataset(
    spec: DataSpec,
    *,
    data: str | None,
    limit: int | None,
    seed: int,
    package: Path | None,
    task: str,
    shared: dict[Any, Any] | None = None,
) -> TaskData:
    """The data of a task, found and opened; no row is read yet.

    `data` is what `--data` said: nothing for the hub, "sample" for the sample in `package`, the
    folder of the benchmark's code, else a file or folder. Data sets that are given one `shared`
    make only once what `TaskData.once` makes.
    """
    if limit is not None and limit < 1:
        raise UsageError("the limit keeps nothing", found=f"--limit {limit}", expected="1 or more")
    if data is None:
        return _open_hub(spec, limit=limit, seed=seed, task=task, shared=shared)
    origin: Origin = "local"
    about = {"path": data}
    if spec.hub is not None:
        about["in_place_of"] = spec.hub.repo
    folder = Path(data).expanduser()
    if data == SAMPLE:
        origin = "sample"
        folder = _sample_folder(spec, package, task=task)
        about = {"sample": str(spec.sample)}
    found = find_tables(folder, spec.tables, task=task)
    files = {name: _file_sources(paths, spec.tables[name]) for name, paths in found.items()}
    absent = {
        name: f"{listed(patterns(name, table))} in {folder}"
        for name, table in spec.tables.items()
        if name not in found
    }
    return TaskData(
        origin=origin,
        task=task,
        about=about,
        tables=_tables(spec.tables, files),
        files=files,
        pinned={},
        size=spec.size,
        limit=limit,
        seed=seed,
        shared={} if shared is None else shared,
        absent=absent,
    )


def _open_hub(
    spec: DataSpec, *, limit: int | None, seed: int, task: str, shared: dict[Any, Any] | None
) -> TaskData:
    if spec.hub is None:
        ways = "--data FILE or --data DIR" if len(spec.tables) == 1 else "--data DIR"
        raise DataError(
            f"task '{task}' needs data that is on no hub",
            expected=f"{ways}: the data, as the task's documentation says where to get it",
            hint="for a first try, --data sample takes the bundled sample" if spec.sample else None,
        )
    from harness.data.hub import open_hub

    hub = open_hub(spec.hub, spec.tables, task=task)
    files: dict[str, tuple[FileSource, ...]] = {}
    sources: dict[str, tuple[Source, ...]] = {}
    for name, table in hub.tables.items():
        if table.split is not None:
            sources[name] = (table.split,)
        else:
            sources[name] = files[name] = _file_sources(table.files, spec.tables[name])
    return TaskData(
        origin="hub",
        task=task,
        about=hub.about,
        tables=_tables(spec.tables, sources),
        files=files,
        pinned={name: table.described for name, table in hub.tables.items()},
        size=spec.size,
        limit=limit,
        seed=seed,
        shared={} if shared is None else shared,
        absent=dict.fromkeys(
            (name for name in spec.tables if name not in hub.tables),
            f"`split` or `hub_files` in the task's table, for the hub's '{spec.hub.repo}'",
        ),
    )


def _tables(
    specs: Mapping[str, TableSpec], sources: Mapping[str, Sequence[Source]]
) -> dict[str, Table]:
    return {
        name: Table(name=name, columns=table.columns, sources=sources[name])
        for name, table in specs.items()
        if name in sources
    }


def _file_sources(paths: Iterable[Path], table: TableSpec) -> tuple[FileSource, ...]:
    return tuple(
        FileSource(
            path=path, stamp=stamp_of(path), delimited=table.delimited, entries=table.entries
        )
        for path in paths
    )


def _sample_folder(spec: DataSpec, package: Path | None, *, task: str) -> Path:
    if spec.sample is None or package is None:
        raise DataError(
            f"task '{task}' has no bundled sample",
            found="--data sample",
            expected="a file or folder with the data, or a data set on the hub",
            hint="a folder that is called sample is given as --data ./sample",
        )
    folder = package / spec.sample
    if not folder.exists():
        raise DataError(
            f"the bundled sample of task '{task}' is not installed",
            where=str(folder),
            expected="the folder that the task's `data.sample` names inside its package",
            hint="this is a fault of the plugin's package: its sample files were left out",
        )
    return folder
