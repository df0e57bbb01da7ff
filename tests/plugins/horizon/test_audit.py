"""The audit finds each kind of leak that is planted in the training data of a build."""

import pytest
from builders.horizon import built, settings_of
from harness_horizon.curation import build, splits
from harness_horizon.curation.engine import engine
from harness_horizon.curation.ledger import complete_manifest
from harness_horizon.curation.settings import TAU
from harness_horizon.curation.splits import audit

from harness.base.errors import DataError

from .test_bad_input import log  # noqa: F401 - a fixture

LAST = "SELECT user_id, items[first + 1:], times[first + 1:] FROM '{{}}/{}.parquet' LIMIT 1"
PLANTED = {
    "a held-out user": (
        "SELECT user_id, items[:1], times[:1] FROM '{}/cases-1b.parquet' LIMIT 1",
        "1 of users who are held out",
    ),
    "a date after the cutoff": (
        "SELECT user_id, items[first + 1:first + 1], times[first + 1:first + 1] "
        "FROM '{}/cases-1c.parquet' LIMIT 1",
        "1 dated at or after the end of training",
    ),
    "a target of 1a": (LAST.format("cases-1a"), "1 that are targets of 1a or 1b"),
    "a target of validation": (LAST.format("validation"), "1 that are targets of validation"),
}


def plant(database, out, leak):
    """Adds a row to the training data."""
    train = out / "train.parquet"
    database.run(f"COPY (FROM '{train}' UNION ALL ({leak.format(out)})) TO '{out}/leaking.parquet'")
    (out / "leaking.parquet").replace(train)


@pytest.mark.parametrize("leak", PLANTED)
def test_a_planted_leak_is_found(log, leak):  # noqa: F811
    settings, out = settings_of(log), built(log)
    query, said = PLANTED[leak]
    with engine(out, 10**9) as database:
        assert audit(database, out, settings)["training_rows"] == 18 * 2
        plant(database, out, query)
        with pytest.raises(DataError, match="the audit failed") as error:
            audit(database, out, settings)
    assert f"of {18 * 2 + 1} training rows: {said}" in str(error.value).replace("\n", " ")


def test_a_build_that_leaks_is_not_complete(log, monkeypatch):  # noqa: F811
    write = splits._write_train
    query = f"SELECT user_id, [0], [{TAU}] FROM '{{}}/users.parquet' LIMIT 1"

    def write_and_plant(job):
        written = write(job)
        plant(job.engine, job.out, query)
        return written

    monkeypatch.setattr(splits, "_write_train", write_and_plant)
    settings = settings_of(log)
    with pytest.raises(DataError, match="the audit failed"):
        build.run(settings)
    with pytest.raises(DataError, match="no complete build"):
        complete_manifest(settings.out)
