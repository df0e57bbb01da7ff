import csv
import json
import os
import re
import shutil
import socket
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from builders.runs import make_manifest, write_sealed

from harness.base import clock
from harness.base.errors import DataError
from harness.cli.runs import named_runs, open_run
from harness.runs.manifest import Session, now, session_started
from harness.runs.progress_file import PROGRESS, ProgressNote, StageNote
from harness.runs.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("elsewhere")


def kept(run, **fields):
    """A run in `runs`, begun on the day that its name says."""
    folder = RunFolder(Path("runs", run))
    folder.path.mkdir(parents=True)
    started = f"{run[:4]}-{run[4:6]}-{run[6:8]}T00:00:00Z"
    sessions = (Session(started=started, ended=started),)
    folder.write_manifest(make_manifest(run_id=run, **{"sessions": sessions, **fields}))
    return folder


A, B, C = "20260301T000000-m-0000000a", "20260302T000000-m-0000000b", "20260402T000000-m-0000000c"


@pytest.fixture
def three():
    """Three runs, the last the newest; two of week 47, and two with one label."""
    return [
        kept(A, name="step-1000", tags={"week": "47"}),
        kept(B, name="step-2000", tags={"week": "47", "who": "ada"}),
        kept(C, name="step-2000"),
    ]


@pytest.mark.parametrize(
    ("named", "meant"),
    [(A, A), (f"runs/{A}", A), (f"runs/{A}/manifest.json", A), ("20260301", A), ("step-1000", A),
     ("latest", C), ("202604", C)],
)  # fmt: skip
def test_a_run_is_named_by_folder_beginning_label_or_latest(three, named, meant):
    folder, manifest = open_run(named)
    assert (folder.path, manifest.run_id) == (Path("runs", meant), meant)


def test_of_two_runs_begun_within_a_second_the_later_one_is_the_latest(monkeypatch):
    for run, milliseconds in (("x-0000000b", 250), ("x-0000000a", 750)):
        begun = datetime(2026, 3, 1, 0, 0, 0, milliseconds * 1000, tzinfo=UTC)
        monkeypatch.setattr(clock, "utc", lambda begun=begun: begun)
        folder = kept(f"20260301T000000-{run}", sessions=())
        folder.write_manifest(session_started(folder.manifest()))
    folder, manifest = open_run("latest")
    assert folder.path.name == "20260301T000000-x-0000000a"
    assert manifest.sessions[0].started == "2026-03-01T00:00:00.750Z"


@pytest.mark.parametrize("named", ["202603", "step-2000", "2026"])
def test_an_ambiguous_name_lists_the_runs(three, named):
    with pytest.raises(DataError, match="several runs have this name") as caught:
        open_run(named)
    listed = {
        "202603": [f"{B} (step-2000)", f"{A} (step-1000)"],
        "step-2000": [f"{C} (step-2000)", f"{B} (step-2000)"],
        "2026": [f"{C} (step-2000)", f"{B} (step-2000)", f"{A} (step-1000)"],
    }
    assert [line.strip() for line in str(caught.value.found).split("\n")] == listed[named]


def test_a_label_goes_before_a_folder_that_is_no_run_and_a_misspelt_one_is_answered(three):
    Path("step-1000").mkdir()
    assert open_run("step-1000")[0].path == Path("runs", A)
    with pytest.raises(DataError, match="this run does not exist") as caught:
        open_run("setp-1000")
    assert caught.value.hint == "did you mean 'step-1000'?"
    with pytest.raises(DataError, match="this run does not exist") as caught:
        open_run("latest", among=Path("none"))
    assert caught.value.hint == (
        "there are no runs in this folder; `harness --model SPEC --tasks TASK` makes one"
    )


