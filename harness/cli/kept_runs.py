"""Finding the run that a command names, and the parts of it that its options choose."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.errors import DataError, UsageError, did_you_mean
from harness.results.folder import RunFolder
from harness.results.manifest import Manifest

USUAL = Path("runs")


def open_run(named: str) -> tuple[RunFolder, Manifest]:
    """A run by its folder, or by its name where it is in `runs`; with its manifest."""
    path = Path(named)
    if path.name == "manifest.json":
        path = path.parent
    folder = RunFolder(path)
    if not folder.manifest_file.exists() and (USUAL / named / "manifest.json").exists():
        folder = RunFolder(USUAL / named)
    if not folder.path.is_dir():
        beside = path.parent if path.parent != Path() else USUAL
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
