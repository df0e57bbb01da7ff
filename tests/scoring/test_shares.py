"""Tasks scored by several processes have the scores, summaries and errors of one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from builders.processes import lives, wait_until
from builders.runs import make_entry, make_line, make_manifest, make_task, write_journal
from builders.stages import make_benchmark, make_stage

from harness.base.errors import HarnessError, PluginError
from harness.calls.pricing import Price, PriceTable
from harness.contracts.benchmark import Benchmark, Metric
from harness.contracts.model import Usage
from harness.contracts.outcomes import CallFailed, Unreadable
from harness.contracts.records import CallRecord, Done, Records, Score
from harness.contracts.stage import Item
from harness.contracts.task import IntervalSpec
from harness.runs.atomic_files import remove_unfinished
from harness.runs.manifest import RoleEntry, StageEntry, write_manifest
from harness.runs.run_folder import RunFolder
from harness.scoring import processes
from harness.scoring.score_run import score_into, score_task

ANSWER, NOTE = "a" * 32, "b" * 32
USERS = [f"user {number}" for number in range(40)]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that scoring has started."""
    found: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def recorded(*arguments: Any, **named: Any) -> subprocess.Popen[bytes]:
        found.append(start(*arguments, **named))
        return found[-1]

    monkeypatch.setattr(processes.subprocess, "Popen", recorded)
    return found


def scored(folder: RunFolder, benchmark: Benchmark, into: Path, number: int) -> tuple[bytes, bytes]:
    """The scores and the summary of a run's only task, by so many processes."""
    manifest = folder.manifest()
    [entry] = manifest.tasks.values()
    file = into / str(number) / "scores.jsonl"
    summary = score_into(file, folder, manifest, entry.task(), benchmark, processes=number)
    assert [each.name for each in file.parent.iterdir()] == ["scores.jsonl"]
    return file.read_bytes(), msgspec.json.encode(summary)


class Text(Item, frozen=True, kw_only=True):
    number: int


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fails_for: str = ""
    """The user whose scores cannot be made."""

    ends_for: str = ""
    """The user whose scores end a process that is not the first."""


def score(records: Mapping[str, Records[Any, Any]], options: Options) -> Iterator[Score]:
    notes = {user: len(found) for user, found in records["note"].by_user()}
    for user, found in records["answer"].by_user():
        if user == options.fails_for:
            raise ZeroDivisionError(user)
        if user == options.ends_for and sys.argv[0] == processes.__file__:
            os._exit(9)
        for record in found:
            slices = {"notes": str(notes.get(user, 0)), "letter": record.id[-1]}
            if isinstance(record.outcome, Done):
                lost = {"right": 0.1 * (record.item.number % 4)} if record.item.number % 3 else None
                yield Score(
                    id=record.id, user=user, values={"right": 1 / (1 + record.item.number)},
                    lost=lost or msgspec.UNSET, counts={"answers": 1}, slices=slices,
                )  # fmt: skip
            else:
                missing = {"right": f"note/{record.outcome.cause}"}
                yield Score(id=record.id, user=user, missing=missing, slices=slices)


BENCHMARK = make_benchmark(
    make_stage("note", Text, str, roles=("writer",)),
    make_stage("answer", Text, str, roles=("candidate",)),
    score=score,
    scored_by_user=("note", "answer"),
    metrics={"right": Metric(description="", missing="counted")},
    options=Options,
)


def made_run(path: Path, **options: str) -> RunFolder:
    """A run in which users have from no record to many, with failures and all that is counted."""
    draw = Random(7)
    folder = RunFolder(path)
    task = msgspec.structs.replace(
        make_task("toy", metrics=("right",), options=options), interval=IntervalSpec(draws=50)
    )
    stages = (
        StageEntry(name="note", key=NOTE, file="1-note.jsonl", items=30),
        StageEntry(name="answer", key=ANSWER, file="2-answer.jsonl", items=200),
    )
    entry = make_entry(task, *stages, folder=folder.task("toy").name)
    roles = {
        role: RoleEntry(name=role, identity={"model": {"kind": "openai", "name": role}})
        for role in ("candidate", "writer")
    }
    prices = PriceTable(models={"*": Price(input=3.0, output=7.0)})
    for stage in stages:
        lines = (line(draw, stage.key, number) for number in range(stage.items or 0))
        write_journal(folder.task("toy") / stage.file, *lines)
    manifest = make_manifest(tasks={"toy": entry}, roles=roles, prices=prices)
    write_manifest(folder.manifest_file, manifest)
    return folder


