import asyncio
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders.disks import room_for
from builders.runs import Question, make_line, write_journal

from harness.base.errors import DataError, StorageError
from harness.contracts.model import TokenLogprob
from harness.contracts.outcomes import CallFailed, NoVerdict, Unreadable
from harness.contracts.records import CallRecord, Done, JournalLine
from harness.runs.journal import (
    JournalIndex,
    JournalRecords,
    JournalWriter,
    check_number,
    holds_non_finite,
    journal_parts,
    next_part,
    part_path,
    recorded,
)
from harness.runs.run_folder import RunFolder

STAGE = "5" * 32


def key(number: int) -> str:
    return f"{number:032x}"


def record(
    number: int, user: str, id: str, *, value: Any = 1, outcome: Any = None, stage: str = STAGE
) -> JournalLine[Question, Any]:
    outcome = Done(value) if outcome is None else outcome
    return make_line(number, Question(id=id, user=user), outcome, stage=stage)


def read(path: Path, stage: str = STAGE) -> list[tuple[str, str, Any]]:
    rows = JournalRecords(path, stage, JournalLine[Question, Any])
    return [(each.user, each.id, each.outcome.value) for each in rows]


def test_a_line_is_json_with_the_fields_in_their_order(tmp_path: Path) -> None:
    write_journal(tmp_path / "1-a.jsonl", record(1, "u", "i", value=[1e-05]))
    text = (tmp_path / "1-a.jsonl").read_text()
    assert text.startswith(f'{{"key":"{key(1)}","stage":"{STAGE}","user":"u","id":"i","item":{{')
    assert json.loads(text)["outcome"] == {"type": "done", "value": [0.00001]}
    assert text.endswith("}\n")


def test_what_is_recorded_distinguishes_what_ended_without_an_answer(tmp_path: Path) -> None:
    def asked(*failures: Any) -> Any:
        return [CallRecord(role="r", prompt="p", key="k", failure=each) for each in failures]

    panel = NoVerdict("no_quorum", "1 of 3 answered", behind=("schema", "timeout"))
    for number, outcome, calls in (
        (1, CallFailed("connection"), asked(CallFailed("connection"))),
        (2, CallFailed("overflow"), asked(CallFailed("overflow"))),
        (3, panel, asked(None, Unreadable("schema"), CallFailed("timeout"))),
        (4, Done(1), asked(None, CallFailed("rate_limited"), None)),
        (5, NoVerdict("server_error"), ()),  # of a judge that asks no model of the harness
        (6, Unreadable("timeout"), asked(Unreadable("timeout"))),  # a cause of the benchmark's own
        (7, Done({"type": "call_failed", "cause": "timeout"}), asked(None)),
    ):
        line = msgspec.structs.replace(record(number, "u", "a", outcome=outcome), calls=(*calls,))
        write_journal(tmp_path / str(number), line)
        for lacking in filter(None, recorded(tmp_path / str(number), STAGE).values()):
            assert lacking.checksum == json.loads((tmp_path / str(number)).read_text())["crc32"]
    found = {
        number: one and (one.failed, one.unanswered)
        for number in range(1, 8)
        for one in recorded(tmp_path / str(number), STAGE).values()
    }
    assert found == {
        1: (True, True), 2: (True, False), 3: (True, True), 4: (False, True), 5: (True, True),
        6: (True, False), 7: None,
    }  # fmt: skip


def test_logprobs_that_json_lacks_are_refused(tmp_path: Path) -> None:
    def asked(logprob: float) -> JournalLine[Question, Any]:
        tokens = (TokenLogprob(token="yes", logprob=logprob),)
        call = CallRecord(role="candidate", prompt="ask", key=key(9), logprobs=tokens)
        return msgspec.structs.replace(record(1, "u", "a"), calls=(call,))

    with JournalWriter(tmp_path / "j") as journal:
        journal.append(asked(-0.5))
        with pytest.raises(ValueError, match=r"record 'a' cannot be written: .* NaN or infinite"):
            journal.append(asked(float("-inf")))
    assert read(tmp_path / "j") == [("u", "a", 1)]


def test_holds_non_finite_looks_into_keys_and_sets() -> None:
    assert holds_non_finite({float("nan"): 1})
    assert holds_non_finite({float("inf")})
    assert not holds_non_finite([1, 2.0, None, "nan", b"x", True, {"a": {3.0}}])


