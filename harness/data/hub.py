"""Tables from the Hugging Face hub: prepared splits, or files of the repository.

Files are fetched into the cache of `huggingface_hub` and read from there by `datasets`, so that a
benchmark can read them again, even without a network. Code in a repository is never run.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
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
_REVISION = "correct the task's revision"
_REPO = "correct `hub.repo` in the task's `data.sources`"


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
class OpenedHub:
    """The tables of a task at one commit of a data set: the files or the split of each.

    `about` describes the data set for the manifest, `pinned` its tables.
    """

    about: Mapping[str, Any]
    pinned: Mapping[str, Mapping[str, Any]]
    files: Mapping[str, tuple[Path, ...]]
    splits: Mapping[str, SplitSource]


def open_hub(
    hub: HubSpec, tables: Mapping[str, TableSpec], *, task: str, offline: str | None = None
) -> OpenedHub:
    """The tables of a task at one commit of a hub data set, fetched or only from the cache.

    `offline` is why nothing may be fetched, as it follows `because`. A table that is not required
    and has no place on the hub is left out.
    """
    for name, table in tables.items():
        if table.required and not (table.split or table.hub_files):
            raise DataError(
                f"task '{task}' has no place of table '{name}' in the hub's '{hub.repo}'",
                expected="`split` or `hub_files` in the task's table",
                hint="give the data with --data, or correct the task file",
            )
    place = _Place(hub, task)
    asked_not = f"the hub was not asked, because {offline}" if offline else None
    listing, commit, asked_not = _listing(place, asked_not)
    chosen = {
        name: _matching(place, table.hub_files, listing, table=name)
        for name, table in tables.items()
        if table.hub_files
    }
    wanted = {name: t.split for name, t in tables.items() if t.split and name not in chosen}
    # Only `datasets` knows which files make a split, so a split needs all of them.
    fetched = None if wanted else [one for files in chosen.values() for one in files]
    folder = _snapshot(place, fetched, commit, asked_not)
    config, splits = _splits(place, folder, wanted) if wanted else (hub.config, {})
    files = {name: tuple(folder / one for one in found) for name, found in chosen.items()}
    pinned: dict[str, Mapping[str, Any]] = {
        name: {
            "fingerprint": digest([hub.repo, folder.name, found]),
            "files": [{"file": one, "bytes": (folder / one).stat().st_size} for one in found],
        }
        for name, found in chosen.items()
    }
    for name, split in wanted.items():
        fingerprint = digest([hub.repo, folder.name, config, split])
        rows = len(splits[name].split)
        pinned[name] = {"fingerprint": fingerprint, "split": split, "rows": rows}
    about = {
        "repo": hub.repo,
        "config": config,
        "asked_revision": hub.revision,
        "revision": folder.name,
        "offline": asked_not,
    }
    return OpenedHub(about=about, pinned=pinned, files=files, splits=splits)


@dataclass(frozen=True)
class _Place:
    """A task's data set on the hub, with the errors about it."""

    hub: HubSpec
    task: str

    def refused(self, where: str, why: str, hint: str) -> Unavailable:
        return Unavailable(
            f"task '{self.task}': the hub refused the data set '{self.hub.repo}'",
            where=where,
            found=why,
            hint=f"{hint}; or give the data with --data",
        )

    def unreachable(self, found: str) -> Unavailable:
        at = f" at revision '{self.hub.revision}'" if self.hub.revision else ""
        return Unavailable(
            f"task '{self.task}' needs the hub's data set '{self.hub.repo}'{at}, which is neither "
            "reachable nor cached",
            found=found,
            expected="a connection to the hub, or a cache that an earlier run filled",
            hint="give a local copy with --data FILE or --data DIR, or run once with a network",
        )

    @contextmanager
    def told(self, problem: str, kind: type[DataError] = DataError) -> Iterator[None]:
        """The libraries raise any error of their readers and transport: all become one here."""
        try:
            yield
        except Exception as error:
            deepest: BaseException = error
            while deepest.__cause__ is not None:
                deepest = deepest.__cause__
            raise kind(
                f"task '{self.task}': the hub's data set '{self.hub.repo}': {problem}",
                found=f"{type(deepest).__name__}: {_first_line(deepest)}",
                hint="give a local copy with --data FILE or --data DIR",
            ) from error


