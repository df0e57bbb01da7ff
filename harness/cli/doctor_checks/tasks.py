"""Check of the chosen tasks."""

from __future__ import annotations

from collections.abc import Iterator

from harness.contracts.finding import Finding, good
from harness.pipeline.settings import RunSettings
from harness.registry import Plugins
from harness.registry.task_catalogue import Catalogue


def tasks(settings: RunSettings, plugins: Plugins) -> Iterator[Finding]:
    """The names of the chosen tasks; an error if a task or its benchmark cannot be loaded."""
    chosen = Catalogue(plugins, include_path=settings.include_path).select(settings.tasks).tasks
    for name in dict.fromkeys(task.benchmark for task in chosen):
        plugins.benchmark(name)
    names = ", ".join(task.name for task in chosen)
    yield good("tasks", f"{names} (--dry_run checks their prompts and data)")