def test_tags_select_among_the_runs(three):
    week, ada = {"week": "47"}, {"who": "ada", "week": "47"}
    assert named_runs((), week) == [f"runs/{B}", f"runs/{A}"]
    assert named_runs((), ada) == [f"runs/{B}"]
    assert open_run("latest", tags=week)[0].path.name == B
    assert open_run("step-2000", tags=week)[0].path.name == B
    with pytest.raises(DataError, match="no run has these tags"):
        open_run(C, tags=week)
    with pytest.raises(DataError, match="no run has these tags") as caught:
        named_runs((), {"week": "48"})
    assert caught.value.expected == "one of week=47, who=ada"
    for name in (A, B):
        shutil.rmtree(Path("runs", name))
    with pytest.raises(DataError, match="no run has these tags") as caught:
        named_runs((), week)
    assert caught.value.expected == "runs that were given a --tag"


def listed(printed, *words):
    """The cells of the table by run, and all that is printed."""
    out = printed("runs", *words).out
    rows = [re.split(r" {2,}", line.rstrip()) for line in out.splitlines()]
    return {row[0]: row[1:] for row in rows if len(row) > 1 and row[0] != "run"}, out


def test_runs_are_the_rows_of_a_table_and_tags_choose(three, printed):
    rows, out = listed(printed)
    assert out.startswith("3 runs in runs, newest first\n")
    assert list(rows) == [C, B, A]
    assert rows[B] == ["step-2000", "week=47, who=ada", "0", "done"]
    document = json.loads(printed("runs", "--tag", "week=47", "--json").out)
    found = [(run["run"], run["model"]) for run in document["runs"]]
    assert found == [(B, "step-2000"), (A, "step-1000")]
    assert list(listed(printed, "--tag", "week=47")[0]) == [B, A]
    said = printed("runs", "--tag", "week", code=2).err
    assert "--tag needs a name and a value" in said
    assert "expected: --tag NAME=VALUE" in said


OF_CONFTEST = "20260101T000000-m-01234567"


def test_a_row_has_what_was_found_and_how_a_run_ended(scored_run, printed):
    manifest = scored_run.manifest()
    for name, changes in (
        ("a", {"status": "failed", "problem": "no\nmoney", "limit": 7}),
        ("b", {"status": "too_many_failures", "tasks": {}}),
    ):
        folder = RunFolder(scored_run.path.parent / name)
        folder.path.mkdir()
        folder.write_manifest(msgspec.structs.replace(manifest, **changes))
    rows, _ = listed(printed)
    assert rows[OF_CONFTEST] == ["m-1", "1 of 2", "toy many ↑ 2.000", "killed"]
    assert rows["a"] == ["m-1", "0 of 2, limit 7", "failed: no"]
    assert rows["b"] == ["m-1", "0", "too many failures"]


def test_a_living_run_has_its_stage_and_records_and_is_told_from_a_killed_one(kept_run, printed):
    def state():
        return listed(printed)[0][OF_CONFTEST][-1]

    kept_run.lock()
    assert state() == "at work"
    stages = (
        StageNote(task="toy", stage="name", done=1_200, total=4_000, missing=3),
        StageNote(task="later", stage="name", done=7, total=None, missing=0),
    )
    note = ProgressNote(
        stages=stages, items_per_second=2.5, seconds_left=1_120.0, at_least=True, cost=None
    )
    (kept_run.path / PROGRESS).write_bytes(msgspec.json.encode(note))
    said = (
        f"{OF_CONFTEST} is at toy/name 1,200 of 4,000, 3 missing; later/name 7: "
        "150 items/min, at least 18:40 left\n"
    )
    assert said in printed("runs").out
    kept_run.unlock()
    lock = kept_run.path / "lock"
    lock.write_text(json.dumps({"pid": os.getpid(), "host": f"not-{socket.gethostname()}"}))
    assert state() == "at work or killed"
    assert f"{OF_CONFTEST} was last at toy/name" in printed("runs").out
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    lock.write_text(json.dumps({"pid": gone, "host": socket.gethostname()}))
    assert state() == "killed"


