"""Curated data of a few titles, embedders that fail, and indexes, for tests of catalogues."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness_horizon.catalogue.index_tool import Settings, run
from harness_horizon.catalogue.titles import SETTINGS
from harness_horizon.curation.ledger import opened
from harness_horizon.curation.stages import ITEMS

from harness.analysis.analysis import no_progress
from harness.contracts.embedder import Embedder
from harness.contracts.identity import Identity
from harness.contracts.report import Report

SMALL = "hashing:dimensions=48"

THINGS = "copper kettle garden lantern wooden puzzle red yarn dog leash atlas mystery iron felt"


def titles_of(count: int) -> list[str]:
    """So many distinct titles."""
    rng = np.random.default_rng(5)
    return [f"{' '.join(rng.choice(THINGS.split(), 4))} {number}" for number in range(count)]


def write_curated(folder: Path, titles: Sequence[str | None], true: Sequence[str] = ()) -> Path:
    """Writes curated data with these titles; each of the true ones is the target of a case."""
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"title": pa.array(titles, pa.string())}), folder / ITEMS)
    for setting in SETTINGS:
        own = list(true) if setting == "1c" else []
        cases = {"titles": [["before", one] for one in own], "first": [1] * len(own)}
        types = pa.schema([("titles", pa.list_(pa.string())), ("first", pa.int32())])
        pq.write_table(pa.table(cases, types), folder / f"cases-{setting}.parquet")
    ledger = opened(folder, None, options={}, inputs=())
    ledger.finish("items", [folder / ITEMS], {})
    ledger.complete({}, without="")
    return folder


def indexed(data: Path, out: Path, **options: Any) -> Report:
    """The report on an index that is built now."""
    return run(Settings(**{"embedder": SMALL, "data": data, "out": out, **options}), no_progress)


class Scripted(Embedder):
    """Returns rows of length 1, of which a test changes what it wants."""

    def __init__(self, wrong: str = "") -> None:
        self.identity = Identity(kind="test", name="scripted")
        self.dimensions = 8
        self._wrong = wrong
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> Any:
        """A row for each text, from its own seed."""
        self.asked.append(list(texts))
        rows = np.stack([np.random.default_rng(list(one.encode())).random(8) for one in texts])
        rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        if self._wrong == "nan":
            rows[-1, 0] = np.nan
        return rows[:-1] if self._wrong == "fewer" else rows