def line(draw: Random, key: str, number: int) -> Any:
    failed = draw.choice((None, None, CallFailed("timeout"), Unreadable("no_json")))
    usage = Usage(prompt_tokens=draw.randrange(99), completion_tokens=draw.randrange(99))
    call = CallRecord(
        role="candidate" if key == ANSWER else "writer", prompt="p", key=str(number),
        source=draw.choice(("model", "store")), usage=draw.choice((usage, None)),
        wasted=draw.choice((usage, None)), finish="stop", untold=draw.randrange(2),
        rung=draw.choice(("strict", "fenced", None)), asked_schema=draw.random() < 0.5,
        failure=failed,
    )  # fmt: skip
    item = Text(id=f"{number}-{draw.choice('abc')}", user=draw.choice(USERS), number=number)
    calls = [call] * draw.randrange(3)
    return make_line(number, item, failed or Done("yes"), stage=key, calls=calls)


def test_all_that_is_counted_is_the_same(tmp_path, started, monkeypatch):
    folder = made_run(tmp_path / "run")
    one = scored(folder, BENCHMARK, tmp_path, 1)
    assert scored(folder, BENCHMARK, tmp_path, 2) == one
    assert [process.returncode for process in started] == [0]
    # Shares that no process can take are scored here.
    monkeypatch.setattr(processes.sys, "executable", "/nothing/here")
    for number in (3, 7, 500):
        assert scored(folder, BENCHMARK, tmp_path, number) == one


@pytest.mark.parametrize(("user", "elsewhere"), [("user 2", False), ("user 0", True)])
def test_an_error_of_a_benchmark_is_that_of_one_process(tmp_path, started, user, elsewhere):
    folder = made_run(tmp_path / "run", fails_for=user)

    def error(number: int) -> HarnessError:
        with pytest.raises(PluginError, match="failed to score") as caught:
            scored(folder, BENCHMARK, tmp_path, number)
        assert not list((tmp_path / str(number)).iterdir())
        return caught.value

    assert f"ZeroDivisionError: {user}" in str(error(1))
    assert str(error(3)) == str(error(1))
    assert len(started) == 2
    assert (1 in {process.returncode for process in started}) is elsewhere


def test_what_a_process_did_not_finish_is_scored_here(tmp_path, started, caplog):
    folder = made_run(tmp_path / "run")
    whole = scored(folder, BENCHMARK, tmp_path, 1)
    last = msgspec.json.decode(whole[0].splitlines()[-1])["user"]
    folder = made_run(tmp_path / "other", ends_for=last)
    scores, _ = scored(folder, BENCHMARK, tmp_path, 3)
    assert scores == whole[0]
    assert [process.returncode for process in started] == [0, 9]
    said = "a process that was to score a part ended with 9: this one scores it"
    assert caplog.messages == [said]


def test_what_is_small_or_says_nothing_is_scored_by_one_process(tmp_path, started):
    folder = made_run(tmp_path / "run")
    silent = replace(BENCHMARK, scored_by_user=())
    scored(folder, silent, tmp_path, 3)
    assert not started
    score_task(folder, folder.manifest(), "toy", BENCHMARK)
    assert not started


def slow(here: bool, file: Any) -> int:
    """Ctrl-C here, and no end elsewhere."""
    if here:
        time.sleep(1)
        raise KeyboardInterrupt
    time.sleep(600)
    return 0


def test_ctrl_c_ends_all_processes(tmp_path, started):
    with pytest.raises(KeyboardInterrupt), (tmp_path / "file").open("wb") as file:
        processes.write_shares(slow, [True, False, False], file, tmp_path)
    assert [process.returncode for process in started] == [-signal.SIGKILL] * 2
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def noted(share: Path, file: Any) -> int:
    (share / str(os.getpid())).touch()
    time.sleep(600)
    return 0


KILLED = """
import pathlib, sys
sys.path[:] = sys.argv[2].split(":")
from harness.scoring.processes import write_shares
from test_shares import noted
folder = pathlib.Path(sys.argv[1])
write_shares(noted, [folder] * 3, open("/dev/null", "wb"), folder)
"""


def test_processes_end_with_a_killed_command(tmp_path):
    (tmp_path / "pids").mkdir()
    path = ":".join([str(Path(__file__).parent), *(path for path in sys.path if path)])
    command = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "pids"), path])
    wait_until(lambda: len([one for one in (tmp_path / "pids").iterdir() if one.is_file()]) == 3)
    command.kill()
    command.wait()
    pids = [int(one.name) for one in (tmp_path / "pids").iterdir() if one.is_file()]
    wait_until(lambda: not any(map(lives, pids)))
    assert len(pids) == 3
    remove_unfinished(tmp_path / "pids")
    assert {each.name for each in (tmp_path / "pids").iterdir()} == {*map(str, pids)}
