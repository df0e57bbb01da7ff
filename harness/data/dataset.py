"""The data of one task: opened where it lies, or from the first of its sources that has it; its
tables, the chosen ids, and a description of its files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec

from harness.base.errors import DataError, Unavailable, UsageError
from harness.base.hashing import canonical, digest, stable_int
from harness.base.home import expanded
from harness.base.redaction import without_query
from harness.contracts.identity import COMMIT
from harness.data.fetch import Fetching, fetched
from harness.data.files import find_tables, holder_of, patterns
from harness.data.read import FileSource, Table, quoted
from harness.data.records import sha256_of, stamp_of
from harness.data.wording import join_names, nearest

if TYPE_CHECKING:
    import duckdb

    from harness.contracts.task import (
        BuildSpec,
        DataSpec,
        DriveSpec,
        HubSpec,
        KnownFact,
        SourceSpec,
        TableSpec,
        UrlSpec,
    )
    from harness.data.database import Database
    from harness.data.read import Source

T = TypeVar("T")

Origin = Literal["hub", "url", "drive", "build", "local", "sample"]
SAMPLE: Final = "sample"
BUILD: Final = "build"
OTHER = "not the published data"

SHOWN = 12
"""The digits of a digest that a reason shows."""


@dataclass(eq=False, kw_only=True)
class TaskData:
    """The data that a benchmark's `load` gets, as `harness.contracts.dataset` describes it.

    `origin` is where the data comes from, `about` describes that for the manifest. `tables` are the
    tables by name, `files` their files, and `pinned` describes tables of the hub. `size` is the
    task's number of units, `limit` the run's; `seed` decides which ones are chosen. `absent` are
    the optional tables that this data lacks, each with the files that were looked for.
    `known` are facts about the published data, and `settled` says that the source is known to have
    it, by a digest or a commit. `named` are in a run the columns, by table, that the command names
    in the data; errors about columns then propose options of a run.

    State: `chosen` counts the chosen ids, `notes` holds the noted facts, `shared` the results of
    `once` for all tasks with the same `shared`.
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
    known: Sequence[KnownFact] = ()
    settled: bool = False
    named: Mapping[str, Collection[str]] | None = None
    chosen: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    shared: dict[Any, Any] = field(default_factory=dict)
    _hashes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.named is not None:
            self.tables = {
                name: replace(one, named=self.named.get(name, ()))
                for name, one in self.tables.items()
            }

    @property
    def built(self) -> bool:
        """Whether a data tool built the data, so that it is not the published one."""
        return self.origin == BUILD

    @property
    def why_incomparable(self) -> tuple[str, ...]:
        """The reasons why results on this data are not comparable with published ones."""
        if self.origin == SAMPLE:
            return ("bundled sample data",)
        too_few = (
            f"{counts['of']:,} {of}, fewer than the task's {self.size:,}"
            for of, counts in self.chosen.items()
            if self.size is not None and counts["of"] < self.size
        )
        return (*self._why_other(), *too_few)

    def _why_other(self) -> Iterator[str]:
        if self.settled:
            return
        if self.built:
            yield "data built here, not the published data"
            return
        if not self.known:
            yield f"{OTHER}: the task knows no digest or count of it"
        there = [fact for fact in self.known if fact.table in self.tables]
        if len(there) < len(self.known):
            lacking = dict.fromkeys(f"'{one.table}'" for one in self.known if one not in there)
            yield f"{OTHER}: it has no table {', '.join(lacking)}"
        for fact in there:
            try:
                yield from [f"{OTHER}: {why}" for why in self._unlike(fact)]
            except DataError as error:
                yield f"{OTHER}: {error.problem}"

    def _unlike(self, fact: KnownFact) -> Iterator[str]:
        """How a table differs from a fact about it; it is read only if nothing else says that."""
        table = f"table '{fact.table}'"
        what, digest_there, values = f"the file of {table}", "", 0
        rows = self.pinned.get(fact.table, {}).get("rows")
        if fact.column is not None or (fact.rows is not None and rows is None):
            rows, values, digest_there = self._measured(fact.table, fact.column)
        if fact.column is not None:
            what = f"'{fact.column}' in {table}"
        elif fact.digest is not None:
            files = self.described(fact.table).get("files", ())
            digest_there = ", ".join(file.get("sha256", "unknown") for file in files)
        if fact.rows not in (None, rows):
            yield f"{table} has {rows:,} rows, not {fact.rows:,}"
        if fact.values not in (None, values):
            yield f"{what} has {values:,} distinct values, not {fact.values:,}"
        if fact.digest not in (None, digest_there):
            there, stated = digest_there[:SHOWN], str(fact.digest)[:SHOWN]
            yield f"{what} has the digest {there}…, not {stated}…"

    def _measured(self, name: str, column: str | None) -> tuple[int, int, str]:
        """The number of a table's rows, and of a column's distinct values with their digest.

        They are found once for all tasks, in the database if that holds the table.
        """
        key = "measured", self._identity(name), column
        if key not in self.shared:
            table, rows, values = self.tables[name], 0, set[str]()
            exact = column is None or table.columns[column].type in ("string", "integer")
            database = self.shared.get(self._key(tuple(self.tables), _database))
            if exact and database is not None and database.holds(name):
                held = database.relation(name)
                [(rows,)] = held.aggregate("count(*)").fetchall()
                found = held.project(quoted(column)).distinct().fetchall() if column else []
                values = {str(one) for (one,) in found if one is not None}
            else:
                for batch in table.batches(*([column] if column else [*table.columns][:1])):
                    rows += len(batch)
                    cells = batch.columns[column] if column else []
                    values.update(str(one) for one in cells if one is not None)
            text = "\n".join(sorted(values))
            self.shared[key] = rows, len(values), hashlib.sha256(text.encode()).hexdigest()
        measured: tuple[int, int, str] = self.shared[key]
        return measured

    def has(self, name: str) -> bool:
        """Whether there is data for a table, which may be optional."""
        return name not in self.absent and bool(self._name(name))

    def table(self, name: str | None = None) -> Table:
        """The table of this name, or without a name the only table."""
        return self.tables[self._name(name)]

    def relation(self, name: str | None = None) -> duckdb.DuckDBPyRelation:
        """The rows of a table, for tables with millions of rows; see `Database`."""
        return self.database.relation(self._name(name))

    @property
    def database(self) -> Database:
        """All tables in a database, one for all tasks that read the same tables."""
        return self.once(tuple(self.tables), _database)

    def once(self, names: str | Sequence[str], make: Callable[..., T], *given: Hashable) -> T:
        """The result of `make(*tables, *given)`, made once for all tasks with the same of both."""
        names = (names,) if isinstance(names, str) else tuple(names)
        key = self._key(names, make, *given)
        if key not in self.shared:
            self.shared[key] = make(*(self.table(name) for name in names), *given)
        made: T = self.shared[key]
        return made

    def _key(self, names: Iterable[str], *given: Hashable) -> tuple[Any, ...]:
        return tuple(self._identity(name) for name in names), given

    def _identity(self, name: str) -> tuple[Any, ...]:
        """What two tasks have in common that read the same table."""
        source = canonical(self.pinned[name]) if name in self.pinned else self.files[name]
        return name, source, msgspec.json.encode(self.table(name).columns)

    def path(self, name: str | None = None) -> Path:
        """The only file of a table, for files that have their own layout."""
        paths = self.paths(name)
        if len(paths) > 1:
            raise DataError(
                f"table '{self._name(name)}' of task '{self.task}' is in several files",
                found=join_names(str(path) for path in paths),
                expected="one file",
            )
        return paths[0]

    def paths(self, name: str | None = None) -> tuple[Path, ...]:
        """The files of a table, in the order in which they are read."""
        table = self._name(name)
        if table not in self.files:
            raise DataError(
                f"table '{table}' of task '{self.task}' has no file of its own",
                found="a split that the datasets library prepared",
                expected="a table with `hub_files`, or data given with --data",
            )
        return tuple(source.path for source in self.files[table])

    def gaps(self) -> list[str]:
        """The first row without a value of each column that the task declares `required: false`."""
        places = []
        for table in self.tables.values():
            for column in (name for name, one in table.columns.items() if not one.required):
                for batch in table.batches(column):
                    if None in (cells := batch.columns[column]):
                        row = batch.first + cells.index(None)
                        places.append(table.bad(row, column, None, "").where or column)
                        break
        return places

    def choose(self, ids: Iterable[str], *, of: str = "users") -> list[str]:
        """The ids that this run keeps, in an order that depends on seed and ids only."""
        bounds = [bound for bound in (self.size, self.limit) if bound is not None]
        kept, there = choose(ids, seed=self.seed, most=min(bounds, default=None))
        if not there:
            raise DataError(
                f"the data of task '{self.task}' leaves no {of} to choose from",
                where=join_names(s.label for t in self.tables.values() for s in t.sources),
                found="; ".join(self.noted) or None,
                expected=f"data that leaves at least one of the {of}",
            )
        self.chosen[of] = {"chosen": len(kept), "of": there}
        return kept

    def note(self, fact: str, number: int) -> None:
        """Note a count for readers of the scores; nobody needs to know what did not happen."""
        if number:
            self.notes[fact] = number
        else:
            self.notes.pop(fact, None)

    @property
    def noted(self) -> tuple[str, ...]:
        """The noted facts, one line each."""
        return tuple(f"{fact}: {number:,}" for fact, number in self.notes.items())

    def describe(self) -> dict[str, Any]:
        """The description of the data for the manifest: origin, revision, files, fingerprints.

        `fingerprint` depends on content alone: the bytes of files, or repository, revision,
        configuration and split.
        """
        tables = {name: self.described(name) for name in self.tables}
        return {
            "origin": self.origin,
            "comparable": not self.why_incomparable,
            "fingerprint": digest(
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

    def described(self, name: str) -> dict[str, Any]:
        """The description of a table: its fingerprint, and its files with their digests."""
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
                    "fingerprint": digest([one["sha256"] for one in files]),
                    "files": files,
                }
            own = {
                key: {"called": column.called, "values": column.values}
                for key, column in self.tables[name].columns.items()
                if column.called is not None or column.values
            }
            if own:
                fingerprint = digest([self._hashes[name]["fingerprint"], own])
                self._hashes[name] |= {"fingerprint": fingerprint, "columns": own}
        return self._hashes[name]

    def _name(self, name: str | None) -> str:
        known = (*self.tables, *self.absent)
        if name is None and len(known) == 1:
            name = known[0]
        if name is not None and name in self.absent:
            raise DataError(
                f"this data has no table '{name}', which task '{self.task}' needs with its options",
                expected=self.absent[name],
            )
        if name is not None and name in self.tables:
            return name
        near = nearest(name, known) if name else None
        raise DataError(
            f"task '{self.task}' has no table '{name}'"
            if name
            else f"task '{self.task}' has several tables: name one of them",
            expected=f"one of: {join_names(known)}",
            hint=f"'{near}' is the nearest name" if near else None,
        )


def _database(*tables: Table) -> Database:
    from harness.data.database import Database

    return Database({table.name: table for table in tables})


def choose(ids: Iterable[str], *, seed: int, most: int | None) -> tuple[list[str], int]:
    """The ids with the smallest hashes, at most `most`, in hash order; and the number of all ids.

    Repeated ids count once. The choice of 10 is a part of the choice of 20 for the same seed.
    """
    distinct = set(ids)
    ordered = sorted(distinct, key=lambda one: (stable_int("choose", seed, one), one))
    return (ordered if most is None else ordered[:most]), len(distinct)


def open_dataset(
    spec: DataSpec,
    *,
    data: str | None,
    limit: int | None,
    seed: int,
    package: Path | None,
    task: str,
    shared: dict[Any, Any] | None = None,
    fetching: Fetching | None = None,
    named: Mapping[str, Collection[str]] | None = None,
) -> TaskData:
    """The opened data of a task; no row is read yet.

    `data` is the value of `--data`: None for the task's own sources, "build" for those that build
    the data, "sample" for the sample in `package`, the folder of the benchmark's code, else a file
    or folder. Datasets with the same `shared` share the results of `TaskData.once`. `fetching` is
    what may be fetched. `named` are in a run the columns that the command names in the data.
    """
    if limit is not None and limit < 1:
        raise UsageError("the limit is too small", found=f"--limit {limit}", expected="1 or more")
    make = partial(
        TaskData,
        task=task,
        size=spec.size,
        limit=limit,
        seed=seed,
        shared={} if shared is None else shared,
        known=spec.known,
        named=named,
    )
    opener = _Opener(spec, task, make, fetching or Fetching())
    if data is None:
        return opener.first_of(spec.sources)
    if data == BUILD:
        building = [source for source in spec.sources if source.build is not None]
        if not building:
            raise DataError(
                f"task '{task}' has no source that builds its data",
                found="--data build",
                hint="name the tasks that have one, as --data TASK=build; for a folder with the "
                "name build, use --data ./build",
            )
        return opener.first_of(building)
    origin: Origin = "local"
    about = {"path": data}
    replaced = published(spec)
    if replaced is not None:
        about["in_place_of"] = replaced
    folder = expanded(data, where="--data")
    if data == SAMPLE:
        origin = "sample"
        folder = _sample_folder(spec, package, task=task)
        about = {"sample": str(spec.sample)}
    return opener.folder(folder, about, origin=origin, inside=data in (spec.folder, SAMPLE))


def name_of(source: SourceSpec) -> str:
    """The name of a source for people."""
    if source.hub is not None:
        return f"the hub's {source.hub.repo}"
    if source.url is not None:
        return without_query(source.url.address)
    if source.drive is not None:
        return f"{source.drive.name} on Google Drive"
    if source.build is not None:
        return f"what `harness data {source.build.tool}` makes"
    return "its owner, who must be asked"


def published(spec: DataSpec) -> str | None:
    """The name of the published data, if a source has it."""
    for source in spec.sources:
        if source.hub is not None:
            return source.hub.repo
        if source.url is not None or source.drive is not None:
            return name_of(source)
    return None


@dataclass(frozen=True)
class _Opener:
    """Opens the sources of one task's data; `make` adds what does not depend on the source."""

    spec: DataSpec
    task: str
    make: Callable[..., TaskData]
    fetching: Fetching

    def folder(
        self, folder: Path, about: Mapping[str, Any], *, origin: Origin, inside: bool = True
    ) -> TaskData:
        """The data in a folder or file; with `inside`, links that lead out of it are refused."""
        tables = self.spec.tables
        found = find_tables(folder, tables, task=self.task)
        home = folder.resolve()
        for path in (path for paths in found.values() for path in paths):
            if inside and not path.resolve().is_relative_to(home):
                raise DataError(
                    "a file of the task's data is a link to a place outside its folder",
                    where=str(path),
                    found=str(path.resolve()),
                    expected=f"a file in {folder}",
                    hint="copy it there, or name the folder on the command line with --data DIR",
                )
        files = {name: _file_sources(paths, tables[name]) for name, paths in found.items()}
        return self.make(
            origin=origin,
            about=about,
            tables=_tables(tables, files),
            files=files,
            pinned={},
            absent={
                name: f"{join_names(patterns(name, table))} in {folder}"
                for name, table in tables.items()
                if name not in found
            },
        )

    def first_of(self, sources: Sequence[SourceSpec]) -> TaskData:
        """The data of the first source that has it; the error of the last names the others."""
        spec, fetching = self.spec, self.fetching
        if not sources:
            ways = "--data FILE or --data DIR" if len(spec.tables) == 1 else "--data DIR"
            raise DataError(
                f"task '{self.task}' needs data that is not on the hub",
                expected=f"{ways}; the task's documentation says where to get the data",
                hint="for a first try, use the bundled sample: --data sample"
                if spec.sample
                else None,
            )
        failed: list[tuple[str, Unavailable]] = []
        for source in sources:
            name, key = name_of(source), msgspec.json.encode(source)
            if key in fetching.failed:
                failed.append((name, fetching.failed[key]))
                continue
            try:
                return self._source(source)
            except Unavailable as error:
                failed.append((name, error))
                if source is not sources[-1]:
                    fetching.say(f"no data from {name}: {error.problem}")
                if (source.url or source.drive) and fetching.why_offline() is None:
                    fetching.failed[key] = error
        if len(failed) == 1:
            raise failed[0][1]
        raise Unavailable(
            f"task '{self.task}' cannot get its data from any of its {len(failed)} sources",
            found=_lines(
                f"{name}: {': '.join(filter(None, [error.problem, error.found]))}"
                for name, error in failed
            ),
            expected=failed[-1][1].expected,
            hint=_lines(dict.fromkeys(error.hint for _, error in failed if error.hint)),
        )

    def _source(self, source: SourceSpec) -> TaskData:
        if source.hub is not None:
            return self._hub(source.hub)
        if source.ask is not None:
            terms = source.ask.terms
            raise Unavailable(
                f"task '{self.task}' needs data that only a person can get",
                found=f"terms of its owner: {terms}" if terms else None,
                hint=_lines(f"{number}. {step}" for number, step in enumerate(source.ask.steps, 1)),
            )
        if source.url is not None:
            return self._download(source.url, "url")
        if source.drive is not None:
            return self._download(source.drive, "drive")
        if source.build is not None:
            return self._build(source.build)
        raise DataError(f"task '{self.task}': a source of the data is of no known kind")

    def _download(self, remote: UrlSpec | DriveSpec, origin: Origin) -> TaskData:
        tables = self.spec.tables
        download = fetched(remote, task=self.task, fetching=self.fetching)
        about = {"address": without_query(remote.address), "digest": download.digest}
        place = download.folder if len(tables) > 1 else download.place
        # An archive may have a folder more.
        data = self.folder(holder_of(place, tables, task=self.task) or place, about, origin=origin)
        paths = [source.path for files in data.files.values() for source in files]
        stated = {download.folder / name for name in remote.contents}
        data.settled = remote.digest is not None or stated.issuperset(paths)
        return data

    def _hub(self, hub: HubSpec) -> TaskData:
        from harness.data.hub import open_hub

        tables = self.spec.tables
        opened = open_hub(hub, tables, task=self.task, fetching=self.fetching)
        files = {name: _file_sources(paths, tables[name]) for name, paths in opened.files.items()}
        splits = {name: (split,) for name, split in opened.splits.items()}
        return self.make(
            origin="hub",
            about=opened.about,
            tables=_tables(tables, {**files, **splits}),
            files=files,
            pinned=opened.pinned,
            settled=bool(COMMIT.fullmatch(hub.revision or ""))
            and hub.revision == opened.about["revision"],
            absent=dict.fromkeys(
                (name for name in tables if name not in opened.pinned),
                f"`split` or `hub_files` in the task's table, for the hub's '{hub.repo}'",
            ),
        )

    def _build(self, build: BuildSpec) -> TaskData:
        from harness.data.build import built

        tools = self.fetching.tools
        if tools is None:
            raise Unavailable(
                f"task '{self.task}' needs data that `harness data {build.tool}` builds",
                hint="build it with `harness data fetch`, then give the folder with --data",
            )
        found = built(build, tools(build), task=self.task, fetching=self.fetching)
        about = {"digest": found.digest, **msgspec.to_builtins(found.record)}
        if (replaced := published(self.spec)) is not None:
            about["in_place_of"] = replaced
        return self.folder(found.folder, about, origin=BUILD)


def _lines(parts: Iterable[str]) -> str:
    return f"\n{' ' * 12}".join(parts)


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
            path=path,
            stamp=stamp_of(path),
            delimited=table.delimited,
            entries=table.entries,
            rows_at=table.rows_at,
        )
        for path in paths
    )


def _sample_folder(spec: DataSpec, package: Path | None, *, task: str) -> Path:
    if spec.sample is None or package is None:
        raise DataError(
            f"task '{task}' has no bundled sample",
            found="--data sample",
            expected="a file or folder with the data, or a data set on the hub",
            hint="for a folder with the name sample, use --data ./sample",
        )
    folder = package / spec.sample
    if not folder.resolve().is_relative_to(package.resolve()):
        raise DataError(
            f"the sample of task '{task}' is outside its package",
            where=str(folder),
            expected="a folder inside the package, by its path there",
        )
    if not folder.exists():
        raise DataError(
            f"the bundled sample of task '{task}' is not installed",
            where=str(folder),
            expected="the folder that the task's `data.sample` names inside its package",
            hint="report this to the plugin's authors: the package lacks its sample files",
        )
    return folder
