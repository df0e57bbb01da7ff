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
from harness.runs.manifest import StageEntry
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import FinishedTask

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
