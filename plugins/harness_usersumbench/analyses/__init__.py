"""The analyses of stored runs, by name: the function and what it shows."""

from __future__ import annotations

from collections.abc import Mapping

ANALYSES: Mapping[str, tuple[str, str]] = {
    "usersum": (
        "table4.main",
        "QM, IFM and IDM of the methods with increments, differences and cost: Table 4",
    ),
    "usersum-sheet": ("rating_sheet.sheet", "write summaries for people to rate, and their key"),
    "usersum-agree": ("ratings.agree", "the agreement of Q_s with people's ratings: Table 2"),
    "usersum-metrics": (
        "correlations.metrics",
        "the correlation of Q_s and other metrics with people's ratings: Table 3",
    ),
    "usersum-questions": (
        "accuracy.questions",
        "accuracy and position bias of the four questions, and the bars of Figures 2 and 5",
    ),
    "usersum-rounds": (
        "rounds.rounds",
        "what the verifier flagged, what was fixed, and what was left",
    ),
}
