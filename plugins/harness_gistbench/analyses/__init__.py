"""Analyses of stored runs, each imported when it is asked for."""

ANALYSES = {
    "gist-scores": ("scores.scores", "groundedness and specificity by model and dataset"),
    "gist-failure-modes": ("failure_modes.run", "why interests were not verified"),
    "gist-precision-recall": (
        "scores.precision_recall",
        "precision against recall, a bubble a model",
    ),
    "gist-users": ("scores.by_user", "precision against recall, a dot a user"),
    "gist-forest": ("scores.forest", "means of the models with their intervals"),
    "gist-boxes": ("scores.boxes", "how IG F1 is spread over users"),
    "gist-coverage": ("coverage.coverage", "categories that models and datasets reach"),
    "gist-concentration": ("coverage.concentration", "how few categories hold most interests"),
    "gist-window-size": ("window_size.run", "scores by the number of engagements in a prompt"),
    "gist-oracle-stability": ("oracle_stability.run", "what each model adds to the oracle"),
    "gist-thresholds": ("thresholds.run", "scores and ranks under other thresholds"),
    "gist-survey": ("survey.survey", "scores against interests that users stated themselves"),
    "gist-outside": ("survey.outside", "IG F1 against figures that the models have elsewhere"),
    "gist-judge-validation": ("judge_validation.validate", "people's labels against the judge's"),
    "gist-export-labels": ("judge_validation.export", "draws items for people to label"),
}
"""Name of the analysis → its function in a module of this package, description."""
WITH_OPTIONS = ("gist-survey", "gist-outside", "gist-judge-validation", "gist-export-labels")
"""The analyses that must be given options, which no report can show by itself."""
