"""Tables of papers, found by the names of their files."""

import sys

import msgspec
import pytest

from harness.contracts.published import PublishedTables


@pytest.fixture
def tables(tmp_path, monkeypatch):
    folder = tmp_path / "acme_paper" / "published"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("")
    (folder / "notes.txt").write_text("no table")
    table = {
        "source": "Table 1",
        "title": "scores",
        "units": "per cent",
        "columns": ["model", "f1"],
    }
    for name, rows in {"second": [], "first": [["X", 50.5], ["Y", None]]}.items():
        (folder / f"{name}.json").write_bytes(msgspec.json.encode({**table, "rows": rows}))
    monkeypatch.syspath_prepend(tmp_path)
    yield PublishedTables("acme_paper")
    sys.modules.pop("acme_paper", None)


def test_tables_are_named_after_their_files_and_read_by_column(tables):
    assert tables.names() == ("first", "second")
    assert tables.read("first").dicts() == [{"model": "X", "f1": 50.5}, {"model": "Y", "f1": None}]
    sheet = tables.read("first").sheet(digits=2)
    assert sheet.title == "Published, Table 1: scores (per cent)"
    assert (sheet.columns, sheet.rows[1], sheet.digits) == (("model", "f1"), ("Y", None), 2)
