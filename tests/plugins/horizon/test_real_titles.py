"""HNSW at the published parameters over real titles, embedded by real weights."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders.catalogue import indexed, minilm, write_curated
from harness_horizon.catalogue.index_folder import read_index
from harness_horizon.catalogue.titles import cleaned

pytestmark = pytest.mark.real_data

TITLES = 15_000


def titles_in(folder: Path) -> Iterator[str]:
    """English titles of films, books, news and products."""
    movies = (folder / "movielens-1m-part" / "movies.dat").read_text("latin-1")
    yield from (line.split("::")[1] for line in movies.splitlines())
    with gzip.open(folder / "goodreads" / "goodbooks-10k-books.csv.gz", "rt") as file:
        yield from (
            row["title"] for row in csv.DictReader(file) if row["language_code"][:2] == "en"
        )
    with gzip.open(folder / "mind" / "news.tsv.gz", "rt") as file:
        yield from (line.split("\t")[3] for line in file)
    with gzip.open(folder / "amazon-2023/All_Beauty/raw/meta_All_Beauty.jsonl.gz", "rt") as file:
        yield from (json.loads(line)["title"] for line in file)
    for path in sorted((folder / "amazon-2023" / "multicat").iterdir()):
        with gzip.open(path, "rt") as file:
            for row in map(json.loads, file):
                yield from (one["product"]["title"] for one in (*row["history"], row["heldout"]))


@pytest.mark.timeout(1500)
def test_hnsw_finds_what_exact_search_finds(real_data: Path, tmp_path: Path) -> None:
    embedder = minilm()
    distinct = dict.fromkeys(filter(None, map(cleaned, titles_in(real_data))))
    titles = list(distinct)[:TITLES]
    assert len(titles) == TITLES
    data = write_curated(tmp_path / "data", titles)
    indexed(data, tmp_path / "out", embedder=embedder)
    totals = read_index(tmp_path / "out").totals
    assert totals["titles"] == {"titles": TITLES, "dimensions": 384}
    assert totals["recall"]["of"] == 10_000
    assert totals["recall"]["found"] / totals["recall"]["of"] >= 0.98
