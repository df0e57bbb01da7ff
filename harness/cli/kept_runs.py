"""Finding the run that a command names, and the parts of it that its options choose."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.base.errors import DataError, UsageError, did_you_mean
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder


def usual_folder() -> Path:
    """The folder that runs go to, where the command does not say otherwise."""
    from harness.cli.run_options import run_setting

    folder: Path = run_setting("output_path")
    return folder


def open_run(named: str, *, among: Path | None = None) -> tuple[RunFolder, Manifest]:
    """A run by its folder, or by its name where it lies with the others; with its manifest."""
    path = Path(named)
    if path.name == "manifest.json":
        path = path.parent
    folder = RunFolder(path)
    if folder.manifest_file.exists():
        return folder, folder.manifest()
    place = usual_folder() if among is None else among
    if (place / named / "manifest.json").exists():
        folder = RunFolder(place / named)
    if not folder.path.is_dir():
        beside = path.parent if path.parent != Path() else place
        names = sorted(each.parent.name for each in beside.glob("*/manifest.json"))
        raise DataError(
            "there is no such run",
            found=named,
            expected="the folder of a run",
            where=str(beside),
            hint=did_you_mean(path.name, names)
            or (f"the newest run there is {beside / names[-1]}" if names else None),
        )
    return folder, folder.manifest()


def one_of(name: str, names: Iterable[str], what: str) -> str:
    """The name, if it is one of the names; UsageError with the nearest where it is not."""
    known = list(names)
    if name in known:
        return name
    raise UsageError(
        f"the run has no {what} {name!r}",
        expected=", ".join(known) or f"a run with a {what}",
        hint=did_you_mean(name, known),
    )
