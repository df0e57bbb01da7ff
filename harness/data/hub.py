"""Tables from the Hugging Face hub: prepared splits, or files of the repository.

Data is fetched once into the library's own cache and streamed from there, so that a benchmark can
read it twice, and again without a network. Code in a repository is never run.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.data.hub_revision import (
    Revision,
    prepared,
    prepared_folder,
    repo_folder,
    resolve,
    unreachable,
)
from harness.data.wording import listed, nearest
from harness.errors import DataError
from harness.hashing import digest

if TYPE_CHECKING:
    import datasets  # type: ignore[import-untyped]
    import pyarrow as pa  # type: ignore[import-untyped]

    from harness.tasks.task import HubSpec, TableSpec

BATCH_ROWS = 1024


@dataclass(frozen=True, kw_only=True)
class SplitSource:
    """The rows of one prepared split, read from memory-mapped files in batches."""

    label: str
    split: datasets.Dataset
    text: bool = field(default=False, init=False)

    def columns(self) -> tuple[str, ...] | None:
        return tuple(self.split.column_names)

    def rows(
        self, wanted: Collection[str] | None
    ) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
        for batch in self.batches(wanted, rows=BATCH_ROWS):
            for row in batch.to_pylist():
                yield None, row

    def batches(self, wanted: Collection[str] | None, *, rows: int) -> Iterator[pa.RecordBatch]:
        split = self.split
        if wanted is not None:
            split = split.select_columns([name for name in split.column_names if name in wanted])
        for table in split.with_format("arrow").iter(batch_size=rows):
            yield from table.to_batches()


@dataclass(frozen=True, kw_only=True)
class HubTable:
    """One table as the hub gave it: its files, or a split; and what was read, for the manifest."""

    described: Mapping[str, Any]
    files: tuple[Path, ...] = ()
    split: SplitSource | None = None


@dataclass(frozen=True, kw_only=True)
class OpenedHub:
    """A data set of the hub with everything that a task wants of it fetched."""

    about: Mapping[str, Any]
    tables: Mapping[str, HubTable]


def open_hub(hub: HubSpec, tables: Mapping[str, TableSpec], *, task: str) -> OpenedHub:
    """The tables of a task at one commit of a hub data set, fetched or found in the caches.

    A table that is not required and has no place there is left out.
    """
    placed = {name: table for name, table in tables.items() if table.split or table.hub_files}
    for name, table in tables.items():
        if table.required and name not in placed:
            raise DataError(
                f"task '{task}' does not say where the hub's '{hub.repo}' holds table '{name}'",
                expected="`split` or `hub_files` in the task's table",
                hint="give the data with --data, or mend the task file",
            )
    revision = resolve(hub, task=task)
    builder: Any = None
    opened = {}
    for name, table in placed.items():
        if table.hub_files:
            opened[name] = _files(hub, table.hub_files, revision, name=name, task=task)
        else:
            if builder is None:
                builder = _builder(hub, revision, task=task)
            opened[name] = _split(hub, builder, str(table.split), revision, task=task)
    about = {
        "repo": hub.repo,
        "config": builder.config.name if builder is not None else hub.config,
        "asked_revision": hub.revision,
        "revision": revision.commit,
        "offline": revision.offline,
    }
    return OpenedHub(about=about, tables=opened)


def _files(
    hub: HubSpec, patterns: tuple[str, ...], revision: Revision, *, name: str, task: str
) -> HubTable:
    from huggingface_hub import snapshot_download

    chosen: list[str] = []
    for pattern in patterns:
        chosen += [
            one
            for one in _fitting(hub, pattern, revision, name=name, task=task)
            if one not in chosen
        ]
    folder = repo_folder(hub.repo) / "snapshots" / revision.commit
    if revision.offline is None:
        # The library raises whatever its transport raises, so all of it is told in one way here.
        try:
            snapshot_download(
                hub.repo,
                repo_type="dataset",
                revision=revision.commit,
                allow_patterns=[glob.escape(one) for one in chosen],
            )
        except Exception as error:
            raise _failed(hub, f"{listed(chosen)} could not be had", error, task=task) from error
    paths = tuple(folder / one for one in chosen)
    absent = [one for one, path in zip(chosen, paths, strict=True) if not path.is_file()]
    if absent:
        looked = f"{folder} lacks {listed(absent)}"
        raise unreachable(hub, revision.offline or "the download ended", looked, task=task)
    described = {
        "fingerprint": digest([hub.repo, revision.commit, chosen]),
        "files": [
            {"file": one, "bytes": path.stat().st_size}
            for one, path in zip(chosen, paths, strict=True)
        ],
    }
    return HubTable(described=described, files=paths)


def _fitting(hub: HubSpec, pattern: str, revision: Revision, *, name: str, task: str) -> list[str]:
    """The files of a repository that a pattern means; a plain name needs no list of them."""
    if revision.files is None:
        if not glob.has_magic(pattern):
            return [pattern]
        looked = f"{repo_folder(hub.repo)} has no list of files to hold '{pattern}' against"
        raise unreachable(hub, str(revision.offline), looked, task=task)
    fits = _translated(pattern)
    found = [one for one in revision.files if fits.fullmatch(one)]
    if not found:
        raise DataError(
            f"no file of the hub's '{hub.repo}' fits '{pattern}' (table '{name}')",
            found=f"files {listed(revision.files)} at revision {revision.commit}",
            hint=f"mend `hub_files` of task '{task}'",
        )
    return found


def _builder(hub: HubSpec, revision: Revision, *, task: str) -> Any:
    """The library's builder of one configuration at one commit, with its splits prepared."""
    import datasets

    if revision.offline:
        ready = prepared(hub.repo, revision.commit)
        if ready:
            return _prepared_builder(hub, ready, revision, task=task)
        path = str(_whole_snapshot(hub, revision, task=task))
    else:
        path = f"hf://datasets/{hub.repo}"
    pinned = None if revision.offline else revision.commit
    # The library raises whatever its readers raise, so all of it is told in one way here.
    try:
        builder = datasets.load_dataset_builder(path, name=hub.config, revision=pinned)
        builder.download_and_prepare()
    except Exception as error:
        raise _failed(hub, "the datasets library cannot prepare it", error, task=task) from error
    if pinned is not None and builder.hash != pinned:
        raise DataError(
            f"task '{task}': the hub went away, and another revision of '{hub.repo}' was cached",
            found=f"revision {builder.hash}",
            expected=f"revision {pinned}",
            hint="run again when the hub can be reached, or give the data with --data",
        )
    return builder