def test_damaged_and_foreign_folders_are_told_and_hide_nothing(scored_run, printed):
    (scored_run.path.parent / "foreign").mkdir()
    (scored_run.path.parent / "notes.txt").write_text("no folder")
    damaged = scored_run.path.parent / "damaged"
    damaged.mkdir()
    (damaged / "manifest.json").write_text("{")
    scored_run.summary("toy").write_text("{}")
    _, out = listed(printed)
    assert "1 run in runs" in out
    assert "this summary cannot be read" in " ".join(out.split())
    assert "cannot be read: runs/damaged/manifest.json: this manifest cannot be read" in out
    assert "no run: runs/foreign: it has no manifest.json" in out
    assert "notes" not in out
    document = json.loads(printed("runs", "--json").out)
    assert [one["folder"] for one in document["damaged"]] == ["runs/damaged"]
    assert [one["folder"] for one in document["others"]] == ["runs/foreign"]
    [toy, _] = document["runs"][0]["tasks"]
    assert toy["scored"] is False
    assert "summary" in toy["problem"]


def test_where_runs_are_is_what_the_command_says_or_the_settings(kept_run, tmp_path, printed):
    kept_run.path.parent.rename(tmp_path / "results")
    assert printed("runs").out == "no runs in runs\n"
    assert OF_CONFTEST in listed(printed, "--output_path", "results")[0]
    shown = printed("show", OF_CONFTEST, "--output_path", "results").out
    assert "m-1, begun " in shown
    (tmp_path / "harness.toml").write_text('output_path = "results"\n')
    assert OF_CONFTEST in listed(printed)[0]
    assert "this folder does not exist" in printed("runs", "--output_path", "no", code=1).err
    (tmp_path / "harness.toml").write_text("no TOML")
    assert "not TOML" in printed("runs", code=2).err


def test_the_main_metric_is_over_repeats_their_mean(scored_run, printed):
    manifest = scored_run.manifest()
    entries = dict.fromkeys(("toy", "toy@2"), manifest.tasks["toy"])
    scored_run.write_manifest(msgspec.structs.replace(manifest, tasks=entries))
    summary = json.loads(scored_run.summary("toy").read_text())
    metric = summary["metrics"]["many"]
    for name, repeat, value in (("toy", 1, 2.0), ("toy@2", 2, 5.0)):
        scored_run.task(name).mkdir(exist_ok=True)
        changed = {"task": name, "repeat": repeat, "main": ["many"]}
        metrics = summary["metrics"] | {"many": metric | {"value": value}}
        write_sealed(scored_run.summary(name), summary | changed | {"metrics": metrics})
    assert "toy many ↑ 3.500" in listed(printed)[0][OF_CONFTEST]


def test_a_folder_that_may_not_be_read_is_told(kept_run, monkeypatch, printed):
    def denied(place):
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(Path, "iterdir", denied)
    said = printed("runs", code=1).err
    assert "runs: the folder of runs cannot be read" in said
    assert "Permission denied" in said


def test_nothing_is_removed_unasked(three, printed, monkeypatch):
    out, err = printed("runs", "--clean", "all_but=1", code=2)
    assert out.splitlines() == [f"runs/{B}  step-2000, done", f"runs/{A}  step-1000, done"]
    assert "expected: --yes" in err
    asked = []
    monkeypatch.setattr("harness.cli.runs.agreed", lambda text: asked.append(text) or False)
    assert "nothing was removed" in printed("runs", "--clean", "all_but=1").out
    assert asked == ["remove these 2 runs?"]
    assert all(folder.path.exists() for folder in three)
    monkeypatch.setattr("harness.cli.runs.agreed", lambda text: True)
    assert "2 removed" in printed("runs", "--clean", "all_but=1").out
    assert [folder.path.exists() for folder in three] == [False, False, True]


def test_only_older_runs_and_only_those_with_the_tags_go(three, printed):
    young = kept("20260401T000000-m-0000000d", sessions=(Session(started=now(), ended=now()),))
    assert "1 removed" in printed("runs", "--clean", "older=30d", "--tag", "who=ada", "--yes").out
    assert [folder.path.exists() for folder in three] == [True, False, True]
    assert "2 removed" in printed("runs", "--clean", "older=30d", "--yes").out
    assert young.path.exists()
    assert printed("runs", "--clean", "older=30d", "--yes").out == "no run to remove\n"


