"""What the project finds around it in a world: clock, plugins, variables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from simulated.loop import Clock

from harness.base import clock, redaction
from harness.base.resources import package_bundle
from harness.calls import store
from harness.pipeline import preflight, resume
from harness.prompts.environment import Folder
from harness.registry import registry
from harness.registry.task_catalogue import Catalogue
from harness.runs import manifest

PLUGINS = {"simulated": "simulated.benchmark", "judges": "harness_judges.plugin"}


@contextmanager
def simulated() -> Iterator[Clock]:
    """Within, the project has the clock, the plugins and the chance of a world."""
    machine = Clock()
    with pytest.MonkeyPatch.context() as patch:
        points = [EntryPoint(name, value, registry.GROUP) for name, value in PLUGINS.items()]
        patch.setattr(registry, "entry_points", lambda group: points)
        patch.setattr(registry, "bundles", lambda found: [package_bundle("simulated")])
        registry.reset()
        for name in ("seconds", "utc", "block"):
            patch.setattr(clock, name, getattr(machine, name))
        # What only costs time here: versions of what is installed, and keys in variables.
        patch.setattr(resume, "_commits", dict)
        patch.setattr(resume, "version", lambda name: "1")
        for owner in (store, preflight):
            patch.setattr(owner, "network_type", lambda path: None)
        patch.setattr(redaction, "_without", functools.cache(redaction._without))
        patch.setattr(manifest, "without_key_material", lambda value: value)
        patch.setattr(manifest, "redacted_args", dict)
        patch.setattr(Catalogue, "select", cached_selection())
        patch.setattr(Folder, "compile", cached_prompts())
        patch.setattr(redaction, "known_secrets", tuple)
        patch.delenv(registry.CHOSEN, raising=False)
        try:
            yield machine
        finally:
            patch.undo()
            registry.reset()


def cached_selection() -> Callable[..., Any]:
    """`Catalogue.select`, which reads the only task once."""
    read, found = Catalogue.select, []

    def selected(*given: Any) -> Any:
        if not found:
            found.append(read(*given))
        return found[0]

    return selected


def cached_prompts() -> Callable[..., Any]:
    """`Folder.compile`, which compiles each prompt once."""
    read = Folder.compile
    found: dict[Any, Any] = {}

    def compiled(folder: Any, name: str) -> Any:
        place = folder._path, name
        if place not in found:
            found[place] = read(folder, name)
        return found[place]

    return compiled