def _listing(place: _Place, asked_not: str | None) -> tuple[list[str], str | None, str | None]:
    """The files of a data set, its commit if the hub named it, and otherwise why it did not.

    A refusal of the hub is an error. A hub that cannot be reached is one only without a cache.
    """
    from huggingface_hub import HfApi, constants, errors, get_cached_repo_tree

    hub = place.hub
    refused = partial(place.refused, constants.ENDPOINT)
    try:
        if asked_not is None:
            info = HfApi().dataset_info(hub.repo, revision=hub.revision, timeout=HUB_TIMEOUT)
            return sorted(file.rfilename for file in info.siblings or ()), info.sha, None
    except errors.GatedRepoError as error:
        raise refused("access must be requested first", _GATED) from error
    except errors.RepositoryNotFoundError as error:
        raise refused("it does not exist, or is private", _PRIVATE) from error
    except errors.RevisionNotFoundError as error:
        raise refused(f"it has no revision '{hub.revision}'", _REVISION) from error
    except errors.HFValidationError as error:
        raise refused(str(error), _REPO) from error
    except Exception as error:  # any other error of the transport: no answer came
        asked_not = f"{constants.ENDPOINT} could not be reached: {_first_line(error)}"
    try:
        tree = get_cached_repo_tree(hub.repo, repo_type="dataset", revision=hub.revision)
    except errors.CachedRepoTreeNotFoundError as error:
        raise place.unreachable(f"{asked_not}; looked in {constants.HF_HUB_CACHE}") from error
    return sorted(file.path for file in tree), None, asked_not


def _matching(
    place: _Place, patterns: Sequence[str], listing: Sequence[str], *, table: str
) -> list[str]:
    """The files of a data set that match the patterns, each once, in the patterns' order."""
    chosen: dict[str, None] = {}
    for pattern in patterns:
        expression = _translated(pattern)
        found = [one for one in listing if expression.fullmatch(one)]
        if not found:
            raise DataError(
                f"no file of the hub's '{place.hub.repo}' matches '{pattern}' (table '{table}')",
                found=f"files {join_names(listing)} at revision {place.hub.revision or 'main'}",
                hint=f"correct `hub_files` of task '{place.task}'",
            )
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def _snapshot(
    place: _Place, files: Sequence[str] | None, commit: str | None, asked_not: str | None
) -> Path:
    """The folder of one commit in the hub's cache, named by the commit, with these files or all.

    The request has the task's revision, so that the cache remembers the commit of a branch.
    """
    from huggingface_hub import errors, snapshot_download

    hub = place.hub
    fetch = partial(snapshot_download, hub.repo, repo_type="dataset", revision=hub.revision)
    patterns = None if files is None else [glob.escape(one) for one in files]
    if asked_not is not None:
        try:
            return Path(fetch(allow_patterns=patterns, local_files_only=True))
        except errors.LocalEntryNotFoundError as error:
            raise place.unreachable(f"{asked_not}; {_first_line(error)}") from error
    with place.told("its files could not be fetched", Unavailable):
        folder = Path(fetch(allow_patterns=patterns))
    if folder.name != commit:
        # The branch moved in between, or the hub went away and the library used its cache.
        raise DataError(
            f"task '{place.task}': the revision of '{hub.repo}' changed while it was fetched",
            found=f"revision {folder.name}",
            expected=f"revision {commit}",
            hint="run again once the hub can be reached, or give the data with --data",
        )
    return folder


def _splits(
    place: _Place, folder: Path, wanted: Mapping[str, str]
) -> tuple[str, dict[str, SplitSource]]:
    """The name of the configuration that the library prepares, and the split of each table."""
    import datasets

    hub = place.hub
    with place.told("the datasets library cannot prepare it"):
        builder = datasets.load_dataset_builder(str(folder), name=hub.config)
        builder.download_and_prepare()
    config: str = builder.config.name
    names = list(builder.info.splits or ())
    splits = {}
    for name, split in wanted.items():
        if split.partition("[")[0] not in names:
            near = nearest(split, names)
            raise DataError(
                f"the hub's '{hub.repo}' has no split '{split}'",
                found=f"splits {join_names(names)} in configuration '{config}'",
                expected=f"the split that task '{place.task}' names",
                hint=f"'{near}' is the nearest name" if near else None,
            )
        with place.told(f"split '{split}' cannot be read"):
            rows = builder.as_dataset(split=split)
        label = f"{hub.repo}@{folder.name[:10]} ({config}, {split})"
        splits[name] = SplitSource(label=label, split=rows)
    return config, splits


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0]


def _translated(pattern: str) -> re.Pattern[str]:
    """A glob over paths in a repository: * and ? stay in one folder, **/ spans any number."""
    signs = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*|\?)", pattern)
    return re.compile("".join(signs.get(part, re.escape(part)) for part in parts))
