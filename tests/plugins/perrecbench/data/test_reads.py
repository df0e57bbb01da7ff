"""Tasks that share files read each of them once, for a run and for what would be asked in one."""

from collections import Counter

import pytest

from harness.cli.main import main
from harness.data.table import Table

OF_HARD = {
    "userid2history.json": 1,
    "parentasin2item.json": 1,
    "userid2profile.json": 1,
    "item2group_avg_diff_sample-hard.json": 1,
    "held_out-hard.json": 1,
}


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


@pytest.mark.parametrize("how", [(), ("--dry_run",)])
def test_the_three_tasks_of_a_level_read_each_file_once(reads, how):
    words = ("--model", "baseline", "--tasks", "perrec_hard", "--data", "sample", "--limit", "2")
    assert main([*words, "--set", "shots=1", *how]) == 0
    assert reads == OF_HARD


def test_a_task_of_single_behaviours_reads_each_file_once(reads):
    words = ("--model", "baseline", "--tasks", "perrec_rating", "--data", "sample", "--limit", "2")
    assert main([*words, "--dry_run"]) == 0
    assert set(reads.values()) == {1}
