"""Observers that send the results of runs to Weights & Biases and MLflow: numbers and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness import Result


def config_of(result: Result) -> dict[str, Any]:
    """The description of a run: tasks, label, folder and settings, which hold no keys."""
    manifest = result.manifest
    described = {"tasks": [*manifest.tasks], "label": manifest.label, "folder": result.folder.name}
    return {**manifest.settings, **described}


def numbers_of(result: Result) -> dict[str, float]:
    """The main metrics of a run with intervals, n and missing units, means, and costs."""
    numbers: dict[str, float | None] = {}
    for summary in result.summaries:
        for name in summary.main:
            metric = summary.metrics[name]
            key = f"{summary.task}/{name}"
            numbers |= _with_interval(key, metric.value, metric.interval)
            numbers |= {f"{key}.n": metric.n, f"{key}.missing": sum(metric.missing.values())}
    for mean in result.means:
        numbers |= _with_interval(f"{mean.name}/{mean.metric} mean", mean.value, mean.interval)
    for session in result.manifest.sessions:
        for cost in session.costs.values():
            key = f"cost/{cost.currency}"
            if cost.paid is not None:
                numbers[key] = (numbers.get(key) or 0.0) + cost.paid
            if cost.paid_unknown:
                calls = f"{key}.calls_not_in_it"
                numbers[calls] = (numbers.get(calls) or 0) + cost.paid_unknown
    return {key: value for key, value in numbers.items() if value is not None}


def _with_interval(
    key: str, value: float | None, interval: tuple[float, float] | None
) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {key: value, f"{key}.low": low, f"{key}.high": high}
