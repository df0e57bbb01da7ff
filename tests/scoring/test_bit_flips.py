"""A flipped bit in what a run left is found and named, or changes nothing that is read."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from harness.base.errors import HarnessError
from harness.contracts.records import JournalLine
from harness.registry import load_plugins
from harness.runs.journal import JournalIndex, JournalRecords
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import finished_task
from harness.scoring.score_run import score_into

FILES = {
    "manifest.json": "manifest.json",
    "interests/summary.json": "summary.json",
    "interests/scores.jsonl": "scores.jsonl:",
    "interests/1-name.jsonl": "1-name.jsonl",
    "interests/2-support.jsonl": "2-support.jsonl",
}
"""The files of a run, and what an error about each names; the number of a line follows a colon."""


def all_of(path: Path, scratch: Path) -> Iterator[bytes]:
    """Everything that commands read of a run, and what scoring it again gives."""
    encode = msgspec.json.Encoder(enc_hook=str).encode
    folder = RunFolder(path)
    manifest = folder.manifest()
    yield encode(manifest)
    benchmark = load_plugins().benchmark("interests")
    task = finished_task(folder, manifest, "interests", benchmark, label="m")
    yield encode(task.summary)
    yield from (encode(score) for score in task.scores())
    for stage in task.entry.stages:
        file = path / task.entry.folder / stage.file
        index = JournalIndex(file, stage.key, items=stage.items)
        lines: JournalRecords[Any, Any] = JournalRecords(
            file, stage.key, JournalLine[Any, Any], index=index
        )
        yield from (encode(line) for line in lines)
        yield from (encode(record) for record in task.records(stage.name))
    yield encode(score_into(scratch / "scores.jsonl", folder, manifest, task.task, benchmark))


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_found_and_its_file_named(small_run: Path, tmp_path: Path, name: str):
    (tmp_path / "scratch").mkdir()
    assert list(all_of(small_run, tmp_path / "scratch"))
    copy = Path(shutil.copytree(small_run, tmp_path / "run"))
    whole, draw = (copy / name).read_bytes(), Random(name)
    for _ in range(40):
        changed = bytearray(whole)
        changed[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        (copy / name).write_bytes(changed)
        with pytest.raises(HarnessError) as caught:
            list(all_of(copy, tmp_path / "scratch"))
        assert FILES[name] in str(caught.value.where)
        assert caught.value.hint
