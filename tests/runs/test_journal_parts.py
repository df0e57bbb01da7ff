import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from builders.runs import make_line, split_journal, write_journal
from hypothesis import given
from hypothesis import strategies as st

from harness.base.errors import DataError, StorageError
from harness.contracts.outcomes import Unreadable
from harness.contracts.records import Done, JournalLine
from harness.runs import journal_index
from harness.runs.journal import JournalWriter, open_journal, recorded
from harness.runs.journal_index import Head, JournalIndex, JournalRecords, check_number, scan
from harness.runs.journal_parts import journal_parts, next_part, part_path
from harness.runs.run_folder import RunFolder

STAGE = "5" * 32
OTHER = "6" * 32
FIRST = "2-verify.jsonl"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    user: str
    text: str = ""


def key(number: int) -> str:
    return f"{number:032x}"


def record(number: int, value: Any = 1, *, user: str = "u", stage: str = STAGE) -> Any:
    outcome = Unreadable(value) if value in ("schema", "no_json") else Done(value)
    return make_line(number, Question(id=str(number), user=user), outcome, stage=stage)


def records(path: Path, stage: str = STAGE, **given: Any) -> JournalRecords[Any, Any]:
    index = JournalIndex(path, stage, **given)
    return JournalRecords(path, stage, JournalLine[Question, Any], index=index)


def read(path: Path, stage: str = STAGE) -> dict[str, Any]:
    found = records(path, stage)
    one_by_one = {each.id: each for each in found}
    assert one_by_one == {each.id: each for each in found.at(range(len(found)))}
    return {id: getattr(one.outcome, "value", "failed") for id, one in one_by_one.items()}


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


def test_the_line_of_the_last_part_is_current(tmp_path: Path) -> None:
    path = tmp_path / FIRST
    write_journal(path, record(1, "schema"), record(2), record(3))
    write_journal(part_path(path, 2), record(1, "late"), record(3, "no_json"))
    write_journal(part_path(path, 1), record(1, "early"), record(2, stage=OTHER))
    write_journal(part_path(path, 10), record(2, "later still"))
    assert read(path) == {"1": "late", "2": "later still", "3": "failed"}
    assert read(path, OTHER) == {"2": 1}
    found = recorded(path, STAGE)
    assert [found[bytes.fromhex(key(number))] is None for number in (1, 2, 3)] == [
        True,
        True,
        False,
    ]
    assert found[bytes.fromhex(key(3))].cause == "no_json"


def test_a_drop_in_a_later_part_takes_back_what_earlier_parts_hold(tmp_path: Path) -> None:
    path = tmp_path / FIRST
    write_journal(path, record(1), record(2), record(4))
    write_journal(part_path(path, 1), record(2, "again"), record(3))
    with JournalWriter(part_path(path, 2), new=True) as journal:
        journal.drop(STAGE, [bytes.fromhex(key(number)) for number in (1, 2, 3)])
        journal.drop(OTHER, [bytes.fromhex(key(4))])
    write_journal(part_path(path, 3), record(3, "back"))
    assert read(path) == {"3": "back", "4": 1}
    assert set(recorded(path, STAGE)) == {bytes.fromhex(key(number)) for number in (3, 4)}
    assert len(records(path, items=2)) == 2


TORN = [b'{"key":"00"', b"x" * 300_000, b"\x00" * 70_000 + b"\n", b'{"key":"00", "torn\n']