async def test_lines_reach_the_file_soon_after_they_were_appended_and_many_at_once(
    tmp_path: Path,
) -> None:
    journal = JournalWriter(tmp_path / "j")
    journal.append(record(0, "u", "0"))
    assert (tmp_path / "j").read_bytes() == b""
    for count in (1, 2):
        await asyncio.sleep(0.3)
        assert len(read(tmp_path / "j")) == count
        journal.append(record(count, "u", str(count)))
    for number in range(3, 259):
        journal.append(record(number, "u", str(number)))
    assert len(read(tmp_path / "j")) == 258
    journal.close()
    assert len(read(tmp_path / "j")) == 259


async def test_what_fails_at_the_timer_is_raised_at_every_later_call_and_no_half_line_stays(
    tmp_path: Path,
) -> None:
    journal = JournalWriter(tmp_path / "j")
    journal.append(record(1, "u", "a"))
    journal.flush()
    sound = (tmp_path / "j").read_bytes()
    with room_for(len(sound) + 20):
        journal.append(record(2, "u", "b"))
        await asyncio.sleep(0.3)
    assert (tmp_path / "j").read_bytes() == sound
    for use in (lambda: journal.append(record(3, "u", "c")), journal.flush, journal.close):
        with pytest.raises(StorageError, match="File too large"):
            use()
    assert read(tmp_path / "j") == [("u", "a", 1)]


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        JournalWriter(tmp_path / "file" / "1-a.jsonl")


FIRST = "2-verify.jsonl"


def numbered(number: int, value: Any = 1, *, user: str = "u") -> JournalLine[Question, Any]:
    return record(number, user, str(number), value=value)


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


def test_parts_are_numbered_from_1_and_bounded_and_a_stage_named_like_one_gets_another_name(
    tmp_path: Path,
) -> None:
    path = tmp_path / FIRST
    for empty in (path, tmp_path / "none" / FIRST):
        assert (journal_parts(empty), next_part(empty)) == ([], 1)
    path.touch()
    assert next_part(path) == 1
    assert part_path(path, 0) == path
    assert part_path(path, 41).name == "2-verify.0041.jsonl"
    part_path(path, 41).touch()
    assert next_part(path) == 42
    for number in (-1, 1_000_000):
        with pytest.raises(ValueError, match="no part"):
            part_path(path, number)
    folder = RunFolder(tmp_path)
    assert folder.journal("t", 2, "verify.0007").name.startswith("2-verify.0007~")
    for plain in ("verify", "verify.7", "verify.v0007", "0007", "verify.0000"):
        assert folder.journal("t", 2, plain).name == f"2-{plain}.jsonl"


@pytest.mark.parametrize("large", [4096, 0], ids=["held", "ordered first"])
def test_a_line_damaged_after_it_was_indexed_names_its_part(
    tmp_path: Path, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.runs.journal._LARGE", large)
    path = tmp_path / FIRST
    write_journal(path, numbered(1))
    write_journal(part_path(path, 3), numbered(2), numbered(3))
    found = records(path)
    whole = part_path(path, 3).read_bytes()
    part_path(path, 3).write_bytes(whole[:-20] + b"\x00" * 19 + b"\n")
    for attempt in (lambda: list(found), lambda: list(found.at(range(3)))):
        with pytest.raises(DataError, match="damaged record") as caught:
            attempt()
        assert caught.value.where == f"{part_path(path, 3)}:2"


def test_a_record_of_another_type_names_its_part(tmp_path: Path) -> None:
    path = tmp_path / FIRST
    write_journal(path, numbered(1), numbered(2))
    write_journal(part_path(path, 1), numbered(3), numbered(4), numbered(5, "word"))
    with pytest.raises(DataError, match="does not fit the types") as caught:
        list(JournalRecords(path, STAGE, JournalLine[Question, int]))
    assert caught.value.where == f"{part_path(path, 1)}:3"


def test_missing_records_name_all_the_parts(tmp_path: Path) -> None:
    path = tmp_path / FIRST
    for place in (f"{path}", f"{path}", f"{path} to 2-verify.0003.jsonl"):
        with pytest.raises(DataError, match="the journal lacks records") as caught:
            check_number(path, 1, 2)
        assert caught.value.where == place
        write_journal(path if not path.exists() else part_path(path, 3), numbered(1))
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
        write_journal(part_path(path, part), *(numbered(n, user=f"u{n % 7}") for n in mine))
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
