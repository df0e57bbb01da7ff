import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders.disks import room_for
from builders.runs import Question, make_line, write_journal

from harness.base.errors import StorageError
from harness.contracts.model import TokenLogprob
from harness.contracts.outcomes import CallFailed, NoVerdict, Unreadable
from harness.contracts.records import CallRecord, Done, JournalLine
from harness.runs.journal import (
    JournalRecords,
    JournalWriter,
    LackingRecord,
    holds_non_finite,
    recorded,
)

STAGE = "5" * 32
OTHER = "6" * 32


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


def test_what_is_recorded_distinguishes_failures_from_values(tmp_path: Path) -> None:
    one, two, three = (bytes.fromhex(key(number)) for number in (1, 2, 3))
    write_journal(
        tmp_path / "j",
        record(1, "u", "a"),
        record(2, "u", "b", outcome=Unreadable("schema")),
        record(3, "u", "c"),
        record(3, "u", "c", outcome=Unreadable("schema")),
        record(4, "u", "d", stage=OTHER),
    )
    second, fourth = (
        LackingRecord("unreadable", "schema", json.loads(line)["crc32"], unanswered=False)
        for line in (tmp_path / "j").read_text().splitlines()
        if "unreadable" in line
    )
    assert recorded(tmp_path / "j", STAGE) == {one: None, two: second, three: fourth}


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


async def test_lines_reach_the_file_soon_after_they_were_appended(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path / "j")
    journal.append(record(1, "u", "a"))
    assert (tmp_path / "j").read_bytes() == b""
    await asyncio.sleep(0.3)
    assert read(tmp_path / "j") == [("u", "a", 1)]
    journal.append(record(2, "u", "b"))
    await asyncio.sleep(0.3)
    assert len(read(tmp_path / "j")) == 2
    journal.close()


async def test_256_lines_are_written_at_once(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path / "j")
    for number in range(257):
        journal.append(record(number, "u", str(number)))
    assert len(read(tmp_path / "j")) == 256
    journal.close()
    assert len(read(tmp_path / "j")) == 257


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
    with pytest.raises(StorageError, match="File too large"):
        journal.append(record(3, "u", "c"))
    with pytest.raises(StorageError, match="File too large"):
        journal.flush()
    with pytest.raises(StorageError, match="File too large"):
        journal.close()
    assert read(tmp_path / "j") == [("u", "a", 1)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_reported_at_close_with_what_to_do() -> None:
    journal = JournalWriter(Path("/dev/full"))
    journal.append(record(1, "u", "a"))
    with pytest.raises(StorageError, match="No space left on device") as caught:
        journal.close()
    assert "free some space" in str(caught.value)


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        JournalWriter(tmp_path / "file" / "1-a.jsonl")
