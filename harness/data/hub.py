"""Tables from the Hugging Face hub: prepared splits, or files of the repository.

Files are fetched into the cache of `huggingface_hub` and read from there by `datasets`, so that a
benchmark can read them again, even without a network. Code in a repository is never run.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import DataError, Unavailable
from harness.base.hashing import digest
from harness.data.fetch import Watch
from harness.data.wording import first_line, join_names, nearest
from harness.runs.atomic_files import make_folder

if TYPE_CHECKING:
    import datasets  # type: ignore[import-untyped]
    import pyarrow as pa  # type: ignore[import-untyped]

    from harness.contracts.task import HubFilesSpec, HubSpec, TableSpec
    from harness.data.fetch import Fetching

CACHE = "HF_HOME"

BATCH_ROWS = 1024

HUB_TIMEOUT = 15.0
"""Seconds to wait for the hub's first answer before the cache is used instead."""

_PRIVATE = "check the name; for a private data set log in (hf auth login) or set HF_TOKEN"
_GATED = "request access on its page on the hub, then log in (hf auth login) or set HF_TOKEN"
_REVISION = "correct the task's revision"
_REPO = "correct `hub.repo` in the task's `data.sources`"


@dataclass(frozen=True, kw_only=True)
class SplitSource:
    """The rows of one prepared split, read from memory-mapped files in batches.

    `Table` reads it as it reads a `FileSource`.
    """

    label: str
    split: datasets.Dataset

    def columns(self) -> tuple[str, ...]:
        return tuple(self.split.column_names)

    def batches(self, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        split = self.split.select_columns(list(wanted)).with_format("arrow")
        for part in split.iter(batch_size=BATCH_ROWS):
            yield from part.to_batches()


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
    hub: HubSpec, tables: Mapping[str, TableSpec], *, task: str, fetching: Fetching
) -> OpenedHub:
    """The tables of a task at one commit of a hub data set, fetched or only from the cache.

    A table that is not required and has no place on the hub is left out.
    """
    for name, table in tables.items():
        if table.required and not (table.split or table.hub_files):
            raise DataError(
                f"task '{task}' has no place of table '{name}' in the hub's '{hub.repo}'",
                expected="`split` or `hub_files` in the task's table",
                hint="give the data with --data, or correct the task file",
            )
    repo = _Repo(hub.repo, hub.revision, task, fetching)
    chosen = {
        name: repo.matching(table.hub_files, key="hub_files", of=f"table '{name}'")
        for name, table in tables.items()
        if table.hub_files
    }
    wanted = {name: t.split for name, t in tables.items() if t.split and name not in chosen}
    # Only `datasets` knows which files make a split, so a split needs all of them.
    folder = repo.snapshot(None if wanted else [*chain(*chosen.values())])
    config, splits = _splits(repo, hub.config, folder, wanted) if wanted else (hub.config, {})
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
        "offline": repo.listing.offline,
    }
    return OpenedHub(about=about, pinned=pinned, files=files, splits=splits)


def fetch_files(hub: HubFilesSpec, *, task: str, fetching: Fetching) -> tuple[Path, list[str]]:
    """The folder of one commit of a hub data set, named by the commit, and the files in it."""
    repo = _Repo(hub.repo, hub.revision, task, fetching)
    names = repo.matching(hub.files, key="files", of="an input")
    return repo.snapshot(names), names


@dataclass(frozen=True, kw_only=True)
class _Listing:
    """The files of a data set with their sizes, and its commit or why the hub did not name it."""

    sizes: Mapping[str, int]
    commit: str | None = None
    offline: str | None = None