def _whole_snapshot(hub: HubSpec, revision: Revision, *, task: str) -> Path:
    """The cached files of a commit, if they are known to be all: some would be a smaller set."""
    folder = repo_folder(hub.repo) / "snapshots" / revision.commit
    if revision.files is None:
        looked = f"looked in {prepared_folder(hub.repo)}; nothing tells whether {folder} is whole"
        raise unreachable(hub, str(revision.offline), looked, task=task)
    absent = [one for one in revision.files if not (folder / one).is_file()]
    if absent:
        looked = f"looked in {prepared_folder(hub.repo)}; {folder} lacks {listed(absent)}"
        raise unreachable(hub, str(revision.offline), looked, task=task)
    return folder


def _prepared_builder(
    hub: HubSpec, ready: Mapping[str, str], revision: Revision, *, task: str
) -> Any:
    """The builder of what is cached. The library's own choice would be its newest copy of any
    revision, so the commit is named here."""
    from datasets.packaged_modules.cache.cache import (  # type: ignore[import-untyped]
        Cache,
    )

    config = hub.config or ("default" if "default" in ready else None)
    if config is None and len(ready) == 1:
        config = next(iter(ready))
    if config is None or config not in ready:
        raise unreachable(
            hub,
            str(revision.offline),
            f"of revision {revision.commit} the cache holds the configurations {listed(ready)}"
            + (f", not '{config}'" if config else ", and the task names none"),
            task=task,
        )
    try:
        return Cache(
            repo_id=hub.repo,
            dataset_name=hub.repo.split("/")[-1],
            config_name=config,
            version=ready[config],
            hash=revision.commit,
        )
    except Exception as error:
        raise _failed(hub, "its cached copy cannot be read", error, task=task) from error


def _split(hub: HubSpec, builder: Any, split: str, revision: Revision, *, task: str) -> HubTable:
    names = list(builder.info.splits or ())
    if split.partition("[")[0] not in names:
        near = nearest(split, names)
        raise DataError(
            f"the hub's '{hub.repo}' has no split '{split}'",
            found=f"splits {listed(names)} in configuration '{builder.config.name}'",
            expected=f"the split that task '{task}' names",
            hint=f"'{near}' is the nearest name" if near else None,
        )
    try:
        rows = builder.as_dataset(split=split)
    except Exception as error:
        raise _failed(hub, f"split '{split}' cannot be read", error, task=task) from error
    label = f"{hub.repo}@{revision.commit[:10]} ({builder.config.name}, {split})"
    described = {
        "fingerprint": digest([hub.repo, revision.commit, builder.config.name, split]),
        "split": split,
        "rows": len(rows),
    }
    return HubTable(described=described, split=SplitSource(label=label, split=rows))


def _failed(hub: HubSpec, problem: str, error: Exception, *, task: str) -> DataError:
    deepest: BaseException = error
    while deepest.__cause__ is not None:
        deepest = deepest.__cause__
    lines = str(deepest).strip().splitlines() or [""]
    return DataError(
        f"task '{task}': the hub's data set '{hub.repo}': {problem}",
        found=f"{type(deepest).__name__}: {lines[0]}",
        hint="give a local copy with --data FILE or --data DIR",
    )


def _translated(pattern: str) -> re.Pattern[str]:
    """A glob over paths in a repository: * and ? stay in one folder, **/ spans any number."""
    translated = ""
    for part in re.split(r"(\*\*/|\*|\?)", pattern):
        translated += {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
    return re.compile(translated)
