"""Tasks that share files read each of them once, for a run and for what would be asked in one."""

from collections import Counter

import pytest

from harness.cli.main import main
from harness.data.read import Table


@pytest.fixture
def reads(monkeypatch, tmp_path):
    """How often each file was read."""
    monkeypatch.chdir(tmp_path)
    found = Counter()
    rows = Table.rows

    def counted(table):
        found.update(source.path.name for source in table.sources)
        return rows(table)

    monkeypatch.setattr(Table, "rows", counted)
    return found


@pytest.mark.parametrize(
    ("tasks", "more", "files"),
    [
        ("perrec_hard", ("--set", "shots=1"), 5),
        ("perrec_hard", ("--set", "shots=1", "--dry_run"), 5),
        ("perrec_rating", ("--dry_run",), 3),
    ],
)
def test_tasks_read_each_file_once(reads, tasks, more, files):
    words = ("--model", "baseline", "--tasks", tasks, "--data", "sample", "--limit", "2")
    assert main([*words, *more]) == 0
    assert (len(reads), set(reads.values())) == (files, {1})
