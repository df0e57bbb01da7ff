"""Whether data are the published data, as far as the task knows these; and the entries of
docs/known-data.md: valid, with the digests of their owners, and readable."""

import hashlib
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from builders.tables import data_in

from harness.contracts.task import Column, DataSpec, KnownFact, TableSpec
from harness.data import Table
from harness.tasks.task_schema import part_errors

TABLES = {
    "groups": TableSpec(columns={"item": Column(), "user": Column(type="integer")}),
    "recorded": TableSpec(columns={"item": Column()}, required=False),
}
CSV = "item,user\nb,1\na,1\nb,2\n"
ITEMS = hashlib.sha256(b"a\nb").hexdigest()
FILE = hashlib.sha256(CSV.encode()).hexdigest()
OTHER = "not the published data: "


def opened(folder, *known, **more):
    if not (folder / "groups.csv").exists():
        (folder / "groups.csv").write_text(CSV)
    spec = DataSpec(tables=TABLES, known=known, size=more.pop("size", None))
    return data_in(folder, spec, **{"shared": {}, **more})


def fact(**given):
    return KnownFact(**{"table": "groups", **given})


@pytest.mark.parametrize(
    ("known", "reasons"),
    [
        ([], [f"{OTHER}the task knows no digest or count of it"]),
        ([fact(rows=3)], []),
        ([fact(rows=4_000)], ["table 'groups' has 3 rows, not 4,000"]),
        ([fact(column="item", values=2, digest=ITEMS, rows=3)], []),
        ([fact(column="user", digest=hashlib.sha256(b"1\n2").hexdigest())], []),
        (
            [fact(column="item", values=3)],
            ["'item' in table 'groups' has 2 distinct values, not 3"],
        ),
        (
            [fact(column="item", digest="f" * 64)],
            [f"'item' in table 'groups' has the digest {ITEMS[:12]}…, not {'f' * 12}…"],
        ),
        ([fact(digest=FILE, rows=3)], []),
        (
            [fact(digest="f" * 64)],
            [f"the file of table 'groups' has the digest {FILE[:12]}…, not {'f' * 12}…"],
        ),
        ([fact(rows=3), fact(table="recorded", rows=9)], ["it has no table 'recorded'"]),
        (
            [fact(table="recorded", rows=9), fact(table="recorded"), fact(table="sold", rows=1)],
            ["it has no table 'recorded', 'sold'"],
        ),
        (
            [fact(rows=1), fact(column="item", values=1)],
            [
                "table 'groups' has 3 rows, not 1",
                "'item' in table 'groups' has 2 distinct values, not 1",
            ],
        ),
    ],
    ids=str,
)
def test_local_data_are_known_by_facts_alone(tmp_path, known, reasons):
    data = opened(tmp_path, *known)
    expected = [why if why.startswith(OTHER) else OTHER + why for why in reasons]
    assert list(data.why_incomparable) == expected
    assert data.describe()["comparable"] is not bool(reasons)


def test_facts_read_a_table_once_for_all_tasks_and_never_without_need(tmp_path, monkeypatch):
    read = []
    batches = Table.batches
    monkeypatch.setattr(Table, "batches", lambda *given: read.append(given) or batches(*given))
    shared = {}
    for _ in range(2):
        data = opened(tmp_path, fact(column="item", values=2), shared=shared)
        assert data.why_incomparable == ()
    opened(tmp_path, fact(digest=FILE)).describe()
    opened(tmp_path).describe()
    assert [names for _, *names in read] == [["item"]]


def test_a_table_that_the_database_holds_is_not_read_again(tmp_path, monkeypatch):
    known = fact(column="item", values=2, digest=ITEMS, rows=3), fact(rows=3)
    data = opened(tmp_path, *known)
    data.relation("groups")
    monkeypatch.delattr(Table, "batches")
    assert data.why_incomparable == ()


def test_a_missing_value_is_no_value_of_a_column(tmp_path):
    table = TableSpec(columns={"item": Column(required=False), "user": Column()})
    (tmp_path / "groups.csv").write_text(CSV + ",3\n")
    spec = DataSpec(tables={"groups": table}, known=(fact(column="item", values=2, digest=ITEMS),))
    for loaded in (False, True):
        data = data_in(tmp_path, spec, shared={})
        if loaded:
            data.relation("groups")
        assert data.why_incomparable == ()


def test_fewer_people_than_the_task_has_are_a_reason(tmp_path):
    data = opened(tmp_path, fact(rows=3), size=1_000)
    data.choose(["u", "v"])
    assert data.why_incomparable == ("2 users, fewer than the task's 1,000",)
    enough = opened(tmp_path, fact(rows=3), size=2, limit=1)
    enough.choose(["u", "v", "w"])
    assert enough.why_incomparable == ()


def test_the_sample_has_one_reason(tmp_path):
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample" / "groups.csv").write_text(CSV)
    spec = DataSpec(tables=TABLES, known=(fact(rows=9),), sample="sample", size=9)
    data = data_in("sample", spec, package=tmp_path)
    data.choose(["u"])
    assert data.why_incomparable == ("bundled sample data",)


TEXT = (Path(__file__).parents[2] / "docs" / "known-data.md").read_text()
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
