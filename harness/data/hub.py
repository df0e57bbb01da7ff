"""Tables from the Hugging Face hub: prepared splits, or files of the repository.

Files are fetched into the cache of `huggingface_hub` and read from there by `datasets`, so that a
benchmark can read them again, even without a network. Code in a repository is never run.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import DataError, Unavailable
from harness.base.hashing import digest
from harness.data.wording import join_names, nearest

if TYPE_CHECKING:
    import datasets  # type: ignore[import-untyped]
    import pyarrow as pa  # type: ignore[import-untyped]

    from harness.contracts.task import HubSpec, TableSpec

BATCH_ROWS = 1024

HUB_TIMEOUT = 15.0
"""Seconds to wait for the hub's first answer before the cache is used instead."""

_PRIVATE = "check the name; for a private data set log in (hf auth login) or set HF_TOKEN"
_GATED = "request access on its page on the hub, then log in (hf auth login) or set HF_TOKEN"


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
    """One table from the hub: its files or its split, and its description for the manifest."""

    described: Mapping[str, Any]
    files: tuple[Path, ...] = ()
    split: SplitSource | None = None


@dataclass(frozen=True, kw_only=True)
class OpenedHub:
    """A data set of the hub: its description and its fetched tables."""

    about: Mapping[str, Any]
    tables: Mapping[str, HubTable]


@dataclass(frozen=True, kw_only=True)
class _Listing:
    """The files of a data set at a commit; `offline` is why they come from the cache."""

    files: tuple[str, ...]
    commit: str | None = None
    offline: str | None = None


def open_hub(
    hub: HubSpec, tables: Mapping[str, TableSpec], *, task: str, offline: str | None = None
) -> OpenedHub:
    """The tables of a task at one commit of a hub data set, fetched or only from the cache.

    `offline` is why nothing may be fetched, as it follows `because`. A table that is not required
    and has no place on the hub is left out.
    """
    placed = {name: table for name, table in tables.items() if table.split or table.hub_files}
    for name, table in tables.items():
        if table.required and name not in placed:
            raise DataError(
                f"task '{task}' has no place of table '{name}' in the hub's '{hub.repo}'",
                expected="`split` or `hub_files` in the task's table",
                hint="give the data with --data, or correct the task file",
            )
    asked_not = f"the hub was not asked, because {offline}" if offline else None
    listing = _listing(hub, task=task, offline=asked_not)
    chosen = {
        name: _matching(hub, table.hub_files, listing.files, table=name, task=task)
        for name, table in placed.items()
        if table.hub_files
    }
    # Only `datasets` knows which files make a split, so a split needs all of them.
    whole = len(chosen) < len(placed)
    wanted = None if whole else [one for files in chosen.values() for one in files]
    folder = _snapshot(hub, wanted, listing, task=task)
    commit = folder.name
    builder = _builder(hub, folder, task=task) if whole else None
    opened = {
        name: _files(hub, folder, chosen[name])
        if name in chosen
        else _split(hub, builder, str(table.split), commit, task=task)
        for name, table in placed.items()
    }
    about = {
        "repo": hub.repo,
        "config": builder.config.name if builder is not None else hub.config,
        "asked_revision": hub.revision,
        "revision": commit,
        "offline": listing.offline,
    }
    return OpenedHub(about=about, tables=opened)


def endpoint() -> str:
    """The address of the hub."""
    from huggingface_hub import constants

    return constants.ENDPOINT


def _listing(hub: HubSpec, *, task: str, offline: str | None) -> _Listing:
    """The files of a data set at the task's revision; `offline` is why the hub is not asked.

    A refusal of the hub is an error. A hub that cannot be reached is one only without a cache.
    """
    from huggingface_hub import HfApi, constants, errors, get_cached_repo_tree

    if offline is None:
        # The library raises any error of its transport: each means that no answer came.
        try:
            info = HfApi().dataset_info(hub.repo, revision=hub.revision, timeout=HUB_TIMEOUT)
            files = tuple(sorted(file.rfilename for file in info.siblings or ()))
            return _Listing(files=files, commit=info.sha)
        except errors.GatedRepoError as error:
            raise _refused(hub, task, "access must be requested first", _GATED) from error
        except errors.RepositoryNotFoundError as error:
            raise _refused(hub, task, "it does not exist, or is private", _PRIVATE) from error
        except errors.RevisionNotFoundError as error:
            raise _refused(
                hub, task, f"it has no revision '{hub.revision}'", "correct the task's revision"
            ) from error
        except errors.HFValidationError as error:
            raise _refused(
                hub, task, str(error), "correct `hub.repo` in the task's `data.sources`"
            ) from error
        except Exception as error:
            offline = f"{endpoint()} could not be reached: {_first_line(error)}"
    try:
        tree = get_cached_repo_tree(hub.repo, repo_type="dataset", revision=hub.revision)
    except errors.CachedRepoTreeNotFoundError as error:
        looked = f"looked in {constants.HF_HUB_CACHE}"
        raise _unreachable(hub, offline, looked, task=task) from error
    return _Listing(files=tuple(sorted(file.path for file in tree)), offline=offline)


