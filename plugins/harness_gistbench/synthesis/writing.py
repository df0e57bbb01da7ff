"""The rows of synthetic users: made, passed through the user's own filter, and written."""

from __future__ import annotations

import csv
import io
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from harness.base.errors import UsageError
from harness.base.hashing import stable_int
from harness.runs.atomic_files import atomic_writer, make_folder
from harness_gistbench.records import SIGNALS, Signal
from harness_gistbench.synthesis.reading import SECONDS_A_DAY

if TYPE_CHECKING:
    from harness_gistbench.synthesis.cohorts import Draw
    from harness_gistbench.synthesis.reading import Real
    from harness_gistbench.synthesis.settings import Settings

HEADER = ("user_id", "object_id", "object_text", "interaction_type", "interaction_time")
OPEN = ("object_text", "interaction_type")
"""The fields that a filter may change."""

RECORD = "synthesis.json"
ROWS_A_GROUP = 1 << 16


class Row(NamedTuple):
    """One engagement of a synthetic user, in the published layout."""

    user: int
    object: int
    text: str
    signal: Signal
    time: int


def rows_of(
    draws: Sequence[Draw], real: Real, texts: Mapping[str, str], settings: Settings
) -> Iterator[list[Row]]:
    """The rows of each synthetic user, under new ids and times, oldest first.

    Objects are numbered in the order in which they come up, times are seconds of the window.
    """
    numbers: dict[int, int] = {}
    for user, one in enumerate(draws, start=1):
        rng = Random(stable_int("times", settings.seed, user))
        times = sorted(int(rng.random() * settings.days * SECONDS_A_DAY) for _ in one.rows)
        objects, signals = real.object[one.rows].tolist(), real.signal[one.rows].tolist()
        yield [
            Row(
                user=user,
                object=numbers.setdefault(thing, len(numbers) + 1),
                text=texts[real.objects[thing]],
                signal=SIGNALS[signal],
                time=time,
            )
            for thing, signal, time in zip(objects, signals, times, strict=True)
        ]


@dataclass(kw_only=True)
class Filter:
    """Gives a function each row, as the mapping that would be written. State: its counts.

    The function gives the row back, changed or not, or None to have it left out. `name` is what
    --filter calls it.
    """

    function: Callable[[dict[str, str]], Any] | None
    name: str = ""
    rows: int = 0
    dropped: int = 0
    replaced: int = 0

    def through_all(self, users: Iterable[list[Row]]) -> Iterator[list[Row]]:
        """What is left of the rows of each user; UsageError at the end where that is nothing."""
        for rows in users:
            yield self.through(rows)
        if self.dropped and self.dropped == self.rows:
            raise UsageError(
                "the function that --filter names leaves nothing to write",
                where=self.name,
                found=f"None for each of {self.rows:,} rows",
                expected="rows that it gives back",
            )

    def through(self, rows: list[Row]) -> list[Row]:
        """The rows that are left of these."""
        self.rows += len(rows)
        return rows if self.function is None else list(self._kept(rows, self.function))

    def _kept(self, rows: list[Row], function: Callable[[dict[str, str]], Any]) -> Iterator[Row]:
        for row in rows:
            given = fields(row)
            answer = self._answer(function, given)
            if answer is None:
                self.dropped += 1
            elif answer == given:
                yield row
            else:
                self.replaced += 1
                yield self._changed(row, given, answer)

    def _answer(self, function: Callable[[dict[str, str]], Any], given: dict[str, str]) -> Any:
        try:
            return function(dict(given))
        except Exception as error:
            raise UsageError(
                "the function that --filter names failed",
                where=f"{self.name}, given {given}",
                found=traceback.format_exc(limit=-4).strip(),
                expected="the row, changed or not, or None",
            ) from error

    def _changed(self, row: Row, given: Mapping[str, str], answer: Any) -> Row:
        """The row with what may be changed as the filter gave it."""
        if wrong := _wrong(given, answer):
            found, expected = wrong
            raise UsageError(
                "the function that --filter names gives what cannot be written",
                where=f"{self.name}, given {given}",
                found=found,
                expected=expected,
            )
        return row._replace(text=answer["object_text"], signal=answer["interaction_type"])


def fields(row: Row) -> dict[str, str]:
    """A row in the published layout."""
    return dict(zip(HEADER, map(str, row), strict=True))


def _wrong(given: Mapping[str, str], answer: Any) -> tuple[str, str] | None:
    """What of an answer cannot be written, and what could be."""
    if not isinstance(answer, dict) or answer.keys() != given.keys():
        return f"a value with {_keys(answer)}", f"the row's own fields: {_keys(given)}"
    closed = [name for name in given if name not in OPEN and answer[name] != given[name]]
    if closed:
        return f"another {closed[0]}: {answer[closed[0]]!r}", f"changes of {OPEN} alone"
    text, signal = answer["object_text"], answer["interaction_type"]
    if not isinstance(text, str) or not text.strip():
        return f"the object_text {text!r}", "a text, or None in place of the row"
    if signal not in SIGNALS:
        return f"the interaction_type {signal!r}", f"one of {', '.join(SIGNALS)}"
    return None


def _keys(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, dict) else f"the type {type(value)}"


def check_empty(folder: Path) -> None:
    """Raise UsageError where data in the folder would be written over or mistaken for this."""
    if folder.is_dir():
        names = sorted(path.name for path in folder.iterdir())
        there = [name for name in names if name.partition(".")[0] == "engagements"]
        there += [RECORD] if (folder / RECORD).exists() else []
    else:
        there = [folder.name] if folder.exists() else []
    if there:
        raise UsageError(
            "the synthetic users cannot be written there",
            where=str(folder),
            found=", ".join(there),
            expected="a folder without data, or one that does not exist yet",
        )


def write(file: Path, users: Iterable[list[Row]]) -> None:
    """Writes the rows of all users; the file appears when it is whole."""
    make_folder(file.parent, option="--out")
    with atomic_writer(file, option="--out") as stream:
        (_write_parquet if file.suffix == ".parquet" else _write_csv)(stream, users)


def _write_csv(file: BinaryIO, users: Iterable[list[Row]]) -> None:
    stream = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(HEADER)
    for rows in users:
        writer.writerows(rows)
    stream.detach()


def _write_parquet(file: BinaryIO, users: Iterable[list[Row]]) -> None:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    kinds = (pa.int64(), pa.int64(), pa.string(), pa.string(), pa.int64())
    schema = pa.schema(list(zip(HEADER, kinds, strict=True)))

    def table(rows: list[Row]) -> Any:
        columns = zip(*rows, strict=True) if rows else ((),) * len(HEADER)
        return pa.table(list(map(list, columns)), schema=schema)

    held: list[Row] = []
    with pq.ParquetWriter(file, schema) as writer:
        for rows in users:
            held += rows
            if len(held) >= ROWS_A_GROUP:
                writer.write_table(table(held))
                held = []
        writer.write_table(table(held))
