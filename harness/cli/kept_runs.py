"""The runs that a command names: by folder, name, prefix, label or tag."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from harness.base.errors import DataError, HarnessError, UsageError, did_you_mean
from harness.cli.command import PATH, argument, option
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder

Opened = tuple[RunFolder, Manifest]

MOST_LISTED = 10

runs_argument = argument(
    "runs", metavar="RUN", nargs=-1, candidates="runs", help="the folder or name of a run"
)
folder_option = option(
    "--output_path", metavar="DIR", type=PATH,
    help="the folder of runs, if not the one in the settings or the default",
)  # fmt: skip
tag_option = partial(
    option, "--tag", metavar="KEY=VALUE", multiple=True,
    help="only runs with this tag; may be given again",
)  # fmt: skip


def default_folder() -> Path:
    """The folder of runs from the settings, or the default."""
    from harness.cli.run_options import run_setting

    folder: Path = run_setting("output_path")
    return folder


def open_run(
    named: str, *, among: Path | None = None, tags: Mapping[str, str] | None = None
) -> Opened:
    """The run of that folder, or of that name in the folder of runs, and its manifest.

    A name is the folder's name, a unique beginning of it, a label, or `latest`. With `tags`, only
    runs that have all of them count.
    """
    path = Path(named)
    if path.name == "manifest.json":
        path = path.parent
    folder = RunFolder(path)
    if not folder.manifest_file.exists():
        place = default_folder() if among is None else among
        folder = RunFolder(place / named)
    if folder.manifest_file.exists():
        manifest = folder.manifest()
        if tags and not has_tags(manifest, tags):
            raise _none_tagged(str(folder.path), tags, [(folder, manifest)])
        return folder, manifest
    if found := _called(named, place, tags or {}):
        return found
    if path.is_dir():
        return RunFolder(path), RunFolder(path).manifest()
    parent = path.parent if path.parent != Path() else place
    names = sorted(each.parent.name for each in parent.glob("*/manifest.json"))
    labels = [manifest.label for _, manifest in kept_runs(parent)]
    raise DataError(
        "this run does not exist",
        found=named,
        expected="the folder or the name of a run",
        where=str(parent),
        hint=did_you_mean(path.name, [*names, *labels])
        or (f"the newest run is {parent / names[-1]}" if names else None),
    )


def with_resumed_run(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run, with the folder of the run that --resume names."""
    if options["resume"] is None:
        return dict(options)
    folder, _ = open_run(str(options["resume"]), among=options["output_path"])
    return {**options, "resume": folder.path}


def named_runs(named: Sequence[str], tags: Mapping[str, str]) -> list[str]:
    """The runs that a command names; without names the folders of all runs with these tags."""
    if named:
        return [*named]
    if not tags:
        raise UsageError("RUN is missing", expected="the name of a run, or --tag")
    place = default_folder()
    kept = kept_runs(place)
    found = [str(folder.path) for folder, manifest in kept if has_tags(manifest, tags)]
    if not found:
        raise _none_tagged(str(place), tags, kept)
    return found


def kept_runs(place: Path) -> list[Opened]:
    """The runs in a folder, newest first; what is not a readable run is skipped."""
    found = []
    for path in place.iterdir() if place.is_dir() else ():
        folder = RunFolder(path)
        try:
            manifest = folder.manifest()
        except HarnessError:
            continue
        started = manifest.sessions[0].started if manifest.sessions else ""
        found.append((started, manifest.run_id, folder, manifest))
    found.sort(key=lambda each: each[:2], reverse=True)
    return [(folder, manifest) for _, _, folder, manifest in found]


def _called(name: str, place: Path, tags: Mapping[str, str]) -> Opened | None:
    """The run of a label, `latest`, or a beginning of a folder's name; DataError for several."""
    from harness.pipeline.specs import LATEST

    kept = [one for one in kept_runs(place) if has_tags(one[1], tags)]
    if name == LATEST:
        return kept[0] if kept else None
    found = [one for one in kept if one[1].label == name] or [
        one for one in kept if name and one[0].path.name.startswith(name)
    ]
    if len(found) > 1:
        more = [f"and {len(found) - MOST_LISTED} more"] if len(found) > MOST_LISTED else []
        listed = [f"{folder.path.name} ({manifest.label})" for folder, manifest in found]
        raise DataError(
            "several runs have this name",
            where=str(place),
            found="\n            ".join([*listed[:MOST_LISTED], *more]),
            expected="more of the folder's name",
        )
    return found[0] if found else None


def has_tags(manifest: Manifest, tags: Mapping[str, str]) -> bool:
    """Whether a run has all these tags."""
    return tags.items() <= manifest.tags.items()


def _none_tagged(where: str, tags: Mapping[str, str], runs: Iterable[Opened]) -> DataError:
    there = {f"{name}={value}" for _, one in runs for name, value in one.tags.items()}
    return DataError(
        "no run has these tags",
        where=where,
        found=", ".join(f"{name}={value}" for name, value in tags.items()),
        expected=f"one of {', '.join(sorted(there))}" if there else "runs that were given a --tag",
    )