@pytest.mark.parametrize("tail", TORN, ids=["part", "long", "zeros", "torn with newline"])
def test_the_torn_end_of_every_part_is_skipped_and_stays(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / FIRST
    for number in range(4):
        write_journal(part_path(path, number), record(number), record(9, f"in {number}"))
        with part_path(path, number).open("ab") as file:
            file.write(tail)
    before = [file.read_bytes() for file in journal_parts(path)]
    whole = {"0": 1, "1": 1, "2": 1, "3": 1, "9": "in 3"}
    assert read(path) == whole
    assert len(recorded(path, STAGE)) == 5
    with open_journal(path) as journal:
        assert journal.path == part_path(path, 4)
        journal.append(record(4))
    assert [file.read_bytes() for file in journal_parts(path)[:-1]] == before
    assert read(path) == {**whole, "4": 1}


def test_a_damaged_line_before_others_names_its_part(tmp_path: Path) -> None:
    path = tmp_path / FIRST
    write_journal(path, record(1), record(2))
    write_journal(part_path(path, 1), record(3), record(4), record(5))
    write_journal(part_path(path, 2), record(6))
    lines = part_path(path, 1).read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"user":"u"', b'"user":"v"')
    part_path(path, 1).write_bytes(b"".join(lines))
    for attempt in (lambda: read(path), lambda: recorded(path, STAGE)):
        with pytest.raises(DataError, match="damaged record") as caught:
            attempt()
        assert caught.value.where == f"{part_path(path, 1)}:2"


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


def test_a_process_that_writes_alone_appends_to_the_first_file_or_makes_a_part(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new" / FIRST
    for number in (1, 2):
        with open_journal(path) as journal:
            journal.append(record(number))
    assert journal_parts(path) == [path]
    write_journal(part_path(path, 7), record(1, "worker"))
    before = part_path(path, 7).read_bytes()
    for number in (8, 9):
        with open_journal(path) as journal:
            journal.append(record(1, f"session {number}"))
        assert journal.path == part_path(path, number)
    assert part_path(path, 7).read_bytes() == before
    assert read(path) == {"1": "session 9", "2": 1}


def test_a_part_without_a_line_is_removed_and_a_first_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / FIRST
    open_journal(path).close()
    assert path.exists()
    part_path(path, 1).touch()
    for _ in range(2):
        journal = open_journal(path)
        assert journal.path.exists()
        journal.close()
        journal.close()
        assert journal_parts(path) == [path, part_path(path, 1)]


def test_nothing_is_appended_to_a_part_of_another_process(tmp_path: Path) -> None:
    part = part_path(tmp_path / FIRST, 1)
    with JournalWriter(part, new=True) as journal:
        journal.append(record(1))
        with pytest.raises(StorageError, match="another process wrote this part") as caught:
            JournalWriter(part, new=True)
        assert caught.value.where == str(part)
    assert read(tmp_path / FIRST) == {"1": 1}
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot write"):
        JournalWriter(tmp_path / "file" / FIRST, new=True)


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


def test_a_user_with_very_many_records_in_several_parts_is_read_in_the_order_of_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / FIRST
    write_journal(path, *(record(number, f"value {number}") for number in range(60, 10, -1)))
    whole = [(each.id, each.outcome.value) for each in records(path)]
    split_journal(path, (3, 20, 41))
    monkeypatch.setattr(journal_index, "_LARGE", 8)
    assert [(each.id, each.outcome.value) for each in records(path)] == whole


class Written(msgspec.Struct, frozen=True):
    """A line of a journal: a record, or with the value "dropped" one that drops a record."""

    number: int
    value: str
    stage: str


LINES = st.lists(
    st.builds(
        Written,
        number=st.integers(0, 7),
        value=st.sampled_from(["a", "b", "c", "schema", "no_json", "dropped"]),
        stage=st.sampled_from([STAGE, STAGE, STAGE, OTHER]),
    ),
    max_size=30,
)


def all_of(path: Path) -> Iterator[Any]:
    """Everything that is read of a journal."""
    for stage in (STAGE, OTHER):
        yield list(recorded(path, stage).items())
        found = records(path, stage)
        yield len(found)
        yield list(found)
        yield list(found.at(reversed(range(len(found)))))
        yield list(found.by_user())
        yield list(found.values())
        yield list(found.with_items(Question))
        yield list(records(path, stage, wanted=lambda head: head.user == "u1"))
    yield [head for _, _, head in scan(path, Head)]
    yield [length for _, length, _ in scan(path, Head)]


@given(lines=LINES, cuts=st.lists(st.integers(0, 30), max_size=4), first=st.booleans())
def test_all_that_is_read_is_the_same_of_one_file_and_of_parts(
    lines: list[Written], cuts: list[int], first: bool
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / FIRST
        with JournalWriter(path) as journal:
            for line in lines:
                if line.value == "dropped":
                    journal.drop(line.stage, [bytes.fromhex(key(line.number))])
                else:
                    user = f"u{line.number % 3}"
                    journal.append(record(line.number, line.value, user=user, stage=line.stage))
        whole = list(all_of(path))
        split_journal(path, [min(cut, len(lines)) for cut in cuts], first=first)
        assert len(journal_parts(path)) == len(cuts) + 1
        assert list(all_of(path)) == whole
