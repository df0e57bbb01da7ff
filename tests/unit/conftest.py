"""Installed distributions, made by hand: dist-info folders and packages on the path."""

import importlib.metadata
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from harness import plugin_manager
from harness.plugin_manager import GROUP, Plugins, plugins_from


class Site:
    """A folder of installed distributions that is on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(
        self, distribution: str, points: Mapping[str, str], files: Mapping[str, str]
    ) -> None:
        """Put a distribution with these entry points and files there."""
        info = self.folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        lines = [f"{name} = {value}" for name, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
        for path, text in files.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text))

    def plugins(self) -> Plugins:
        """The plugins of these distributions and of no others."""
        return plugins_from(
            point
            for distribution in importlib.metadata.distributions(path=[str(self.folder)])
            for point in distribution.entry_points
        )


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site that is forgotten after the test, with every module that came from it."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    plugin_manager.reset()
    yield Site(folder)
    plugin_manager.reset()
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        if any(str(place).startswith(str(folder)) for place in places):
            del sys.modules[name]
