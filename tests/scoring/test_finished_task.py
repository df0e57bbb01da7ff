from pathlib import Path
from typing import Any

import pytest
from builders.runs import (
    KEY,
    make_entry,
    make_finished_task,
    make_line,
    make_manifest,
    make_task,
    write_journal,
)
from builders.stages import make_benchmark, make_stage

from harness.base.errors import PluginError
from harness.contracts.benchmark import Benchmark
from harness.contracts.outcomes import NoVerdict
from harness.contracts.records import Done, JournalLine
from harness.contracts.stage import Item
from harness.runs.manifest import Manifest, Session, StageEntry
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import FinishedTask, labels_of

TASK = make_task("toy")


class Claim(Item, frozen=True, kw_only=True):
    text: str


def benchmark(*stages: str) -> Benchmark:
    return make_benchmark(*(make_stage(name, Claim, bool) for name in stages))


def line(number: int, key: str, id: str, outcome: Any) -> JournalLine[Any, Any]:
    user = id.partition("/")[0]
    item = Claim(id=id, user=user, text="tea")
    return make_line(number, item, outcome, stage=key)


def kept(folder: RunFolder, *stages: str) -> FinishedTask:
    stage = StageEntry(name="check", key=KEY, file="1-check.jsonl", items=3)
    entry = make_entry(TASK, stage)
    lines = (
        line(1, KEY, "ann/2", Done(True)),
        line(2, KEY, "bob/1", NoVerdict("no_json")),
        line(3, KEY, "ann/1", Done(False)),
        line(4, "b" * 32, "ann/3", Done(True)),
    )
    write_journal(folder.journal("toy", 1, "check"), *lines)
    return make_finished_task(
        folder.path, TASK, label="m", manifest=make_manifest(tasks={"toy": entry}), entry=entry,
        benchmark=benchmark(*stages),
    )  # fmt: skip


def test_the_records_of_a_stage_are_typed_and_only_its_own(tmp_path: Path) -> None:
    records = kept(RunFolder(tmp_path), "check").records("check")
    assert len(records) == 3
    of = {user: [(one.id, one.outcome) for one in each] for user, each in records.by_user()}
    assert of == {
        "ann": [("ann/1", Done(False)), ("ann/2", Done(True))],
        "bob": [("bob/1", NoVerdict("no_json"))],
    }
    assert {type(record.item) for record in records} == {Claim}


@pytest.mark.parametrize(("stages", "asked"), [(("check",), "name"), (("other",), "check")])
def test_records_of_a_stage_that_run_or_benchmark_lacks_are_an_error(
    tmp_path: Path, stages: tuple[str, ...], asked: str
) -> None:
    with pytest.raises(PluginError) as told:
        kept(RunFolder(tmp_path), *stages).records(asked)
    assert f"'{asked}'" in str(told.value)
    assert "stages check" in str(told.value)


def run(number: int, *, day: int = 1, revision: str = "", **fields: Any) -> Manifest:
    """A run of the model `m` with the label `step`."""
    settings = {"model_args": {"revision": revision}} if revision else {}
    return make_manifest(**{
        "run_id": f"2026010{day}T00000{number}-m-0000000{number}", "name": "step",
        "model": "openai:m", "settings": settings,
        "sessions": (Session(started=f"2026-01-0{day}T00:00:00Z"),), **fields,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("runs", "labels"),
    [
        ((run(1), run(2, name="other")), ["step", "other"]),
        ((run(1, revision="a"), run(2, revision="b")), ["step a", "step b"]),
        ((run(1, revision="a", model="openai:n"), run(2)), ["step n", "step m"]),
        (
            (run(1, model="vllm:/a/run7/step"), run(2, model="vllm:/a/run8/step")),
            ["step run7/step", "step run8/step"],
        ),
        ((run(1), run(2, day=2)), ["step 2026-01-01", "step 2026-01-02"]),
        ((run(1), run(2)), ["step 00000001", "step 00000002"]),
        (
            (run(1, run_id="20260101T000001-m-a"), run(2, run_id="20260101T000002-m-a")),
            ["step 20260101T000001", "step 20260101T000002"],
        ),
        ((run(1, name=""), run(2, name="")), ["openai:m 00000001", "openai:m 00000002"]),
    ],
)
def test_runs_of_one_label_are_told_apart_by_the_first_that_differs(runs, labels):
    assert [*labels_of(runs).values()] == labels
