"""`harness show`: the results, failures and samples of a run; without a run, the runs there are."""

import json
import os
import re
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders.runs import make_line, write_journal, write_sealed

from harness.base.errors import DataError, UsageError
from harness.contracts.model import Message
from harness.contracts.records import CallRecord, Done
from harness.runs.manifest import Manifest, Session
from harness.runs.run_folder import RunFolder


def printable(text):
    return not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


def test_results_and_what_is_not_finished(scored_run, shown):
    out = shown(str(scored_run.path))
    head = out.partition("\n")[0]
    assert "m-1, begun " in head and head.endswith(", killed")
    assert "task later: not finished: name" in out
    assert "2.000" in out
    assert "task toy" not in out


def test_a_finished_task_without_a_summary_says_what_makes_one(kept_run, shown):
    assert "task toy: not scored: use `harness score RUN`" in shown(str(kept_run.path))


def test_an_old_summary_of_a_task_that_is_at_work_again_is_not_shown(scored_run, shown):
    scored_run.summary("later").write_bytes(scored_run.summary("toy").read_bytes())
    document: Any = json.loads(shown(str(scored_run.path), "--json"))
    assert document["status"] == "running"
    assert [each["task"] for each in document["summaries"]] == ["toy"]
    assert document["unfinished"] == {"later": ["name"]}
    document = json.loads(shown(str(scored_run.path), "--json", "--task", "later"))
    assert document["summaries"] == []


def test_failures_one_a_line_without_control_characters(kept_run, shown):
    out = shown(str(kept_run.path), "--failures")
    assert "toy/name  bob/1  user bob  no_json: no bracket in \\x1b]0;x\\x07it" in out
    assert "toy/name  cid/1  user cid  ValueError: ValueError: odd\\x1b[2J" in out
    assert "2 failures" in out
    assert "ann" not in out
    assert printable(out)
    assert shown(str(kept_run.path), "--failures", "--task", "later") == "no failures\n"


def test_one_sample_whole_and_a_failed_one_with_why(kept_run, shown):
    out = shown(str(kept_run.path), "--sample", "ann/1", "--task", "toy")
    assert "toy / name / ann/1  (user ann)" in out
    for part in (
        '"history": "cats"',
        "candidate, prompt name, from model, ended by stop, read as brackets, 12 + 7 tokens, 1.5 s",
        "system:\n    Be brief.\n",
        "user:\n    Line one\n    line two: cats\n",
        "reasoning:\n    They like [bold]cats[/bold] in a café\\x9b.\n",
        'answer:\n    \\x1b[31m["cats", "tea"]\\x07\n',
        "value ",
    ):
        assert part in out
    assert printable(out)
    assert "bob" not in out
    out = shown(str(kept_run.path), "--sample", "cid")
    assert "failed: ValueError" in out
    assert "    Traceback (most recent call last):\n      File x\n" in out


def test_a_user_is_shown_through_all_tasks_and_stages(kept_run, shown):
    out = shown(str(kept_run.path), "--sample", "ann")
    assert "toy / name / ann/1" in out
    assert "later / name / ann/1" in out
    out = shown(str(kept_run.path), "--sample", "ann", "--json")
    assert out.isascii() and printable(out)
    document: Any = json.loads(out)
    assert [each["task"] for each in document["records"]] == ["toy", "later"]
    call = document["records"][0]["record"]["calls"][0]
    assert call["messages"][0] == {"role": "system", "content": "Be brief."}


def test_long_items_and_prompts_of_many_records_are_cut_in_the_middle(kept_run, shown):
    lines = "\n".join(f"line {number}" for number in range(60))
    messages = (Message("user", lines),)
    call = CallRecord(role="candidate", prompt="name", key="k", messages=messages, text=lines)
    many = [
        make_line(number, {"id": f"ann/{number}", "user": "ann"}, Done("x"), calls=(call,))
        for number in range(11)
    ]
    write_journal(kept_run.journal("later", 1, "name"), *many)
    out = shown(str(kept_run.path), "--sample", "ann", "--task", "later")
    assert out.count("user:\n    line 0\n") == 11
    left_out = "    line 5\n    … 50 lines left out: --task later --stage name --sample ann/3\n"
    assert f"{left_out}    line 56\n" in out
    assert out.count("    line 10\n") == 11  # in the answers
    one = shown(str(kept_run.path), "--sample", "ann/3", "--task", "later")
    assert "left out" not in one


pytestmark = pytest.mark.usefixtures("elsewhere")


def another(beside, name, **changes):
    """A run beside another, with another manifest and no task."""
    folder = RunFolder(beside.path.parent / name)
    folder.path.mkdir()
    manifest: Manifest = msgspec.structs.replace(beside.manifest(), tasks={}, **changes)
    folder.write_manifest(manifest)
    return folder


def test_each_run_with_what_it_found_or_how_far_it_is(scored_run, shown):
    lines = shown().splitlines()
    assert lines[0] == "1 run; `harness show RUN` shows one in full"
    assert lines[2] == "runs/20260101T000000-m-01234567"
    assert lines[3].endswith(" UTC, m-1, killed, 1 of 2 tasks finished")
    assert lines[4] == "  toy    many ↑ 2.000, n 1, 2 missing"
    assert lines[5] == "  later  not finished: 0 of 1 stages done"
    assert len(lines) == 6


