"""The data that a benchmark's `load` receives: tables, chosen ids, notes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from harness.base.errors import DataError

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")


class Batch(Protocol):
    """Some consecutive rows of a table as columns."""

    @property
    def first(self) -> int:
        """The number of the first row."""

    @property
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """The values of each column."""

    def __len__(self) -> int: ...


class Table(Protocol):
    """Rows with the columns and types that the task declares."""

    @property
    def where(self) -> str:
        """The table's name, and the files or addresses that it is read from, for errors."""

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Number and values of each row, read from the start at each call; numbers begin at 1.

        for number, row in dataset.table("ratings").rows():
            ratings[row["user"]].append(row["rating"])
        """

    def batches(self, *names: str) -> Iterator[Batch]:
        """The same rows as columns, many at a time: the named columns, or all.

        Only these columns are checked. Parquet files and splits of the hub are read many times
        faster this way.

            for batch in dataset.table("ratings").batches("user", "rating"):
                users += batch.columns["user"]
        """

    def bad(self, row: int, column: str, value: Any, expected: str) -> DataError:
        """The error for a value that the benchmark cannot use, with its file and row.

        raise table.bad(number, "rating", row["rating"], "a number from 1 to 5")
        """


class Database(Protocol):
    """Tables that SQL can query."""

    def relation(self, name: str) -> duckdb.DuckDBPyRelation:
        """The rows of a table.

        database.relation("ratings").aggregate("user, count(*)").order("user").fetchall()
        """

    def sql(
        self, query: str, params: Sequence[Any] | Mapping[str, Any] | None = None
    ) -> duckdb.DuckDBPyRelation:
        """The result of a query, with values for its `?` or `$name`.

        database.sql("SELECT item FROM ratings WHERE user = ? ORDER BY row", ["u1"])
        """


class Dataset(Protocol):
    """The opened data of one task."""

    @property
    def task(self) -> str:
        """The task's name, for errors."""

    @property
    def about(self) -> Mapping[str, Any]:
        """Where the data comes from, as JSON values."""

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name."""

    @property
    def seed(self) -> int:
        """The run's seed."""

    def has(self, name: str) -> bool:
        """Whether an optional table is there.

        profiles = dataset.table("profiles") if dataset.has("profiles") else None
        """

    def table(self, name: str | None = None) -> Table:
        """The table of that name; without a name, the only table.

        rows = dataset.table("ratings").rows()
        """

    def relation(self, name: str | None = None) -> duckdb.DuckDBPyRelation:
        """The rows of a table as a DuckDB relation, for tables with millions of rows.

        It has the declared columns and `row`, the number of the row. Order by what is stable: the
        rows come in any order.

            counts = dataset.relation("ratings").aggregate("user, count(*)").order("user")
        """

    @property
    def database(self) -> Database:
        """The tables as a database, for SQL over several of them.

        shared = dataset.database.sql("SELECT * FROM ratings JOIN items USING (item) ORDER BY row")
        """

    def once(self, names: str | Sequence[str], make: Callable[..., T], *given: Hashable) -> T:
        """What `make(*tables, *given)` returns, made once for all tasks of a run that ask the same.

        `names` is one table or several. The result must not be changed, and must depend on nothing
        but these tables and `given`. `make` is a function of a module: it is known by its identity.

            histories = dataset.once("ratings", read_histories)
            index = dataset.once(("ratings", "items"), read_index, dataset.seed)
        """

    def path(self, name: str | None = None) -> Path:
        """The one file of a table, for layouts that are not tables.

        archive = dataset.path("groups")
        """

    def paths(self, name: str | None = None) -> tuple[Path, ...]:
        """The files of a table, in reading order.

        parts = dataset.paths("events")
        """

    def choose(self, ids: Iterable[str], *, of: str = "users") -> list[str]:
        """The ids that this run keeps, in an order that depends only on the seed and the ids.

        At most the task's size and the run's limit; a smaller choice is part of a larger one.

            chosen = dataset.choose(histories)
        """

    def describe(self) -> dict[str, Any]:
        """What was read, as JSON values: origin, revision, files and fingerprints.

        fingerprint = dataset.describe()["fingerprint"]
        """

    def note(self, fact: str, number: int) -> None:
        """Reports a count to the reader of the scores: rows left out, users without history.

        It is shown when the run starts, and kept in its manifest, summaries and tables. No key and
        no fingerprint depends on it; noting a fact again replaces its number, and 0 takes the note
        back.

            dataset.note("users with fewer than five ratings", 12)
        """
