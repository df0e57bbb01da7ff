"""The audit of a build, from its files alone: nothing that is tested is trained on."""

from __future__ import annotations

from pathlib import Path

from harness.base.errors import DataError
from harness_horizon.curation.engine import Engine, parquet
from harness_horizon.curation.settings import Settings
from harness_horizon.curation.splits import TRAIN, VALIDATION, cases
from harness_horizon.curation.stages import USERS

LEAKS = {
    "of_held_out_users": "of users who are held out",
    "too_late": "dated at or after the end of training",
    "targets": "that are targets of 1a or 1b",
    "validation_targets": "that are targets of validation",
}
"""Training rows of which there may be none."""


def audit(engine: Engine, folder: Path, settings: Settings) -> dict[str, int]:
    """What was looked at, and no leak; DataError if a training row is one that may not be."""
    files = {name: one.file for name, one in cases(settings).items()}

    def targets(*names: str) -> str:
        return " UNION ALL ".join(
            f"SELECT user_id, unnest(items[first + 1:]) AS item, unnest(times[first + 1:]) AS time "
            f"FROM {parquet(folder / files[name])}"
            for name in names
        )

    engine.run(
        "CREATE OR REPLACE TEMP TABLE rows AS SELECT user_id, unnest(items) AS item, "
        f"unnest(times) AS time FROM {parquet(folder / TRAIN)}"
    )
    found = engine.one(
        f"""
        SELECT (SELECT count(*) FROM rows) AS training_rows,
            (SELECT count(*) FROM ({targets("1a", "1b")})) AS looked_for_targets,
            (SELECT count(*) FROM {parquet(folder / VALIDATION)}) AS looked_for_validation_targets,
            (SELECT count(*) FROM rows SEMI JOIN
                (SELECT user_id FROM {parquet(folder / USERS)} WHERE held_out) AS held
                USING (user_id)) AS of_held_out_users,
            (SELECT count(*) FROM rows WHERE time >= {settings.end_of_training}) AS too_late,
            (SELECT count(*) FROM rows SEMI JOIN ({targets("1a", "1b")}) AS targets
                USING (user_id, item, time)) AS targets,
            (SELECT count(*) FROM rows SEMI JOIN ({targets("validation")}) AS targets
                USING (user_id, item, time)) AS validation_targets
        """
    )
    engine.run("DROP TABLE rows")
    leaks = [f"{found[name]:,} {what}" for name, what in LEAKS.items() if found[name]]
    if leaks:
        raise DataError(
            "the audit failed: training rows leak what is tested",
            where=str(folder / TRAIN),
            found=f"of {found['training_rows']:,} training rows: {'; '.join(leaks)}",
            expected="none",
            hint="report this to the developers; the folder is not complete and is not used",
        )
    return found
