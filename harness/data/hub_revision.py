"""Which commit of a hub data set a run reads: asked of the hub, or found in the local caches."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.data.wording import listed
from harness.errors import DataError

if TYPE_CHECKING:
    from harness.tasks.task import HubSpec

HUB_TIMEOUT = 15.0
"""Seconds to wait for the hub's first answer before the caches are taken instead."""

MAIN = "main"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_TRUE = {"1", "true", "yes", "on"}


@dataclass(frozen=True, kw_only=True)
class Revision:
    """A commit, the files it holds, and why the hub was not asked, if it was not.

    `files` is None where that is not known: a cache may hold some of them only.
    """

    commit: str
    files: tuple[str, ...] | None
    offline: str | None = None


def resolve(hub: HubSpec, *, task: str) -> Revision:
    """The commit that the hub's name and revision stand for now, or stood for when cached.

    HF_HUB_OFFLINE and HF_DATASETS_OFFLINE are honoured. A hub that says no is an error; a hub
    that cannot be reached is not, as long as a cache holds what was asked for.
    """
    import huggingface_hub as library
    from huggingface_hub import errors

    offline = offline_by_setting()
    if offline is None:
        try:
            info = library.HfApi().dataset_info(
                hub.repo, revision=hub.revision, timeout=HUB_TIMEOUT
            )
        except errors.GatedRepoError as error:
            raise _refused(hub, task, "access must be asked for first", GATED) from error
        except errors.RepositoryNotFoundError as error:
            raise _refused(hub, task, "it is not there, or is private", PRIVATE) from error
        except errors.RevisionNotFoundError as error:
            raise _refused(
                hub, task, f"it has no revision '{hub.revision}'", "mend the task's revision"
            ) from error
        except errors.HFValidationError as error:
            raise _refused(hub, task, str(error), "mend the task's `data.hub.repo`") from error
        except _network_errors() as error:
            offline = f"{endpoint()} could not be reached: {_said(error)}"
        else:
            if info.sha:
                _remember(hub)
                names = tuple(sorted(file.rfilename for file in info.siblings or ()))
                return Revision(commit=info.sha, files=names)
            offline = f"{endpoint()} named no commit"
    return _cached(hub, offline, task=task)


PRIVATE = "check the name; for a private data set log in (hf auth login) or set HF_TOKEN"
GATED = "ask for access on its page on the hub, then log in (hf auth login) or set HF_TOKEN"


def _refused(hub: HubSpec, task: str, why: str, hint: str) -> DataError:
    return DataError(
        f"task '{task}': the hub does not give out the data set '{hub.repo}'",
        where=endpoint(),
        found=why,
        hint=f"{hint}; or give the data with --data",
    )


def unreachable(hub: HubSpec, why: str, looked: str, *, task: str) -> DataError:
    """The error for data that neither hub nor cache gives."""
    wanted = f"'{hub.repo}'" + (f" at revision '{hub.revision}'" if hub.revision else "")
    return DataError(
        f"task '{task}' needs the hub's data set {wanted}, which is neither reachable nor cached",
        found=f"{why}; {looked}",
        expected="a way to the hub, or a cache that an earlier run with a way filled",
        hint="give a local copy with --data FILE or --data DIR, or run once with a network",
    )


def offline_by_setting() -> str | None:
    """Why the hub is not asked, where the environment says so."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "the hub was not asked, because HF_HUB_OFFLINE is set"
    if os.environ.get("HF_DATASETS_OFFLINE", "").lower() in _TRUE:
        return "the hub was not asked, because HF_DATASETS_OFFLINE is set"
    return None


def _network_errors() -> tuple[type[Exception], ...]:
    """What the hub's HTTP client raises: it has stood on httpx, and on httpx2 since."""
    found: list[type[Exception]] = [OSError]
    for name in ("httpx2", "httpx"):
        try:
            module = __import__(name)
        except ImportError:
            continue
        found += [module.TransportError, module.HTTPStatusError]
    return tuple(found)


def endpoint() -> str:
    """The address of the hub."""
    from huggingface_hub import constants

    return constants.ENDPOINT


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _cached(hub: HubSpec, offline: str, *, task: str) -> Revision:
    asked = hub.revision or MAIN
    commits = {**_prepared_commits(hub.repo), **_snapshot_commits(hub.repo)}
    commit = asked
    if not _COMMIT.fullmatch(asked):
        reference = repo_folder(hub.repo) / "refs" / asked
        commit = reference.read_text().strip() if reference.is_file() else ""
    if commit not in commits and asked == MAIN and commits:
        commit = max(commits, key=lambda one: commits[one])
    if commit not in commits:
        looked = f"looked in {repo_folder(hub.repo)} and {prepared_folder(hub.repo)}"
        if commits:
            looked += f", which hold other revisions: {listed(sorted(commits))}"
        raise unreachable(hub, offline, looked, task=task)
    return Revision(commit=commit, files=_cached_listing(hub.repo, commit), offline=offline)


def _remember(hub: HubSpec) -> None:
    """Have the hub's cache note which commit a branch or tag stands for, for a run without network.

    Everything else is fetched by commit, which leaves no such note.
    """
    from huggingface_hub import errors, hf_hub_download

    if hub.revision is None or not _COMMIT.fullmatch(hub.revision):
        # The note is made whether the file exists or not; without one, a later offline run says so.
        with suppress(errors.EntryNotFoundError, *_network_errors()):
            hf_hub_download(
                hub.repo, ".gitattributes", repo_type="dataset", revision=hub.revision or MAIN
            )


def _cached_listing(repo: str, commit: str) -> tuple[str, ...] | None:
    """All files of a commit, where the hub's cache knows them; before version 2 it does not."""
    import huggingface_hub as library

    listing = getattr(library, "get_cached_repo_tree", None)
    if listing is None:
        return None
    try:
        files = listing(repo, repo_type="dataset", revision=commit)
    except library.errors.CachedRepoTreeNotFoundError:
        return None
    return tuple(sorted(file.path for file in files))


def repo_folder(repo: str) -> Path:
    """Where the hub's cache keeps the files of a data set."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"datasets--{repo.replace('/', '--')}"


def prepared_folder(repo: str) -> Path:
    """Where the datasets library keeps what it prepared of a data set."""
    import datasets  # type: ignore[import-untyped]
    from datasets.naming import (  # type: ignore[import-untyped]
        camelcase_to_snakecase,
    )

    *owner, name = repo.split("/")
    return Path(datasets.config.HF_DATASETS_CACHE) / "___".join(
        [*owner, camelcase_to_snakecase(name)]
    )


def prepared(repo: str, commit: str) -> dict[str, str]:
    """The version of each configuration of a commit that is ready in the datasets cache."""
    return {
        folder.parts[-3]: folder.parts[-2]
        for folder in sorted(prepared_folder(repo).glob(f"*/*/{commit}"))
        if (folder / "dataset_info.json").is_file()
    }


def _prepared_commits(repo: str) -> dict[str, int]:
    return {
        folder.name: folder.stat().st_mtime_ns
        for folder in prepared_folder(repo).glob("*/*/*")
        if (folder / "dataset_info.json").is_file() and _COMMIT.fullmatch(folder.name)
    }


def _snapshot_commits(repo: str) -> dict[str, int]:
    return {
        folder.name: folder.stat().st_mtime_ns
        for folder in (repo_folder(repo) / "snapshots").glob("*")
        if folder.is_dir() and _COMMIT.fullmatch(folder.name)
    }
