"""A log of engagements in the one schema of all sources, as queries, and what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.base.hashing import digest
from harness_gistbench.records import SIGNALS, Signal

if TYPE_CHECKING:
    import numpy as np

    from harness.contracts.dataset import Database

CODES: dict[str, int] = {signal: code for code, signal in enumerate(SIGNALS)}
"""The number that stands for a signal in queries and arrays."""

POSITIVE = [code for code, signal in enumerate(SIGNALS) if signal.endswith("_positive")]

IS_POSITIVE = f"signal IN ({', '.join(map(str, POSITIVE))})"

FEW = 20_000
"""Objects that are put in order at once without regard to their ranks."""


@dataclass(frozen=True, kw_only=True)
class Log:
    """What a source gives, as queries.

    `engagements` have `row`, `user`, `object`, `signal`, which is NULL without a rating, `time`,
    which can be compared or is NULL, and `text`; `texts` have `row`, `object` and `text`. With
    `joined`, texts come from a table of their own, in which an object may be absent, and those of
    engagements are NULL; else the rows are the same. `signals` are those that the source can give
    at all, None where the rows must show it.
    """

    engagements: str
    texts: str
    joined: bool
    signals: tuple[Signal, ...] | None = None


class LogIndex:
    """What a log holds as a whole, counted without engagements that cannot be used.

    `unrated` engagements lack a signal, the objects of `unknown` ones have no text, `untimed` ones
    have no time and are used. `rows` is a query for all: those that are used are `kept`, and a
    `text` is the first of its object. Two tables stand behind it: `things` are the objects whose
    text is not that of the row, and `people` are the numbers of each user.
    """

    def __init__(self, database: Database, log: Log) -> None:
        self._database = database
        self.texts = log.texts
        name = digest([log.engagements, log.texts])
        self.things, self.people = f"things_{name}", f"people_{name}"
        self.rows = (
            "SELECT log.* REPLACE (coalesce(things.text, log.text) AS text), torn, "
            f"signal IS NOT NULL AND ({not log.joined} OR torn IS NOT NULL) AS kept "
            f"FROM ({log.engagements}) AS log LEFT JOIN {self.things} AS things USING (object)"
        )
        self.sql(
            f"CREATE TEMP TABLE IF NOT EXISTS {self.things} AS "
            "WITH firsts AS (SELECT min(row) AS row, min(hash(text)) <> max(hash(text)) AS torn "
            f"FROM ({log.texts}) WHERE text <> '' GROUP BY hash(object) "
            f"HAVING torn OR {log.joined}) "
            f"SELECT object, text, torn FROM ({log.texts}) JOIN firsts USING (row)"
        )
        of_signals = ", ".join(
            f"count(*) FILTER (kept AND signal = {code}) AS {signal}"
            for signal, code in CODES.items()
        )
        self.sql(
            f"CREATE TEMP TABLE IF NOT EXISTS {self.people} AS SELECT user, {of_signals}, "
            "count(*) FILTER (kept) AS kept, count(*) FILTER (kept AND time IS NULL) AS untimed, "
            "count(*) FILTER (signal IS NULL) AS unrated, "
            "count(*) FILTER (signal IS NOT NULL AND NOT kept) AS unknown "
            f"FROM ({self.rows}) GROUP BY user"
        )
        columns = (*SIGNALS, "kept", "untimed", "unrated", "unknown")
        sums = ", ".join(f"coalesce(sum({column}), 0)::BIGINT" for column in columns)
        [(self.users, *found)] = self.sql(f"SELECT count(*), {sums} FROM {self.people}")
        totals = dict(zip(columns, found, strict=True))
        self.engagements, self.untimed = totals["kept"], totals["untimed"]
        self.unrated, self.unknown = totals["unrated"], totals["unknown"]
        self.signals = log.signals or tuple(signal for signal in SIGNALS if totals[signal])
        self.positive = sum(totals[SIGNALS[code]] for code in POSITIVE)

    def sql(self, query: str, params: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """The rows of a query's result."""
        return self._database.sql(query, params).fetchall()

    def column(self, query: str, params: Sequence[Any] | None = None) -> list[Any]:
        """The one column of a query's result."""
        return [value for (value,) in self.sql(query, params)]

    def arrays(self, query: str) -> dict[str, np.ndarray]:
        """The columns of a query's result."""
        found: dict[str, np.ndarray] = self._database.sql(query).fetchnumpy()
        return found

    def pool(self, most: int, *, seed: int) -> dict[str, str]:
        """The objects of the smallest ranks, of all that anybody engaged with, and their texts."""
        [many] = self.column(f"SELECT approx_count_distinct(object) FROM ({self.rows}) WHERE kept")
        share = (2 * most + FEW) / max(1, many)
        rank = f"stable_rank(object, {seed})"
        while True:
            small = "true" if share >= 1 else f"{rank} < '{int(share * 16**8):08x}'"
            found = self.sql(
                f"SELECT object, any_value(text) FROM ({self.rows}) WHERE kept AND {small} "
                f"GROUP BY object ORDER BY {rank}, object LIMIT {most}"
            )
            if len(found) == most or share >= 1:
                return dict(found)
            share *= 4
