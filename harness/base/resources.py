"""Finds task files and prompts, the harness's own and those of other packages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

TASK_CONFIGS = "task_configs"
PROMPTS = "prompts"
FIRST_PARTY = "harness"


@dataclass(frozen=True)
class Bundle:
    """The folders of a top-level package's task files and prompts, and its own."""

    name: str
    task_configs: Path | None
    prompts: Path | None
    package: Path | None


def bundles(entry_points: Iterable[EntryPoint]) -> list[Bundle]:
    """The harness's own bundle, then those of the entry points' packages, by name."""
    names = {top_level(entry_point.value) for entry_point in entry_points} - {FIRST_PARTY}
    found = (package_bundle(name) for name in sorted(names))
    return [first_party(), *(bundle for bundle in found if bundle is not None)]


def first_party() -> Bundle:
    """The harness's own bundle: next to `harness/` in a checkout, inside it once installed."""
    package = Path(__file__).resolve().parents[1]
    home = package.parent if _is_project(package.parent) else package / "_bundled"
    return Bundle(FIRST_PARTY, _folder(home, TASK_CONFIGS), _folder(home, PROMPTS), package)


def package_bundle(module_name: str) -> Bundle | None:
    """A package's bundle, found without importing it; None if it has neither folder.

    The folders are in the top-level package; in a checkout they may be next to it.
    """
    package = package_folder(module_name)
    if package is None:
        return None
    homes = [package, package.parent] if _is_project(package.parent) else [package]
    for home in homes:
        task_configs, prompts = _folder(home, TASK_CONFIGS), _folder(home, PROMPTS)
        if task_configs or prompts:
            return Bundle(top_level(module_name), task_configs, prompts, package)
    return None


def package_folder(module_name: str) -> Path | None:
    """The folder of a module's top-level package, found without importing it."""
    try:
        spec = find_spec(top_level(module_name))
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    locations = list(spec.submodule_search_locations or ())
    if not locations and spec.origin:
        locations = [str(Path(spec.origin).parent)]
    return Path(locations[0]).resolve() if locations else None


def top_level(module_name: str) -> str:
    """The first part of a module's name, or of an entry point's value."""
    return module_name.partition(":")[0].strip().partition(".")[0]


def _is_project(folder: Path) -> bool:
    return (folder / "pyproject.toml").is_file()


def _folder(home: Path, name: str) -> Path | None:
    folder = home / name
    return folder if folder.is_dir() else None
