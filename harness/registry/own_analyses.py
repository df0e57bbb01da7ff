"""The analyses of the harness itself, which exist without any plugin."""

from __future__ import annotations

from functools import partial

from harness.base.resources import package_folder
from harness.registry.hookspecs import ANY_BENCHMARK
from harness.registry.registrations import AnalysisRegistration, Origin

ORIGIN = Origin(
    plugin="harness",
    distribution="user-understanding-harness",
    module="harness.analysis",
    package=package_folder("harness"),
)

ANALYSES = {
    "forest": ("harness.analysis.forest.run", "each metric of each run, with its interval"),
}
"""Name → the function that makes the report, and the description."""


def own_analyses() -> list[AnalysisRegistration]:
    """The registrations, as those of a plugin for all benchmarks."""
    from harness.analysis.analysis import analysis_from

    return [
        AnalysisRegistration(
            name=name,
            factory=partial(analysis_from, function, name=name, description=description),
            origin=ORIGIN,
            description=description,
            benchmark=ANY_BENCHMARK,
            report=True,
        )
        for name, (function, description) in ANALYSES.items()
    ]