@dataclass(frozen=True)
class _Repo:
    name: str
    revision: str | None
    task: str
    fetching: Fetching

    @cached_property
    def listing(self) -> _Listing:
        """The files at the task's revision.

        A refusal of the hub is an error. A hub that cannot be reached is one only without a cache.
        """
        from huggingface_hub import HfApi, constants, errors, get_cached_repo_tree

        why = self.fetching.why_offline()
        offline = f"the hub was not asked, because {why}"
        try:
            if why is None:
                info = HfApi().dataset_info(
                    self.name, revision=self.revision, timeout=HUB_TIMEOUT, files_metadata=True
                )
                sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
                return _Listing(sizes=sizes, commit=info.sha)
        except errors.GatedRepoError as error:
            raise self._refused("access must be requested first", _GATED) from error
        except errors.RepositoryNotFoundError as error:
            raise self._refused("it does not exist, or is private", _PRIVATE) from error
        except errors.RevisionNotFoundError as error:
            raise self._refused(f"it has no revision '{self.revision}'", _REVISION) from error
        except errors.HFValidationError as error:
            raise self._refused(str(error), _REPO) from error
        except Exception as error:  # any other error of the transport: no answer came
            offline = f"{constants.ENDPOINT} could not be reached: {first_line(error)}"
        try:
            tree = get_cached_repo_tree(self.name, repo_type="dataset", revision=self.revision)
        except errors.CachedRepoTreeNotFoundError as error:
            raise self._unreachable(f"{offline}; looked in {constants.HF_HUB_CACHE}") from error
        return _Listing(sizes={file.path: file.size for file in tree}, offline=offline)

    def matching(self, patterns: Sequence[str], *, key: str, of: str) -> list[str]:
        """The files that match the patterns, each once, in the patterns' order."""
        names = sorted(self.listing.sizes)
        chosen: dict[str, None] = {}
        # A glob: * and ? stay in one folder, **/ spans any number.
        signs = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
        for pattern in patterns:
            parts = re.split(r"(\*\*/|\*|\?)", pattern)
            expression = re.compile("".join(signs.get(part, re.escape(part)) for part in parts))
            found = [name for name in names if expression.fullmatch(name)]
            if not found:
                raise DataError(
                    f"no file of the hub's '{self.name}' matches '{pattern}' ({of})",
                    found=f"files {join_names(names)} at revision {self.revision or 'main'}",
                    hint=f"correct `{key}` of task '{self.task}'",
                )
            chosen.update(dict.fromkeys(found))
        return list(chosen)

    def snapshot(self, files: Sequence[str] | None) -> Path:
        """The folder of one commit in the hub's cache, named by the commit, with these files or
        all.

        The request has the task's revision, so that the cache remembers the commit of a branch.
        """
        from huggingface_hub import errors, snapshot_download

        listing = self.listing
        fetch = partial(
            snapshot_download, self.name, repo_type="dataset", revision=self.revision,
            allow_patterns=None if files is None else [glob.escape(one) for one in files],
        )  # fmt: skip
        if listing.offline is not None:
            try:
                return Path(fetch(local_files_only=True))
            except errors.LocalEntryNotFoundError as error:
                raise self._unreachable(f"{listing.offline}; {first_line(error)}") from error
        self._announce(listing.sizes if files is None else files)
        with self.reported("its files could not be fetched", Unavailable):
            folder = Path(fetch())
        if folder.name != listing.commit:
            # The branch moved in between, or the hub went away and the library used its cache.
            raise DataError(
                f"task '{self.task}': the revision of '{self.name}' changed while it was fetched",
                found=f"revision {folder.name}",
                expected=f"revision {listing.commit}",
                hint="run again once the hub can be reached, or give the data with --data",
            )
        return folder

    def _announce(self, files: Iterable[str]) -> None:
        """Say what is fetched; raise if there is no room for it, or if it is not agreed to."""
        from huggingface_hub import constants, try_to_load_from_cache

        commit = self.listing.commit
        known = partial(try_to_load_from_cache, self.name, repo_type="dataset", revision=commit)
        missing = [name for name in files if not isinstance(known(name), str)]
        if missing:
            self.fetching.begin(f"fetching {len(missing)} files of the hub's {self.name}")
            cache = Path(constants.HF_HUB_CACHE)
            make_folder(cache, option=CACHE)
            address = f"the hub's {self.name}"
            watch = Watch(address=address, folder=cache, fetching=self.fetching, option=CACHE)
            watch(0, sum(self.listing.sizes[name] for name in missing))

    def _refused(self, why: str, hint: str) -> Unavailable:
        from huggingface_hub import constants

        return Unavailable(
            f"task '{self.task}': the hub refused the data set '{self.name}'",
            where=constants.ENDPOINT,
            found=why,
            hint=f"{hint}; or give the data with --data",
        )

    def _unreachable(self, found: str) -> Unavailable:
        at = f" at revision '{self.revision}'" if self.revision else ""
        return Unavailable(
            f"task '{self.task}' needs the hub's data set '{self.name}'{at}, which is neither "
            "reachable nor cached",
            found=found,
            expected="a connection to the hub, or a cache that an earlier run filled",
            hint="give a local copy with --data FILE or --data DIR, or run once with a network",
        )

    @contextmanager
    def reported(self, problem: str, kind: type[DataError] = DataError) -> Iterator[None]:
        """The libraries raise any error of their readers and transport: all become one here."""
        try:
            yield
        except Exception as error:
            deepest: BaseException = error
            while deepest.__cause__ is not None:
                deepest = deepest.__cause__
            raise kind(
                f"task '{self.task}': the hub's data set '{self.name}': {problem}",
                found=f"{type(deepest).__name__}: {first_line(deepest)}",
                hint="give a local copy with --data FILE or --data DIR",
            ) from error


def _splits(
    repo: _Repo, config: str | None, folder: Path, wanted: Mapping[str, str]
) -> tuple[str, dict[str, SplitSource]]:
    """The name of the configuration that the library prepares, and the split of each table."""
    import datasets

    with repo.reported("the datasets library cannot prepare it"):
        builder = datasets.load_dataset_builder(str(folder), name=config)
        builder.download_and_prepare()
    prepared: str = builder.config.name
    names = list(builder.info.splits or ())
    splits = {}
    for name, split in wanted.items():
        if split.partition("[")[0] not in names:
            near = nearest(split, names)
            raise DataError(
                f"the hub's '{repo.name}' has no split '{split}'",
                found=f"splits {join_names(names)} in configuration '{prepared}'",
                expected=f"the split that task '{repo.task}' names",
                hint=f"'{near}' is the nearest name" if near else None,
            )
        with repo.reported(f"split '{split}' cannot be read"):
            rows = builder.as_dataset(split=split)
        label = f"{repo.name}@{folder.name[:10]} ({prepared}, {split})"
        splits[name] = SplitSource(label=label, split=rows)
    return prepared, splits
