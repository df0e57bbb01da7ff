"""The tables of the GISTBench paper as data: facts to hold one's own results against.

Each file `<name>.json` holds one table.
"""

from __future__ import annotations

from importlib import resources
from typing import Generic, TypeVar

import msgspec

from harness.results.report import Sheet
from harness_gistbench.published import rows

RowT = TypeVar("RowT", bound=msgspec.Struct)


class Published(msgspec.Struct, Generic[RowT], frozen=True, kw_only=True):
    """One table, its rows typed; numbers that the paper does not give are null."""

    source: str
    title: str
    units: str
    columns: tuple[str, ...]
    rows: tuple[RowT, ...]
    notes: tuple[str, ...] = ()

    def sheet(self, *, digits: int = 1) -> Sheet:
        """The table as a report shows it."""
        return Sheet(
            title=f"Published, {self.source}: {self.title} ({self.units})",
            columns=self.columns,
            rows=tuple(msgspec.structs.astuple(row) for row in self.rows),
            notes=self.notes,
            digits=digits,
        )


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


def published(kind: type[RowT]) -> Published[RowT]:
    """The table whose rows are of that type."""
    name = next(name for name, each in TABLES.items() if each is kind)
    data = resources.files(__name__).joinpath(f"{name}.json").read_bytes()
    return msgspec.json.decode(data, type=Published[kind])  # type: ignore[valid-type]


def published_sheet(kind: type[msgspec.Struct], *, digits: int = 1) -> Sheet:
    """The same table as a report shows it."""
    return published(kind).sheet(digits=digits)
