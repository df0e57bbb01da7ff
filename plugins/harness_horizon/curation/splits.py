"""Who is held out, trained on and tested, the cases of each setting, and their audit.

A row of cases is a user: `items` up to the last target, oldest first, with `times`, `titles` and
`categories`; the targets begin at the place `first` (from 0), and `before` items are dated before
2020. Rows are in the order of a hash, so that the first ones are a sample.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from harness.base.errors import DataError
from harness_horizon.curation.engine import FAST, Engine, parquet, text
from harness_horizon.curation.settings import VALIDATION_YEAR, Settings
from harness_horizon.curation.stages import HISTORIES, ITEMS, USERS, WORK, Job, to_do

TRAIN, VALIDATION = "train.parquet", "validation.parquet"

LEAST_OF_HELD_OUT = 10
"""One of so many users who may be held out is."""

Written = tuple[Path, dict[str, int]]
"""A file that a step wrote, and what was counted."""

HELD, TRAINED, TESTED, VALIDATING = "held_out", "trained", "tested", "validating"
ROLES = (HELD, VALIDATING, TRAINED, TESTED)

SET_ASIDE, MAY_TEST, MAY_VALIDATE = "set_aside", "may_be_tested", "may_validate"
"""With `published`: who is neither trained on nor tested, and those of whom the tested and the
validating ones are the first."""

LEAKS = {
    "of_held_out_users": "of users who are held out",
    "too_late": "dated at or after the end of training",
    "targets": "that are targets of 1a or 1b",
    "validation_targets": "that are targets of validation",
}
"""Training rows of which there may be none."""

AFTER = "interactions > before"
IN_2019 = "before > before_2019"
IN_2020 = "before_2021 > before"


class Cases(NamedTuple):
    """A file of cases: its users, the place of the first target, and the end of the targets."""

    file: str
    who: str
    first: str
    end: str


def cases(settings: Settings) -> dict[str, Cases]:
    """The cases of each setting, and those of validation."""
    validation = Cases(VALIDATION, TESTED, "before - 2", "before - 1")
    if settings.published:
        end = f"before - {TESTED}::INTEGER"  # without the target of 1a
        who = f"({TESTED} OR {VALIDATING}) AND {end} > before_2019"
        validation = Cases(VALIDATION, who, "before_2019", end)
    elif settings.by_year:
        who = f"{TESTED} AND times[before - 1] >= {VALIDATION_YEAR}"
        validation = validation._replace(who=who)
    held_before = f"{HELD} AND before >= 2 AND interactions >= {settings.least}"
    held_two = f"{HELD} AND interactions >= 2"
    return {
        "1a": Cases("cases-1a.parquet", f"{TESTED} AND before >= 2", "before - 1", "before"),
        "1b": Cases("cases-1b.parquet", held_before, "before - 1", "before"),
        "1c": Cases("cases-1c.parquet", TESTED, "before", "interactions"),
        "1d": Cases("cases-1d.parquet", held_two, "greatest(before, 1)", "interactions"),
        "validation": validation,
    }


def make_splits(job: Job) -> None:
    """Draw the users, and write users, training data and cases."""
    steps = {"roles": _draw, "chosen": _choose, "users": _write_users, "train": _write_train}
    every = cases(job.settings)
    for name in to_do(job, "splits", [*steps, *every]):
        if name in steps:
            file, counts = steps[name](job)
        else:
            file, counts = _write_cases(job, every[name])
        job.ledger.finish(f"splits/{name}", [file], counts)


def _chosen(job: Job) -> Path:
    return job.out / WORK / "chosen.parquet"


def _roles(job: Job) -> Path:
    return job.out / WORK / "roles.parquet"


def _users(job: Job) -> str:
    return parquet(job.work("users", "*.parquet"))


def draws(settings: Settings) -> dict[str, tuple[str, int | None]]:
    """Who may be drawn in turn, and how many at most; None for a tenth of them, as of HELD.

    With `published`, as the authors' scripts draw.
    """
    many = f"interactions >= {settings.least}"
    if not settings.published:
        trainable = "before_2019" if settings.by_year else "before"
        trained = f"{trainable} >= 2 AND {many}"
        return {HELD: (AFTER, None), TRAINED: (trained, settings.trained)}
    early, late = "before_2019 > 0", f"({IN_2019} OR {IN_2020})"
    return {
        HELD: (IN_2020, None),
        SET_ASIDE: (f"before > 0 AND {late}", None),
        MAY_TEST: (f"{early} AND {IN_2020}", settings.held_out),
        MAY_VALIDATE: (f"{early} AND {late}", settings.held_out),
        TRAINED: (many, settings.trained),
    }


def _draw(job: Job) -> Written:
    """The users of each role, with their places in the order of a hash."""
    engine, settings = job.engine, job.settings
    every = draws(settings)
    [(active, may_be_held)] = engine.rows(
        f"SELECT count(*) FILTER ({AFTER}), count(*) FILTER ({every[HELD][0]}) FROM {_users(job)}"
    )
    if not may_be_held:
        raise DataError(
            "no user is active after the cutoff, so nothing can be tested",
            where=", ".join(map(str, settings.reviews)),
            found=f"{active:,} users with a review dated 2020 or later",
            expected="reviews of the calendar year 2020"
            if settings.published
            else "reviews dated 2020 or later",
        )
    columns = "user_id, before, interactions, 0 AS place, '' AS role"
    engine.run(
        f"CREATE OR REPLACE TEMP TABLE drawn AS SELECT {columns} FROM {_users(job)} WHERE false"
    )
    for role, (who, most) in every.items():
        _draw_role(job, role, who, most)
    fit = f"interactions >= {settings.least}"
    if not settings.published:
        fit = f"before >= 3 AND {AFTER}"
    number = f"row_number() OVER (PARTITION BY role, {fit} ORDER BY place)"
    first = f"{fit} AND {number} <= {settings.most_tested}"
    tested = MAY_TEST if settings.published else TRAINED
    query = f"""
        SELECT user_id, place, {HELD}, {VALIDATING}, {TESTED},
            role = '{TRAINED}' OR {VALIDATING} OR {TESTED} AS {TRAINED}
        FROM (SELECT *, role = '{HELD}' AS {HELD}, role = '{tested}' AND {first} AS {TESTED},
            role = '{MAY_VALIDATE}' AND {first} AS {VALIDATING} FROM drawn)
    """
    file = _roles(job)
    engine.write(f"FROM ({query}) WHERE {HELD} OR {TRAINED}", file, FAST)
    sizes = ", ".join(f"count(*) FILTER ({one}) AS {one}" for one in ROLES)
    counts = engine.one(f"SELECT {sizes} FROM {parquet(file)}")
    pools = dict(engine.rows("SELECT role, count(*) FROM drawn GROUP BY role ORDER BY role"))
    engine.run("DROP TABLE drawn")
    return file, {"active": active, "may_be_held_out": may_be_held} | counts | pools | counts


def _draw_role(job: Job, role: str, who: str, most: int | None) -> None:
    """Add the users with the smallest hashes to those who are drawn, each with its place."""
    # Those held out have the smallest hashes, so other roles need hashes of their own.
    salt = text(f"{job.settings.seed}:" if role == HELD else f"{job.settings.seed}:{role}:")
    of = f"FROM {_users(job)} ANTI JOIN drawn USING (user_id) WHERE {who}"
    if most is None:
        [(users,)] = job.engine.rows(f"SELECT count(*) {of}")
        most = min(job.settings.held_out, users // LEAST_OF_HELD_OUT)
    job.engine.run(
        "INSERT INTO drawn SELECT *, row_number() OVER () + (SELECT count(*) FROM drawn), "
        f"{text(role)} FROM (SELECT user_id, before, interactions {of} "
        f"ORDER BY md5({salt} || user_id), user_id LIMIT {most})"
    )


def _choose(job: Job) -> Written:
    """The histories of all users with a role."""
    file = _chosen(job)
    job.engine.write(
        f"SELECT roles.*, items, times, interactions, before, before_2019 "
        f"FROM {parquet(job.out / HISTORIES / '*.parquet')} AS histories "
        f"JOIN {parquet(_roles(job))} AS roles USING (user_id) "
        f"JOIN {_users(job)} AS users USING (user_id)",
        file,
        FAST,
    )
    return file, {}


def _write_users(job: Job) -> Written:
    """All users, with their numbers of interactions and their roles."""
    file = job.out / USERS
    flags = ", ".join(f"coalesce({one}, false) AS {one}" for one in ROLES)
    job.engine.write(
        f"SELECT user_id, interactions, before, {flags} FROM {_users(job)} AS users "
        f"LEFT JOIN {parquet(_roles(job))} AS roles USING (user_id) ORDER BY user_id",
        file,
    )
    return file, {}


def _write_train(job: Job) -> Written:
    """What may be trained on: of tested users, all before the targets of validation and 1a."""
    if job.settings.by_year:
        of_1a = f"{TESTED} AND before >= 2"
        end = f"CASE WHEN {of_1a} THEN least(before_2019, before - 1) ELSE before_2019 END"
    else:
        end = f"CASE WHEN {TESTED} THEN before - 2 ELSE before END"
    file = job.out / TRAIN
    job.engine.write(
        f"SELECT user_id, items[:stop] AS items, times[:stop] AS times FROM "
        f"(SELECT *, {end} AS stop FROM {parquet(_chosen(job))} WHERE {TRAINED}) "
        "WHERE stop > 0 ORDER BY place",
        file,
    )
    return file, _counts(job, file, "len(items)", "interactions")


def _write_cases(job: Job, of: Cases) -> Written:
    """The histories of a setting with the titles and categories of their items."""
    engine, file = job.engine, job.out / of.file
    engine.run(
        f"CREATE OR REPLACE TEMP TABLE asked AS SELECT user_id, place, items[:stop] AS items, "
        f"times[:stop] AS times, first, before FROM (SELECT *, ({of.first})::INTEGER AS first, "
        f"{of.end} AS stop FROM {parquet(_chosen(job))} WHERE {of.who})"
    )
    engine.write(
        f"""
        WITH shown AS (
            SELECT place, generate_subscripts(items, 1) AS spot, unnest(items) AS item FROM asked
        ),
        texts AS (
            SELECT place, list(title ORDER BY spot) AS titles,
                list(category ORDER BY spot) AS categories
            FROM shown JOIN {parquet(job.out / ITEMS)} USING (item) GROUP BY place
        )
        SELECT user_id, items, times, titles, categories, first, before
        FROM asked JOIN texts USING (place) ORDER BY place
        """,
        file,
    )
    engine.run("DROP TABLE asked")
    return file, _counts(job, file, "len(items) - first", "cases")


def _counts(job: Job, file: Path, of_user: str, name: str) -> dict[str, int]:
    """The users of a file, and the sum of what each has."""
    return job.engine.one(
        f"SELECT count(*) AS users, coalesce(sum({of_user}), 0)::BIGINT AS {name} "
        f"FROM {parquet(file)}"
    )


def audit(engine: Engine, folder: Path, settings: Settings) -> dict[str, int]:
    """What was looked at in the files alone; DataError if a training row is one that may not be."""
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
            (SELECT count(*) FROM ({targets("validation")})) AS looked_for_validation_targets,
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
