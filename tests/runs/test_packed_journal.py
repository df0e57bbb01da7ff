"""Journals that were packed: the same records, whatever happens to the file or in between."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from builders.runs import Question, make_line, write_sealed

from harness import evaluate
from harness.base.errors import DataError
from harness.contracts.outcomes import Unreadable
from harness.contracts.records import Done, JournalLine
from harness.runs import journal, packed_file
from harness.runs.journal import (
    JournalRecords,
    JournalWriter,
    journal_parts,
    open_journal,
    pack_journal,
    part_path,
    recorded,
)

STAGE, OLDER = "5" * 32, "6" * 32


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every journal is packed, into frames of a few lines."""
    monkeypatch.setattr(journal, "_PACK_FROM", 1)
    monkeypatch.setattr(packed_file, "_FRAME", 700)


def record(number: int, value: Any, *, stage: str = STAGE, outcome: Any = None) -> Any:
    item = Question(id=f"{number:02}", user=f"u{number % 3}")
    return make_line(number, item, outcome or Done(value), stage=stage)


def read(path: Path, stage: str = STAGE) -> list[tuple[str, Any]]:
    rows = JournalRecords(path, stage, JournalLine[Question, Any])
    return [(each.id, getattr(each.outcome, "value", each.outcome)) for each in rows]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal in three files: records of two stages, of which some were replaced or dropped."""
    path = tmp_path / "1-a.jsonl"
    with JournalWriter(path) as first:
        for number in range(12):
            first.append(record(number, "old", stage=OLDER))
            first.append(record(number, number))
    with JournalWriter(part_path(path, 1), new=True) as second:
        for number in (3, 4):
            second.append(record(number, -number))
        second.drop(STAGE, [bytes.fromhex(record(5, 5).key)])
    with JournalWriter(part_path(path, 2), new=True) as third:
        third.append(record(4, "newest"))
        third.append(record(6, None, outcome=Unreadable("schema")))
    return path


def test_a_packed_journal_has_the_same_records_in_one_file_that_zstd_reads(path: Path) -> None:
    before, older, known = read(path), read(path, OLDER), recorded(path, STAGE)
    assert ("04", "newest") in before and len(before) == 11
    pack_journal(path, STAGE)
    (packed,) = path.parent.iterdir()
    assert packed.name == "1-a.jsonl.zst"
    assert (read(path), read(path, OLDER), recorded(path, STAGE)) == (before, older, known)
    with packed.open("rb") as file:
        plain = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        lines = io.BufferedReader(plain).readlines()
    assert len(lines) == 12 + 11, "what was replaced or dropped is gone"
    assert all(line.startswith(b'{"key":"') for line in lines)
    index = journal.JournalIndex(path, STAGE)
    backwards = JournalRecords(path, STAGE, index=index).at(range(10, -1, -1))
    assert {one.id for one in backwards} == dict(before).keys()


def test_what_comes_later_is_a_part_behind_the_packed_file_and_is_packed_with_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack_journal(path, STAGE)
    with open_journal(path) as later:
        later.append(record(6, "read"))
    assert [file.name for file in journal_parts(path)] == ["1-a.jsonl.zst", "1-a.0001.jsonl"]
    before = read(path)
    assert dict(before)["06"] == "read"
    monkeypatch.setattr(journal, "_PACK_FROM", 1 << 20)
    pack_journal(path, STAGE)
    assert len(journal_parts(path)) == 2, "a small part is not worth it"
    monkeypatch.setattr(journal, "_PACK_FROM", 1)
    pack_journal(path, STAGE)
    assert [file.name for file in path.parent.iterdir()] == ["1-a.jsonl.zst"]
    assert read(path) == before


@pytest.mark.parametrize("removed", range(3))
def test_a_crash_while_the_files_are_removed_changes_no_record(
    path: Path, removed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read(path)
    unlink, left = Path.unlink, [removed]

    def dies(file: Path, **more: Any) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        unlink(file, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", dies)
        with pytest.raises(KeyboardInterrupt):
            pack_journal(path, STAGE)
    assert read(path) == before
    with open_journal(path) as later:
        later.append(record(7, "later"))
    assert dict(read(path)) == {**dict(before), "07": "later"}


def test_a_damaged_packed_file_never_gives_other_records(path: Path) -> None:
    before = read(path)
    pack_journal(path, STAGE)
    packed = journal_parts(path)[0]
    whole = packed.read_bytes()
    damages = [whole[:end] for end in range(len(whole))]
    for at in range(len(whole)):
        damages.append(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
    refused = 0
    for damaged in damages:
        packed.write_bytes(damaged)
        try:
            assert read(path) == before
        except DataError as error:
            assert error.where is not None and error.where.startswith(str(packed))
            refused += 1
    # Nobody reads the 8 bytes before the table, and zstd ignores two bits of each frame.
    assert len(damages) - refused <= 8 + 2 * whole.count(b"\x28\xb5\x2f\xfd")


def test_a_line_that_does_not_fit_is_named_by_its_number_in_the_unpacked_text(path: Path) -> None:
    pack_journal(path, STAGE)
    with pytest.raises(DataError, match="does not fit") as caught:
        list(JournalRecords(path, STAGE, JournalLine[Question, int]))
    # Twelve lines of the other stage come first; the fourth of user u0 has no number.
    assert caught.value.where is not None
    assert caught.value.where.startswith(f"{path}.zst:")


def test_a_run_that_is_done_is_packed_and_shown_scored_and_repeated_as_before(
    tmp_path: Path, printed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(place: str, **more: Any) -> Any:
        return evaluate(
            "interests", model="baseline", judge="lexical", data="sample", limit=5,
            output_path=tmp_path / place, reuse="run", **more,
        )  # fmt: skip

    monkeypatch.setattr(journal, "_PACK_FROM", 1 << 24)
    plain = run("plain")
    monkeypatch.setattr(journal, "_PACK_FROM", 1)
    packed = run("packed")
    names = sorted(file.name for file in (packed.folder / "interests").iterdir())
    assert names == ["1-name.jsonl.zst", "2-support.jsonl.zst", "scores.jsonl", "summary.json"]
    words = ("show", "--sample", "person-23")
    outs = [printed(*words, str(one.folder)).out for one in (plain, packed)]
    assert outs[0].replace(str(plain.folder), str(packed.folder)) == outs[1]
    scores = (packed.folder / "interests" / "scores.jsonl").read_bytes()
    printed("score", str(packed.folder))
    assert (packed.folder / "interests" / "scores.jsonl").read_bytes() == scores
    manifest = json.loads((packed.folder / "manifest.json").read_bytes())
    write_sealed(packed.folder / "manifest.json", {**manifest, "format": 2})
    again = run("packed", resume=packed.folder)
    assert again.manifest.format == 3, "an older harness would miss the packed records"
    assert again.summaries == packed.summaries
    assert sorted(file.name for file in (packed.folder / "interests").iterdir()) == names
