"""The entries of docs/known-data.md: valid, with the digests of their owners, and readable."""

import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from builders.tables import data_in

from harness.contracts.task import DataSpec
from harness.tasks.task_schema import part_errors

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "known-data.md").read_text()
ENTRIES: dict[str, dict[str, Any]] = {
    title: yaml.safe_load(block)["data"]
    for title, block in re.findall(r"^## (.*?)\n.*?```yaml\n(.*?)```", TEXT, re.S | re.M)
}


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_is_valid_in_a_task_file(name):
    assert part_errors("data", ENTRIES[name], lambda path, **_: name) == []
    assert msgspec.convert(ENTRIES[name], DataSpec).sources


def read(name, folder):
    """The number of rows of each table of an entry, read from files."""
    spec = msgspec.convert(ENTRIES[name], DataSpec)
    data = data_in(folder, spec)
    return {table: sum(1 for _ in data.table(table).rows()) for table in data.tables}


@pytest.mark.real_data
def test_movielens_is_read(real_data, tmp_path):
    for name in ("users.dat", "movies.dat", "ratings.dat.gz"):
        shutil.copy(real_data / "movielens-1m-part" / name, tmp_path)
    assert read("MovieLens 1M", tmp_path) == {"ratings": 487_515, "users": 6040, "movies": 3883}


@pytest.mark.real_data
def test_last_fm_is_read(real_data, tmp_path):
    shutil.copy(real_data / "lastfm" / "1k-userid-profile.tsv", tmp_path / "userid-profile.tsv")
    sample = (real_data / "lastfm" / "1k-events-sample.tsv").read_bytes()
    events = sample.partition(b"\n")[2]  # the whole file has no header
    (tmp_path / "userid-timestamp-artid-artname-traid-traname.tsv").write_bytes(events)
    assert read("Last.fm 1K", tmp_path) == {"plays": 85, "people": 992}


@pytest.mark.real_data
def test_amazon_reviews_are_read(real_data, tmp_path):
    shutil.copytree(real_data / "amazon-2023" / "All_Beauty" / "raw", tmp_path, dirs_exist_ok=True)
    assert read("Amazon Reviews 2023", tmp_path) == {"reviews": 2544, "products": 356}