def _matching(
    hub: HubSpec, patterns: Sequence[str], listing: Sequence[str], *, table: str, task: str
) -> list[str]:
    """The files of a data set that match the patterns, each once, in the patterns' order."""
    chosen: dict[str, None] = {}
    for pattern in patterns:
        expression = _translated(pattern)
        found = [one for one in listing if expression.fullmatch(one)]
        if not found:
            raise DataError(
                f"no file of the hub's '{hub.repo}' matches '{pattern}' (table '{table}')",
                found=f"files {join_names(listing)} at revision {hub.revision or 'main'}",
                hint=f"correct `hub_files` of task '{task}'",
            )
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def _snapshot(hub: HubSpec, files: Sequence[str] | None, listing: _Listing, *, task: str) -> Path:
    """The folder of one commit in the hub's cache, named by the commit, with these files or all.

    The request has the task's revision, so that the cache remembers the commit of a branch.
    """
    from huggingface_hub import snapshot_download

    # The library raises any error of its transport, so all of them become one error here.
    try:
        folder = Path(
            snapshot_download(
                hub.repo,
                repo_type="dataset",
                revision=hub.revision,
                allow_patterns=None if files is None else [glob.escape(one) for one in files],
                local_files_only=listing.offline is not None,
            )
        )
    except Exception as error:
        if listing.offline:
            raise _unreachable(hub, listing.offline, _first_line(error), task=task) from error
        raise _failed(hub, "its files could not be fetched", error, task=task) from error
    if listing.commit not in (None, folder.name):
        # The branch moved in between, or the hub went away and the library used its cache.
        raise DataError(
            f"task '{task}': the revision of '{hub.repo}' changed while it was fetched",
            found=f"revision {folder.name}",
            expected=f"revision {listing.commit}",
            hint="run again once the hub can be reached, or give the data with --data",
        )
    return folder


def _files(hub: HubSpec, folder: Path, files: Sequence[str]) -> HubTable:
    paths = tuple(folder / one for one in files)
    described = {
        "fingerprint": digest([hub.repo, folder.name, list(files)]),
        "files": [
            {"file": one, "bytes": path.stat().st_size}
            for one, path in zip(files, paths, strict=True)
        ],
    }
    return HubTable(described=described, files=paths)


def _builder(hub: HubSpec, folder: Path, *, task: str) -> Any:
    """The library's builder of one configuration, with its splits prepared."""
    import datasets

    # The library raises any error of its readers, so all of them become one error here.
    try:
        builder = datasets.load_dataset_builder(str(folder), name=hub.config)
        builder.download_and_prepare()
    except Exception as error:
        raise _failed(hub, "the datasets library cannot prepare it", error, task=task) from error
    return builder


def _split(hub: HubSpec, builder: Any, split: str, commit: str, *, task: str) -> HubTable:
    names = list(builder.info.splits or ())
    if split.partition("[")[0] not in names:
        near = nearest(split, names)
        raise DataError(
            f"the hub's '{hub.repo}' has no split '{split}'",
            found=f"splits {join_names(names)} in configuration '{builder.config.name}'",
            expected=f"the split that task '{task}' names",
            hint=f"'{near}' is the nearest name" if near else None,
        )
    try:
        rows = builder.as_dataset(split=split)
    except Exception as error:
        raise _failed(hub, f"split '{split}' cannot be read", error, task=task) from error
    label = f"{hub.repo}@{commit[:10]} ({builder.config.name}, {split})"
    described = {
        "fingerprint": digest([hub.repo, commit, builder.config.name, split]),
        "split": split,
        "rows": len(rows),
    }
    return HubTable(described=described, split=SplitSource(label=label, split=rows))


def _failed(hub: HubSpec, problem: str, error: Exception, *, task: str) -> DataError:
    deepest: BaseException = error
    while deepest.__cause__ is not None:
        deepest = deepest.__cause__
    return DataError(
        f"task '{task}': the hub's data set '{hub.repo}': {problem}",
        found=f"{type(deepest).__name__}: {_first_line(deepest)}",
        hint="give a local copy with --data FILE or --data DIR",
    )


def _refused(hub: HubSpec, task: str, why: str, hint: str) -> Unavailable:
    return Unavailable(
        f"task '{task}': the hub refused the data set '{hub.repo}'",
        where=endpoint(),
        found=why,
        hint=f"{hint}; or give the data with --data",
    )


def _unreachable(hub: HubSpec, why: str, looked: str, *, task: str) -> Unavailable:
    wanted = f"'{hub.repo}'" + (f" at revision '{hub.revision}'" if hub.revision else "")
    return Unavailable(
        f"task '{task}' needs the hub's data set {wanted}, which is neither reachable nor cached",
        found=f"{why}; {looked}",
        expected="a connection to the hub, or a cache that an earlier run filled",
        hint="give a local copy with --data FILE or --data DIR, or run once with a network",
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0]


def _translated(pattern: str) -> re.Pattern[str]:
    """A glob over paths in a repository: * and ? stay in one folder, **/ spans any number."""
    translated = ""
    for part in re.split(r"(\*\*/|\*|\?)", pattern):
        translated += {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
    return re.compile(translated)
