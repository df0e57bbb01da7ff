"""Views on stored runs, each imported when it is asked for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from harness.pipeline.tools import analysis_from

if TYPE_CHECKING:
    from harness import Analysis
    from harness.hookspecs import RegisterAnalysis

ANALYSES = {
    "perrec": (
        "tables.main",
        "the nine cells and their average, beside published rows and baselines",
    ),
    "perrec-prompting": ("tables.prompting", "the nine cells by method of prompting"),
    "perrec-sizes": ("curves.by_size", "ptc by the number of users in a group"),
    "perrec-scale": ("curves.by_scale", "the average by the size of the model"),
    "perrec-domains": ("domains.run", "ptc by domain, against how often its items are named"),
    "perrec-shots": ("shots.run", "ptc by examples and retrieved behaviours, as heat maps"),
    "perrec-rating-tau": ("answers.errors", "ptc against the errors of predicted ratings"),
    "perrec-positions": ("answers.positions", "how far pairwise answers go by position"),
}
"""Name of the analysis → its function in a module of this package, description."""


def register(add: RegisterAnalysis) -> None:
    """Tell the harness of all analyses, without importing any."""
    for name, (_, description) in ANALYSES.items():
        add("perrecbench", name, partial(analysis, name), description=description)


def analysis(name: str) -> Analysis:
    """The analysis of that name."""
    function, description = ANALYSES[name]
    return analysis_from(f"{__name__}.{function}", name=name, description=description)
