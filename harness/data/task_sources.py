"""The data of a task, opened where it lies, or from the first of its sources that has it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.base.errors import DataError, Unavailable, UsageError
from harness.base.home import expanded
from harness.base.redaction import without_query
from harness.contracts.identity import COMMIT
from harness.data.dataset import BUILD, SAMPLE, Origin, TaskData
from harness.data.fetch import Fetching, fetched
from harness.data.files import find_tables, holder_of, patterns
from harness.data.read import FileSource, Table
from harness.data.records import stamp_of
from harness.data.wording import join_names

if TYPE_CHECKING:
    from harness.contracts.task import (
        BuildSpec,
        DataSpec,
        DriveSpec,
        HubSpec,
        SourceSpec,
        TableSpec,
        UrlSpec,
    )
    from harness.data.read import Source


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
