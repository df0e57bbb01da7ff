"""The two files of built prompts: prompts.parquet, and prompts.json with what they were made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness import DataError
from harness.base.hashing import digest
from harness_behaviour.records import Prompt, Proxy, Recipe

if TYPE_CHECKING:
    from harness.contracts.dataset import Table

PROMPTS = "prompts.parquet"
RECORD = "prompts.json"


class CellCount(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a proxy and a length of history.

    `tried` are the draws of histories, or the groups without one. `published` is the number of the
    paper's Table 1. `short_of_outside` counts prompts for which too few items were without a user.
    `users` are the quartiles of the number of users behind a prompt, none without prompts.
    """

    proxy: Proxy
    length: int
    groups: int
    found: int
    tried: int
    published: int
    short_of_outside: int
    users: tuple[float, ...]


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """The prompts of a domain, with the recipe and what came of it."""

    recipe: Recipe
    prompts: tuple[Prompt, ...]
    cells: tuple[CellCount, ...]
    notes: dict[str, int]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The content of prompts.json.

    `fingerprint` is that of the prompts, and `files` has those of the files that they came from.
    """

    domain: str
    options: dict[str, Any]
    fingerprint: str
    files: dict[str, str]
    cells: tuple[CellCount, ...]
    notes: dict[str, int]


COLUMNS = tuple(name for name in Prompt.__struct_fields__ if name != "user")
"""The columns of prompts.parquet; a prompt's user is its id."""


def fingerprint(prompts: tuple[Prompt, ...]) -> str:
    """A digest of the content of prompts, the same on every machine."""
    return digest(msgspec.to_builtins(prompts))


def write(folder: Path, built: Built, files: Mapping[str, str], *, option: str) -> Record:
    """Write both files into a folder that `option` named; what prompts.json holds."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    from harness.analysis.tool_report import write_json
    from harness.runs.atomic_files import atomic_writer, make_folder

    record = Record(
        domain=built.recipe.domain,
        options=msgspec.structs.asdict(built.recipe),
        fingerprint=fingerprint(built.prompts),
        files=dict(files),
        cells=built.cells,
        notes=built.notes,
    )
    texts, whole = pa.list_(pa.string()), pa.list_(pa.int64())
    kinds = {
        **dict.fromkeys(COLUMNS, pa.string()),
        **dict.fromkeys(("length", "users"), pa.int64()),
        **dict.fromkeys(("group", "history", "candidates"), texts),
        **dict.fromkeys(("counts", "popular", "popular_in_group"), whole),
    }
    rows = [{name: getattr(one, name) for name in COLUMNS} for one in built.prompts]
    table = pa.Table.from_pylist(rows, schema=pa.schema(list(kinds.items())))
    make_folder(folder, option=option)
    with atomic_writer(folder / PROMPTS, option=option) as stream:
        pq.write_table(table, stream)
    write_json(folder / RECORD, record, option=option)
    return record


def read(prompts: Table, built: Table, place: Path) -> tuple[Record, tuple[Prompt, ...]]:
    """What both files hold; DataError for prompts that are not those of the record."""
    [(_, cells)] = built.rows()
    try:
        record = msgspec.convert(cells, Record)
    except msgspec.ValidationError as error:
        raise DataError(
            f"{RECORD} cannot be used",
            where=str(place.with_name(RECORD)),
            found=str(error),
            expected=f"the file that was written together with {PROMPTS}",
        ) from None
    found = tuple(_prompts(prompts, place))
    own = fingerprint(found)
    if own != record.fingerprint:
        raise DataError(
            "the prompts were changed after they were built",
            where=str(place),
            found=f"{len(found):,} prompts with the fingerprint {own}",
            expected=f"the fingerprint {record.fingerprint}, as {RECORD} beside them says",
            hint="build them again with `harness data behaviour-prompts`, and keep both files",
        )
    return record, found


def _prompts(table: Table, place: Path) -> Iterator[Prompt]:
    for batch in table.batches():
        columns = {**{name: batch.columns[name] for name in COLUMNS}, "user": batch.columns["id"]}
        try:
            for values in zip(*columns.values(), strict=True):
                yield msgspec.convert(dict(zip(columns, values, strict=True)), Prompt)
        except msgspec.ValidationError as error:
            raise DataError(
                "a prompt cannot be used",
                where=str(place),
                found=f"{error}, in the rows from {batch.first} on",
                expected="prompts that `harness data behaviour-prompts` wrote",
                hint="build them again of the same log; older prompts lack the column 'counts'",
            ) from None
