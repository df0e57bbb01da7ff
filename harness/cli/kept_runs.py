"""The run that a command names, found by its folder or its name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.base.errors import DataError, UsageError, did_you_mean
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder


def default_folder() -> Path:
    """The folder of runs from the settings, or the default."""
    from harness.cli.run_options import run_setting

    folder: Path = run_setting("output_path")
    return folder


def open_run(named: str, *, among: Path | None = None) -> tuple[RunFolder, Manifest]:
    """The run of that folder, or of that name in the folder of runs, and its manifest."""
    path = Path(named)
    if path.name == "manifest.json":
        path = path.parent
    folder = RunFolder(path)
    if folder.manifest_file.exists():
        return folder, folder.manifest()
    place = default_folder() if among is None else among
    if (place / named / "manifest.json").exists():
        folder = RunFolder(place / named)
    if not folder.path.is_dir():
        parent = path.parent if path.parent != Path() else place
        names = sorted(each.parent.name for each in parent.glob("*/manifest.json"))
        raise DataError(
            "this run does not exist",
            found=named,
            expected="the folder or the name of a run",
            where=str(parent),
            hint=did_you_mean(path.name, names)
            or (f"the newest run is {parent / names[-1]}" if names else None),
        )
    return folder, folder.manifest()


def one_of(name: str, names: Iterable[str], what: str) -> str:
    """The name, if it is one of `names`; UsageError with the nearest name otherwise."""
    known = list(names)
    if name in known:
        return name
    raise UsageError(
        f"the run has no {what} {name!r}",
        expected=", ".join(known) or f"a run with a {what}",
        hint=did_you_mean(name, known),
    )
