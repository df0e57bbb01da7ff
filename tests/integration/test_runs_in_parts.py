"""Runs whose journals are in parts, as workers on a cluster write them, are read as others."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from builders.runs import split_journal

import harness as program
from harness.analysis.lm_eval_export import samples_of
from harness.analysis.run_tables import tables_of
from harness.pipeline.preflight import said_before
from harness.registry import load_plugins
from harness.reporting.html.answers import samples_of as units_of
from harness.reporting.html.reported_run import ReportedRun
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import finished_task
from harness.scoring.score_run import score_into

STAGES = ("1-name.jsonl", "2-support.jsonl")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program.evaluate(
        "interests", model="baseline", judge="lexical", data="sample", limit=12,
        output_path=tmp_path_factory.mktemp("runs"), reuse="run",
    ).folder  # fmt: skip


def all_of(path: Path, scratch: Path) -> Iterator[Any]:
    """Everything that is read of a finished run."""
    encode = msgspec.json.Encoder(enc_hook=str, order="deterministic").encode
    folder = RunFolder(path)
    manifest = folder.manifest()
    benchmark = load_plugins().benchmark("interests")
    task = finished_task(folder, manifest, "interests", benchmark, label="m")
    for stage in task.entry.stages:
        yield [encode(record) for record in task.records(stage.name)]
        yield [encode(record) for record in task.judged(stage.name)]
    yield encode(score_into(scratch / "scores.jsonl", folder, manifest, task.task, benchmark))
    yield (scratch / "scores.jsonl").read_bytes()
    for table in tables_of([task]):
        yield [list(row.items()) for row in table.rows()]
    yield list(samples_of(task))
    shown = ReportedRun(
        label="m", folder=folder, manifest=manifest, tasks=(task,), summaries=(task.summary,)
    )
    yield list(units_of([shown], 50))
    yield [(one.id, one.prompts, one.replies) for one in program.load(path).samples()]
    yield said_before(folder, manifest)


@pytest.mark.parametrize("first", [True, False], ids=["first file", "parts alone"])
def test_all_that_is_read_of_a_run_is_the_same_in_parts(
    run: Path, tmp_path: Path, first: bool
) -> None:
    whole = list(all_of(run, tmp_path))
    assert len(whole[0]) == 12
    assert len(whole[2]) > 12
    for seed in range(3):
        copy = Path(shutil.copytree(run, tmp_path / str(seed) / run.name))
        draw = Random(seed)
        for name in STAGES:  # into two to six files each
            lines = (copy / "interests" / name).read_bytes().count(b"\n")
            cuts = [draw.randint(0, lines) for _ in range(draw.randint(1, 5))]
            split_journal(copy / "interests" / name, cuts, first=first)
        assert len(list(copy.glob("interests/?-*.*.jsonl"))) >= 2
        assert list(all_of(copy, tmp_path)) == whole
