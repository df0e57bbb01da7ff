"""The analyses of stored runs, by name: the function and what it shows."""

ANALYSES = {
    "usersum": ("table4.main", "Table 4: QM, IFM and IDM by method, with differences and cost"),
    "usersum-sheet": ("rating_sheet.sheet", "write summaries for people to rate, and their key"),
    "usersum-agree": ("ratings.agree", "Table 2: the agreement of Q_s with people's ratings"),
    "usersum-metrics": ("correlations.metrics", "Table 3: metrics against people's ratings"),
    "usersum-questions": ("accuracy.questions", "accuracy and position bias, and Figures 2 and 5"),
    "usersum-rounds": ("rounds.rounds", "what the verifier flagged, what was fixed and left"),
}

WITH_OPTIONS = ("usersum-sheet", "usersum-agree", "usersum-metrics")
"""The analyses that must be given options, which no report can show by itself."""
