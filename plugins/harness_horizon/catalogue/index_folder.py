"""The folder of an index: titles, an index of faiss, and the manifest that is completed last."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from harness.base.errors import DataError
from harness.runs.atomic_files import atomic_writer
from harness_horizon.catalogue.titles import Titles, distinct_titles, sampled, table_of
from harness_horizon.curation.engine import OUT
from harness_horizon.curation.ledger import Manifest, check_files, complete_manifest, read_manifest
from harness_horizon.recommenders.checkpoint import inside

TITLES, INDEX = "titles.arrow", "index.faiss"
COMMAND = "harness horizon index --data DATA --embedder SPEC --out INDEX"


def read_index(folder: Path) -> Manifest:
    """The manifest of a finished index; DataError if there is none, or a file is cut or changed."""
    manifest = read_manifest(folder) if folder.is_dir() else None
    if manifest is None or not manifest.complete or "identity" not in manifest.options:
        raise DataError(
            "this is no finished index of a catalogue",
            where=str(folder),
            found=inside(folder),
            expected="the manifest of an index, which is completed last",
            hint=f"let its build end, the same command continues; or build one: {COMMAND}",
        )
    stamps = [(one.stat().st_size, one.stat().st_mtime_ns) for one in sorted(folder.iterdir())]
    _check_once(folder.resolve(), tuple(stamps))
    return manifest


@cache
def _check_once(folder: Path, stamps: tuple[tuple[int, int], ...]) -> None:
    """Check the digests of an index, which takes minutes, once for its files of these stamps."""
    check_files(folder, complete_manifest(folder))


def write_titles(data: Path, folder: Path, size: int | None) -> None:
    """Write the distinct titles of curated data, or a sample; DataError if there are none."""
    import pyarrow as pa  # type: ignore[import-untyped]

    titles = distinct_titles(data)
    if not len(titles):
        raise DataError("the curated data has no titles", where=str(data))
    rows = np.arange(len(titles)) if size is None else sampled(titles, data, size)
    table = table_of(titles, rows)
    with (
        atomic_writer(folder / TITLES, option=OUT) as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)


def read_titles(folder: Path) -> Titles:
    """The titles of an index, mapped and not read."""
    import pyarrow as pa

    return Titles(pa.ipc.open_file(pa.memory_map(str(folder / TITLES))).read_all())
