"""The sources of a table's rows, such as a file in any supported format."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from harness.base.errors import DataError
from harness.contracts.task import DelimitedSpec
from harness.data.fingerprint import Stamp, check_unchanged

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

Format = Literal["csv", "tsv", "json", "jsonl", "parquet"]

FORMATS: Mapping[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
}
PACKINGS = (".gz", ".zst")
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_TEXT_HINTS = dict.fromkeys(
    (".dat", ".txt"),
    "text with a delimiter is read if the task names it for the table: `delimited: {delimiter: …}`",
)


class Source(Protocol):
    """A source of rows. `text` is true if cells are text without types."""

    @property
    def label(self) -> str: ...

    @property
    def text(self) -> bool: ...

    def columns(self) -> tuple[str, ...] | None:
        """The names of the columns; None if each row has its own."""

    def rows(
        self, wanted: Collection[str] | None
    ) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
        """Line number, if there are lines, and cells of each row, always from the first row."""

    def batches(
        self, wanted: Collection[str] | None, *, rows: int
    ) -> Iterator[pa.RecordBatch] | None:
        """The same as columns, at most `rows` rows at a time; None if only rows can be read."""


@dataclass(frozen=True, kw_only=True)
class FileSource:
    """The rows of one file; DataError if the file changed since `stamp` was taken.

    `entries` are two column names for a file with one JSON object, whose entries are the rows;
    `rows_at` are the keys that lead to the rows in such a file.
    """

    path: Path
    stamp: Stamp
    delimited: DelimitedSpec = DelimitedSpec()  # noqa: RUF009 - a frozen value
    entries: tuple[str, str] | None = None
    rows_at: tuple[str, ...] | None = None

    @property
    def label(self) -> str:
        return str(self.path)

    @property
    def text(self) -> bool:
        return self._format() in _DELIMITERS

    def columns(self) -> tuple[str, ...] | None:
        if self.entries or self.rows_at is not None:
            self._check_json()
            return None
        kind = self._format()
        if kind == "parquet":
            from harness.data.parquet import read_names

            return read_names(self.path)
        if kind in _DELIMITERS:
            from harness.data.delimited import read_header

            return read_header(self.path, delimiter=self.delimiter(), written=self.delimited)
        return None

    def rows(
        self, wanted: Collection[str] | None
    ) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
        check_unchanged(self.path, self.stamp)
        if self.entries:
            self._check_json()
            from harness.data.json_rows import read_entries

            return read_entries(self.path, names=self.entries)
        if self.rows_at is not None:
            self._check_json()
            from harness.data.json_inside import read_inside

            return read_inside(self.path, keys=self.rows_at)
        kind = self._format()
        if kind == "parquet":
            from harness.data.parquet import read_parquet

            return read_parquet(self.path, wanted=wanted)
        if kind in _DELIMITERS:
            from harness.data.delimited import read_delimited

            return read_delimited(
                self.path, delimiter=self.delimiter(), wanted=wanted, written=self.delimited
            )
        from harness.data.json_rows import read_json, read_json_lines

        return read_json(self.path) if kind == "json" else read_json_lines(self.path)

    def batches(
        self, wanted: Collection[str] | None, *, rows: int
    ) -> Iterator[pa.RecordBatch] | None:
        if self._format() != "parquet":
            return None
        check_unchanged(self.path, self.stamp)
        from harness.data.parquet import read_batches

        return read_batches(self.path, wanted=wanted, rows=rows)

    def bulk_format(self) -> Literal["delimited", "jsonl", "parquet"] | None:
        """How whole columns of the file can be read at once; None if only rows can be."""
        if self.entries or self.rows_at is not None:
            return None
        kind = self._format()
        if kind in _DELIMITERS:
            return "delimited"
        if kind == "json":
            from harness.data.json_rows import begins_with_object

            return "jsonl" if begins_with_object(self.path) else None
        return "parquet" if kind == "parquet" else "jsonl"

    def delimiter(self) -> str:
        """The text between two cells of a file with delimiters."""
        return self.delimited.delimiter or _DELIMITERS[self._format()]

    def _format(self) -> Format:
        return format_of(self.path, any_ending=self.delimited.delimiter is not None)

    def _check_json(self) -> None:
        if self.entries and self.rows_at is not None:
            raise DataError(
                "a table cannot have both `entries` and `rows_at`",
                where=str(self.path),
                expected="one of the two keys in the task file",
            )
        kind = self._format()
        if kind != "json":
            raise DataError(
                "the file of this table must hold one JSON object, whose entries are the rows"
                if self.entries
                else "the file of this table must hold one JSON object with the rows in it",
                where=str(self.path),
                found=f"a file of the format {kind}",
                expected=f"a .json file, which may be packed ({' or '.join(PACKINGS)})",
            )


def format_of(path: Path, *, any_ending: bool = False) -> Format:
    """The format of a file by the end of its name; DataError for an unsupported one.

    With `any_ending`, a file with another ending is read as CSV.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in PACKINGS
    ending = "".join(suffixes[-2:-1] if packed else suffixes[-1:])
    kind = FORMATS.get(ending, "csv" if any_ending else None)
    extension = "".join(path.suffixes[-2:] if packed else [path.suffix])
    if kind is None or (packed and kind == "parquet"):
        raise DataError(
            "the format of the file is not supported",
            where=str(path),
            found=f"the extension '{extension}'" if extension else "a name without an extension",
            expected=f"{', '.join(FORMATS)}; all except .parquet also with {' or '.join(PACKINGS)}",
            hint="unpack it: Parquet files are compressed inside"
            if kind
            else _TEXT_HINTS.get(ending),
        )
    return kind