def test_failed_starts_kept_neither_record_nor_answer(printed):
    started = kept("20260401T000000-m-0000000e", status="failed")
    answered = kept("20260401T000000-m-0000000f", status="failed")
    for folder, rows in ((started, 0), (answered, 1)):
        with sqlite3.connect(folder.own_answers) as opened:
            opened.execute("CREATE TABLE replies (key BLOB, value BLOB)")
            opened.executemany("INSERT INTO replies VALUES (?, ?)", [(b"k", b"v")] * rows)
    recorded = kept("20260401T000000-m-00000010", status="interrupted")
    recorded.task("t").mkdir()
    (recorded.task("t") / "1-name.jsonl").write_text("{}\n")
    others = [
        kept("20260401T000000-m-00000011", status="interrupted"),
        kept("20260402T000000-m-00000011"),
    ]
    (others[0].path / "batches").mkdir()
    assert "1 removed" in printed("runs", "--clean", "failed", "--yes").out
    assert not started.path.exists()
    assert all(folder.path.exists() for folder in (answered, recorded, *others))


def test_runs_at_work_and_unreadable_runs_stay(printed):
    away = kept("20260401T000000-m-00000012", status="running")
    (away.path / "lock").write_text(json.dumps({"pid": 1, "host": f"not-{socket.gethostname()}"}))
    here = kept("20260401T000000-m-00000013", status="running")
    (here.path / "lock").write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
    held = kept("20260401T000000-m-00000014")
    damaged = kept("20260401T000000-m-00000015")
    damaged.manifest_file.write_text("{")
    held.lock()
    out, err = printed("runs", "--clean", "all_but=0", "--yes", code=1)
    held.unlock()
    assert "0 removed" in out
    assert "the run folder is in use" in err
    assert all(each.path.exists() for each in (away, here, held, damaged))


def test_a_run_that_was_resumed_while_the_question_stood_stays(printed, monkeypatch):
    failed = kept("20260401T000000-m-00000016", status="failed")

    def resumed(text):
        failed.write_manifest(msgspec.structs.replace(failed.manifest(), status="done"))
        return True

    monkeypatch.setattr("harness.cli.runs.agreed", resumed)
    out, err = printed("runs", "--clean", "failed", code=1)
    assert "0 removed" in out
    assert "the run has changed since it was listed" in err
    assert failed.path.exists()


def test_a_run_that_waits_for_a_batch_goes_only_by_its_age(printed):
    waiting = kept("20260401T000000-m-00000017", status="interrupted")
    (waiting.path / "batches").mkdir()
    assert printed("runs", "--clean", "all_but=0", "--yes").out == "no run to remove\n"
    assert waiting.path.exists()
    assert "1 removed" in printed("runs", "--clean", "older=30d", "--yes").out


@pytest.mark.parametrize("which", ["old", "older=30", "all_but=-1", "older=30d,failed"])
def test_what_clean_does_not_know_is_refused(three, printed, which):
    said = printed("runs", "--clean", which, "--yes", code=2).err
    assert "failed, older=30d or all_but=20" in said


def test_export_writes_several_runs_into_one_folder(kept_run, toy_plugin, printed):
    other = RunFolder(kept_run.path.with_name("20260102T000000-m-01234567"))
    shutil.copytree(kept_run.path, other.path)
    for number, folder in enumerate((kept_run, other)):
        changes = {"run_id": f"r{number}", "name": f"step-{number}", "tags": {"a": "b"}}
        folder.write_manifest(msgspec.structs.replace(folder.manifest(), **changes))
    printed("score", "--tag", "a=b", "--task", "toy")
    printed("export", "--tag", "a=b", "--task", "toy", "--format", "csv", "--out", "both")
    for table, rows in (("metrics", 2), ("scores", 6), ("records", 6), ("calls", 2)):
        with Path("both", f"{table}.csv").open() as file:
            found = list(csv.DictReader(file))
        assert len(found) == rows
        assert {row["run"] for row in found} == {"r0", "r1"}
        if table == "metrics":
            assert {(row["run"], row["model"]) for row in found} == {
                ("r0", "step-0"), ("r1", "step-1"),
            }  # fmt: skip
