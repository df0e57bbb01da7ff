"""The plugin under test: what it registered, and the tasks that belong to it."""

from __future__ import annotations

import functools
from collections.abc import Hashable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, TypeVar

from harness.errors import PluginError, did_you_mean
from harness.plugin_manager import (
    GROUP,
    LoadedPlugin,
    Plugins,
    Registration,
    Registry,
    load_plugins,
)
from harness.resources import top_level
from harness.tasks.catalogue import Catalogue

if TYPE_CHECKING:
    from harness.tasks.catalogue import Entry

K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound="Registration[Any]")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One installed plugin among all others."""

    point: EntryPoint
    plugins: Plugins
    catalogue: Catalogue

    @property
    def name(self) -> str:
        """The name of its entry point."""
        return self.point.name

    @property
    def package(self) -> str:
        """The top-level package that it is in."""
        return top_level(self.point.module)

    @functools.cached_property
    def distribution(self) -> str:
        """What is installed with pip; the same word that plugins' origins have for it."""
        return self.point.dist.name if self.point.dist is not None else "an unknown distribution"

    @functools.cached_property
    def loaded(self) -> LoadedPlugin | None:
        """The plugin as it is in use; None where it is broken, or left out."""
        place = (self.name, self.distribution)
        found = (one for one in self.plugins.loaded if (one.entry_point, one.distribution) == place)
        return next(found, None)

    @functools.cached_property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmarks that it registered."""
        return self.of(self.plugins.benchmarks)

    def of(self, registry: Registry[K, R]) -> tuple[K, ...]:
        """The names in a registry that this plugin gave, but those that another gave as well."""
        own = []
        for name in registry:
            try:
                origin = registry[name].origin
            except PluginError:
                # Given twice, which `Plugins.problems` tells.
                continue
            if (origin.plugin, origin.distribution) == (self.name, self.distribution):
                own.append(name)
        return tuple(own)

    @functools.cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The tasks, bases and groups of its package or of its benchmarks."""
        return tuple(
            entry
            for entry in self.catalogue.entries
            if entry.bundle == self.package or entry.benchmark in self.benchmarks
        )


def subject(name: str) -> Subject:
    """The installed plugin of that name; its package does as well, where only one plugin is in it.

    Raises PluginError for a name that no entry point has.
    """
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    found = [point for point in points if point.name == name]
    found = found or [point for point in points if top_level(point.module) == top_level(name)]
    if len(found) != 1:
        among = found or points
        raise PluginError(
            f"{'several plugins are' if found else 'no plugin is'} called {name!r}",
            found=", ".join(f"{point.name} = {point.value}" for point in among) or "no plugin",
            expected=f"the name of one entry point of the group {GROUP!r}, or its package",
            hint="ask for one of them by its own name"
            if found
            else did_you_mean(name, [point.name for point in points])
            or "install the package first: pip install -e .",
        )
    plugins = load_plugins()
    return Subject(point=found[0], plugins=plugins, catalogue=Catalogue(plugins))
