import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from builders.runs import Question, make_line, write_journal
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.base.errors import DataError
from harness.contracts.outcomes import Unreadable
from harness.contracts.records import Done, JournalLine
from harness.runs.journal import (
    JournalIndex,
    JournalRecords,
    check_number,
    journal_parts,
    next_part,
    part_path,
)
from harness.runs.run_folder import RunFolder

STAGE = "5" * 32
FIRST = "2-verify.jsonl"


def record(number: int, value: Any = 1, *, user: str = "u", stage: str = STAGE) -> Any:
    outcome = Unreadable(value) if value in ("schema", "no_json") else Done(value)
    return make_line(number, Question(id=str(number), user=user), outcome, stage=stage)


def records(path: Path, stage: str = STAGE, **given: Any) -> JournalRecords[Any, Any]:
    index = JournalIndex(path, stage, **given)
    return JournalRecords(path, stage, JournalLine[Question, Any], index=index)


def test_the_first_file_comes_first_and_then_the_parts_by_number(tmp_path: Path) -> None:
    parts = [
        FIRST, "2-verify.0001.jsonl", "2-verify.0007.jsonl", "2-verify.0010.jsonl",
        "2-verify.9999.jsonl", "2-verify.10000.jsonl", "2-verify.123456.jsonl",
    ]  # fmt: skip
    others = [
        "2-verify.0000.jsonl", "2-verify.7.jsonl", "2-verify.00007.jsonl", "2-verify.v2.jsonl",
        "2-verify.1234567.jsonl", "2-verify.0007.0001.jsonl", "2-verify.٠٠٠٧.jsonl",
        "2-verify.0007.json", "2-verify..jsonl", "12-verify.0001.jsonl", "2-verify2.0001.jsonl",
        ".2-verify.0001.jsonl.0a.tmp", "scores.jsonl",
    ]  # fmt: skip
    for name in [*reversed(parts), *others]:
        (tmp_path / name).touch()
    assert [file.name for file in journal_parts(tmp_path / FIRST)] == parts
    assert next_part(tmp_path / FIRST) == 123457
    (tmp_path / FIRST).unlink()
    assert [file.name for file in journal_parts(tmp_path / FIRST)] == parts[1:]


def test_parts_are_numbered_from_1_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / FIRST
    assert (journal_parts(path), next_part(path)) == ([], 1)
    assert (journal_parts(tmp_path / "none" / FIRST), next_part(tmp_path / "none" / FIRST)) == (
        [],
        1,
    )
    path.touch()
    assert next_part(path) == 1
    assert part_path(path, 0) == path
    assert part_path(path, 41).name == "2-verify.0041.jsonl"
    part_path(path, 41).touch()
    assert next_part(path) == 42
    for number in (-1, 1_000_000):
        with pytest.raises(ValueError, match="no part"):
            part_path(path, number)


NAMES = st.text("aA.01~-_/é", min_size=1, max_size=12) | st.from_regex(
    r"a(\.0*1?[0-9]{1,6}){0,3}", fullmatch=True
)


@settings(max_examples=40)
@given(one=NAMES, other=NAMES, parts=st.lists(st.integers(0, 999_999), min_size=1, max_size=4))
def test_no_journal_of_a_stage_is_a_part_of_another(one: str, other: str, parts: list[int]) -> None:
    if one == other:
        return
    with TemporaryDirectory() as folder:
        run = RunFolder(Path(folder))
        mine, others = run.journal("t", 2, one), run.journal("t", 2, other)
        mine.parent.mkdir()
        for number in (0, *parts):
            part_path(others, number).touch()
        assert journal_parts(mine) == []


def test_a_stage_named_like_a_part_gets_another_name_and_others_keep_theirs(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.journal("t", 2, "verify.0007").name.startswith("2-verify.0007~")
    for plain in ("verify", "verify.7", "verify.v0007", "0007", "verify.0000"):
        assert folder.journal("t", 2, plain).name == f"2-{plain}.jsonl"


def test_a_line_damaged_after_it_was_indexed_names_its_part(tmp_path: Path) -> None:
    path = tmp_path / FIRST
    write_journal(path, record(1))
    write_journal(part_path(path, 3), record(2), record(3))
    found = records(path)
    whole = part_path(path, 3).read_bytes()
    part_path(path, 3).write_bytes(whole[:-20] + b"\x00" * 19 + b"\n")
    for attempt in (lambda: list(found), lambda: list(found.at(range(3)))):
        with pytest.raises(DataError, match="damaged record") as caught:
            attempt()
        assert caught.value.where == f"{part_path(path, 3)}:2"


def test_a_record_of_another_type_names_its_part(tmp_path: Path) -> None:
    path = tmp_path / FIRST
    write_journal(path, record(1), record(2))
    write_journal(part_path(path, 1), record(3), record(4), record(5, "word"))
    with pytest.raises(DataError, match="does not fit the types") as caught:
        list(JournalRecords(path, STAGE, JournalLine[Question, int]))
    assert caught.value.where == f"{part_path(path, 1)}:3"


def test_missing_records_name_all_the_parts(tmp_path: Path) -> None:
    path = tmp_path / FIRST
    for place in (f"{path}", f"{path}", f"{path} to 2-verify.0003.jsonl"):
        with pytest.raises(DataError, match="the journal lacks records") as caught:
            check_number(path, 1, 2)
        assert caught.value.where == place
        write_journal(path if not path.exists() else part_path(path, 3), record(1))
    path.unlink()
    with pytest.raises(DataError, match="the journal lacks records") as caught:
        records(path, items=2)
    assert caught.value.where == str(part_path(path, 3))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts the open files of Linux")
def test_few_files_are_open_however_many_parts_there_are(tmp_path: Path) -> None:
    path = tmp_path / FIRST
    numbers = range(120)
    for part in range(1, 41):
        mine = numbers[part - 1 :: 40]
        write_journal(part_path(path, part), *(record(n, user=f"u{n % 7}") for n in mine))
    found = records(path)
    before = open_files()
    most = 0
    seen = []
    for one, other in zip(found, found.at(range(len(found))), strict=True):
        most = max(most, open_files() - before)
        seen += [one.id, other.id]
    assert sorted(seen) == sorted([str(n) for n in numbers] * 2)
    assert most <= 34
    assert open_files() == before
