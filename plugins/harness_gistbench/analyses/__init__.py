"""Views on stored runs: one module an analysis, imported when it is asked for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from harness.pipeline.tools import analysis_in

if TYPE_CHECKING:
    from harness import Analysis
    from harness.hookspecs import RegisterAnalysis

ANALYSES = {
    "gist-scores": ("scores", "groundedness and specificity by model and dataset"),
    "gist-failure-modes": ("failure_modes", "why interests were not verified"),
    "gist-precision-recall": ("precision_recall", "precision against recall, a bubble a model"),
    "gist-users": ("users", "precision against recall, a dot a user"),
    "gist-forest": ("forest", "means of the models with their intervals"),
    "gist-boxes": ("boxes", "how IG F1 is spread over users"),
    "gist-coverage": ("coverage", "categories that models and datasets reach"),
    "gist-concentration": ("concentration", "how few categories hold most interests"),
    "gist-window-size": ("window_size", "scores by the number of engagements in a prompt"),
    "gist-oracle-stability": ("oracle_stability", "what each model adds to the oracle"),
    "gist-thresholds": ("thresholds", "scores and ranks under other thresholds"),
    "gist-survey": ("survey", "scores against interests that users stated themselves"),
    "gist-outside": ("outside", "IG F1 against figures that the models have elsewhere"),
    "gist-judge-validation": ("judge_validation", "people's labels against the judge's"),
    "gist-export-labels": ("export_labels", "draws items for people to label"),
}
"""Name of the analysis → module of this package, description."""


def register(add: RegisterAnalysis) -> None:
    """Tell the harness of all analyses, without importing any."""
    for name, (_, description) in ANALYSES.items():
        add("gistbench", name, partial(analysis, name), description=description)


def analysis(name: str) -> Analysis:
    """The analysis of that name."""
    module, description = ANALYSES[name]
    return analysis_in(f"{__name__}.{module}", name=name, description=description)
