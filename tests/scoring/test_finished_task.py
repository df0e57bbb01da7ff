from pathlib import Path
from typing import Any

import pytest

from harness.base.errors import PluginError
from harness.contracts.benchmark import Benchmark, NoOptions
from harness.contracts.outcomes import NoVerdict
from harness.contracts.records import Done, JournalLine
from harness.contracts.stage import Item, Stage
from harness.contracts.task import DataSpec, Task
from harness.runs.journal import JournalWriter
from harness.runs.manifest import Manifest, StageEntry, TaskEntry, task_definition
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import FinishedTask

KEY = "a" * 32
TASK = Task(name="toy", version=1, benchmark="toy", data=DataSpec(tables={}), metrics=())


class Claim(Item, frozen=True, kw_only=True):
    text: str


def benchmark(*stages: str) -> Benchmark:
    return Benchmark(
        name="toy",
        version=1,
        stages=tuple(
            Stage(name=name, item=Claim, value=bool, items=no_items, work=no_work)
            for name in stages
        ),
        load=lambda dataset, options: None,
        score=lambda records, options: iter(()),
        metrics={},
    )


def no_items(upstreams: Any, data: Any, options: Any) -> list[Item]:
    return []


async def no_work(item: Any, desk: Any) -> None:
    return None


def line(number: int, key: str, id: str, outcome: Any) -> JournalLine[Any, Any]:
    user = id.partition("/")[0]
    item = Claim(id=id, user=user, text="tea")
    return JournalLine(
        key=f"{number:032x}", stage=key, user=user, id=id, item=item, outcome=outcome
    )


def kept(folder: RunFolder, *stages: str) -> FinishedTask:
    entry = TaskEntry(
        folder="toy",
        definition=task_definition(TASK),
        content="c" * 32,
        stages=(StageEntry(name="check", key=KEY, file="1-check.jsonl", items=3),),
    )
    manifest = Manifest(
        run_id="r", run_key="0" * 32, status="done", model="m", seed=0, limit=None, asked={},
        settings={}, tasks={"toy": entry},
    )  # fmt: skip
    with JournalWriter(folder.journal("toy", 1, "check")) as journal:
        journal.append(line(1, KEY, "ann/2", Done(True)))
        journal.append(line(2, KEY, "bob/1", NoVerdict("no_json")))
        journal.append(line(3, KEY, "ann/1", Done(False)))
        journal.append(line(4, "b" * 32, "ann/3", Done(True)))
    return FinishedTask(
        label="m",
        path=folder.path,
        manifest=manifest,
        entry=entry,
        task=TASK,
        benchmark=benchmark(*stages),
        options=NoOptions(),
        summary=None,  # type: ignore[arg-type]
    )


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
