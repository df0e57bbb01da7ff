"""The tables of the GISTBench paper as data: facts to hold one's own results against.

Each file `<name>.json` holds one table.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.results.published import Published, read_published
from harness_gistbench.published import rows

TABLES: dict[str, type[msgspec.Struct]] = {
    "scores": rows.Scores,
    "precision_recall": rows.PrecisionRecall,
    "survey": rows.Survey,
    "instruction_following": rows.InstructionFollowing,
    "failure_modes": rows.FailureModes,
    "synthetic_users": rows.SyntheticUsers,
    "coverage": rows.Coverage,
    "window_size": rows.WindowSize,
    "oracle_agreement": rows.OracleAgreement,
    "oracle_by_model": rows.OracleByModel,
    "rater_pairs": rows.RaterPair,
    "rater_majority": rows.RaterMajority,
    "rater_splits": rows.RaterSplit,
    "models": rows.Model,
    "dataset_coverage": rows.DatasetCoverage,
    "concentration": rows.Concentration,
    "numbers": rows.Number,
}
"""The type of the rows of each table, in the paper's order; numbers told in its text come last."""


def published_table(name: str) -> Published[Any]:
    """The table of that name."""
    return read_published(__name__, name, TABLES[name])