def test_the_newest_comes_first_and_says_how_it_ended(kept_run, toy_plugin, shown):
    def begun(day):
        return (Session(started=f"2030-01-{day:02}T10:00:00Z"),)

    another(kept_run, "a", sessions=begun(2), status="failed", problem="no\nmoney", limit=7)
    another(kept_run, "b", sessions=begun(3), status="done", model="m-2")
    another(kept_run, "c", sessions=begun(1), status="too_many_failures")
    lines = shown().splitlines()
    heads = [line for line in lines if line.startswith("runs/")]
    assert heads == ["runs/b", "runs/a", "runs/c", "runs/20260101T000000-m-01234567"]
    assert "  2030-01-03 10:00:00 UTC, m-2, done" in lines
    at = lines.index("  2030-01-02 10:00:00 UTC, m-1, limit 7, failed, 0 of 0 tasks finished")
    assert lines[at + 1] == "  no"
    assert "  2030-01-01 10:00:00 UTC, m-1, too many failures, 0 of 0 tasks finished" in lines


def test_a_run_at_work_is_told_from_one_that_was_killed(kept_run, shown):
    kept_run.lock()
    assert ", at work, " in shown()
    kept_run.unlock()
    lock = kept_run.path / "lock"
    lock.write_text(json.dumps({"pid": os.getpid(), "host": f"not-{socket.gethostname()}"}))
    assert ", at work or killed, " in shown()
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    lock.write_text(json.dumps({"pid": gone, "host": socket.gethostname()}))
    assert ", killed, " in shown()


def test_damaged_and_foreign_folders_are_told_and_hide_nothing(scored_run, shown):
    (scored_run.path.parent / "foreign").mkdir()
    (scored_run.path.parent / "notes.txt").write_text("no folder")
    damaged = scored_run.path.parent / "damaged"
    damaged.mkdir()
    (damaged / "manifest.json").write_text("{")
    scored_run.summary("toy").write_text("{}")
    out = shown()
    assert "1 run;" in out
    assert "  toy    " in out
    assert "this summary cannot be read" in out
    assert "cannot be read: runs/damaged/manifest.json: this manifest cannot be read" in out
    assert "no run: runs/foreign: it has no manifest.json" in out
    assert "notes" not in out
    document: Any = json.loads(shown("--json"))
    assert [one["folder"] for one in document["damaged"]] == ["runs/damaged"]
    assert [one["folder"] for one in document["others"]] == ["runs/foreign"]
    [toy, _] = document["runs"][0]["tasks"]
    assert toy["scored"] is False
    assert "summary" in toy["problem"]


def test_where_runs_are_is_what_the_command_says_or_the_settings(
    kept_run, toy_plugin, tmp_path, shown
):
    kept_run.path.parent.rename(tmp_path / "results")
    assert shown() == "no runs in runs\n"
    name = "20260101T000000-m-01234567"
    assert f"\nresults/{name}\n" in shown("--output_path", "results")
    assert "m-1, begun " in shown(name, "--output_path", "results")
    (tmp_path / "harness.toml").write_text('output_path = "results"\n')
    assert f"\nresults/{name}\n" in shown()
    assert "m-1, begun " in shown(name)
    with pytest.raises(DataError, match="this folder does not exist"):
        shown("--output_path", "elsewhere")


def test_a_run_that_is_named_by_its_folder_is_shown_whatever_the_settings_say(
    kept_run, tmp_path, shown
):
    (tmp_path / "harness.toml").write_text("no TOML")
    assert "m-1, begun " in shown(str(kept_run.path))
    with pytest.raises(UsageError, match="not TOML"):
        shown()


@pytest.mark.parametrize("option", [("--sample", "ann"), ("--failures",), ("--task", "toy")])
def test_what_is_asked_of_one_run_needs_its_name(option, shown):
    with pytest.raises(UsageError, match=f"{option[0]} needs a run"):
        shown(*option)


def test_the_main_metric_is_over_repeats_their_mean(scored_run, shown):
    manifest = scored_run.manifest()
    entries = dict.fromkeys(("toy", "toy@2"), manifest.tasks["toy"])
    scored_run.write_manifest(msgspec.structs.replace(manifest, tasks=entries))
    summary: Any = json.loads(scored_run.summary("toy").read_text())
    metric = summary["metrics"]["many"]
    for name, repeat, value in (("toy", 1, 2.0), ("toy@2", 2, 5.0)):
        scored_run.task(name).mkdir(exist_ok=True)
        changed = {"task": name, "repeat": repeat, "main": ["many"]}
        metrics = summary["metrics"] | {"many": metric | {"value": value}}
        write_sealed(scored_run.summary(name), summary | changed | {"metrics": metrics})
    assert "  toy  many ↑ 3.500, mean of 2 repeats, 4 missing\n" in shown()


def test_a_folder_that_may_not_be_read_is_told(kept_run, monkeypatch, shown):
    def denied(place):
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(Path, "iterdir", denied)
    with pytest.raises(DataError, match="the folder of runs cannot be read") as caught:
        shown()
    assert (caught.value.where, caught.value.found) == ("runs", "Permission denied")
