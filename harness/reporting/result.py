"""The result of a run or of a comparison in Python: shown as a short table, read as values.

Imports rich: import this module where it is used.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from harness.analysis.run_tables import METRICS, metric_rows
from harness.base.errors import DataError, HarnessError, UsageError, one_of
from harness.comparison.compare_runs import compare_tasks
from harness.comparison.document import ComparisonDocument
from harness.comparison.gates import GatedRun, check_base, gates_of, metrics_by_task, with_gates
from harness.contracts.outcomes import Failure
from harness.contracts.records import Done, JournalLine
from harness.pipeline.run import EXIT_CODES, RunResult
from harness.registry import load_plugins
from harness.reporting.comparison_tables import print_comparison, print_gates
from harness.reporting.grid import WIDTH
from harness.reporting.tables import print_short_table
from harness.runs.journal import JournalIndex, JournalRecords, part_numbers
from harness.runs.manifest import Manifest, StageEntry
from harness.runs.run_folder import RunFolder
from harness.scoring.finished_task import finished_task, labels_of
from harness.scoring.means import means_of_run
from harness.scoring.score_run import read_summary, unfinished_stages

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]

IN_A_NOTEBOOK = '<pre style="line-height: 1.2; overflow-x: auto">{code}</pre>'


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The record of one item of a stage.

    `value` is the value that the stage made of the replies; None with a `failure`. `prompts` has
    the text of each call's messages, `replies` its reply, None for a call that failed. `record` is
    the whole record, with all that is known of each call.
    """

    task: str
    stage: str
    user: str
    id: str
    value: Any
    failure: Failure | None
    prompts: tuple[str, ...]
    replies: tuple[str | None, ...]
    record: JournalLine[Any, Any]


class Result(RunResult, frozen=True, kw_only=True, repr_omit_defaults=True):
    """The result of a run: shown as its short table, and read as typed values.

        result = harness.evaluate("interests", model="baseline", judge="lexical", data="sample")
        result.summaries[0].metrics["support"].value

    `manifest` describes the run: its settings, tasks, models, versions and sessions. `unfinished`
    has the stages that are not finished, by task; none of a task that only is not scored.
    """

    manifest: Manifest

    @classmethod
    def of(cls, run: RunResult) -> Result:
        """The result of a run that has ended."""
        values = {name: getattr(run, name) for name in RunResult.__struct_fields__}
        return cls(**values, manifest=RunFolder(run.folder).manifest())

    @property
    def unfinished(self) -> dict[str, tuple[str, ...]]:
        """The tasks without a result, each with its unfinished stages."""
        scored = {summary.task for summary in self.summaries}
        return {
            name: unfinished_stages(entry)
            for name, entry in self.manifest.tasks.items()
            if name not in scored
        }

    def to_pandas(self) -> DataFrame:
        """The metrics as a DataFrame, one row for each metric of each task.

        The columns are those of `metrics.csv` of `harness export`.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise UsageError(
                "to_pandas needs pandas", found=str(error), hint="pip install pandas"
            ) from error
        rows = [
            row
            for summary in self.summaries
            for row in metric_rows(self.manifest.run_id, self.manifest.label, summary)
        ]
        return pd.DataFrame(rows, columns=[*METRICS])

    def samples(self, task: str | None = None, stage: str | None = None) -> Iterator[Sample]:
        """Every record of the run, or of a task or stage, read from the run folder one by one.

        `pandas.DataFrame(result.samples())` has one row for each.
        """
        stages = [(name, each) for name, entry in self.manifest.tasks.items()
                  for each in entry.stages]  # fmt: skip
        if task is not None:
            one_of(task, self.manifest.tasks, f"the run has no task {task!r}")
        if stage is not None:
            names = dict.fromkeys(each.name for _, each in stages)
            one_of(stage, names, f"the run has no stage {stage!r}", none="a run with a stage")
        return (
            sample
            for name, each in stages
            if task in (None, name) and stage in (None, each.name)
            for sample in self._samples(name, each)
        )

    def _samples(self, task: str, stage: StageEntry) -> Iterator[Sample]:
        entry = self.manifest.tasks[task]
        file = self.folder / entry.folder / stage.file
        if not part_numbers(file):
            return
        benchmark = load_plugins().benchmark(entry.task().benchmark)
        kinds: dict[str, Any] = {
            each.name: JournalLine[each.item, each.value]  # type: ignore[name-defined]
            for each in benchmark.stages
        }
        index = JournalIndex(file, stage.key, items=stage.items)
        line: Any
        for line in JournalRecords(
            file, stage.key, kinds.get(stage.name, JournalLine[Any, Any]), index=index
        ):
            done = isinstance(line.outcome, Done)
            yield Sample(
                task=task,
                stage=stage.name,
                user=line.user,
                id=line.id,
                value=line.outcome.value if done else None,
                failure=None if done else line.outcome,
                prompts=tuple(
                    "\n\n".join(message.content for message in call.messages) for call in line.calls
                ),
                replies=tuple(call.text for call in line.calls),
                record=line,
            )

    def __repr__(self) -> str:
        return self._shown().export_text().rstrip()

    def _repr_html_(self) -> str:
        return self._shown().export_html(inline_styles=True, code_format=IN_A_NOTEBOOK)

    def _shown(self) -> Console:
        console = _recorder()
        if self.status != "done":
            why = (self.manifest.problem or "").partition("\n")[0]
            status = "at work, or killed" if self.status == "running" else self.status
            console.print(f"not done: {status.replace('_', ' ')}{why and f': {why}'}")
        print_short_table(
            self.manifest, self.summaries, self.means, run=str(self.folder), console=console
        )
        return console


class ComparisonResult(ComparisonDocument, frozen=True, kw_only=True):
    """A comparison of runs, shown as a short table: one Comparison for each task of several runs.

    `gates` are the decided gates, if there are any; `errors` are the reasons why other tasks are
    not compared.
    """

    errors: tuple[HarnessError, ...] = ()

    def __repr__(self) -> str:
        return self._shown().export_text().rstrip()

    def _repr_html_(self) -> str:
        return self._shown().export_html(inline_styles=True, code_format=IN_A_NOTEBOOK)

    def _shown(self) -> Console:
        console = _recorder()
        print_comparison(self, console)
        if self.gates:
            print_gates(self, console)
        for error in self.errors:
            console.print(str(error))
        return console


def stored_result(folder: RunFolder, manifest: Manifest) -> Result:
    """The result of a stored run, finished or not; `costs` are those of its last session."""
    found = {name: read_summary(folder.summary(name))
             for name, entry in manifest.tasks.items() if not unfinished_stages(entry)}  # fmt: skip
    summaries = tuple(summary for summary in found.values() if summary is not None)
    return Result(
        folder=folder.path,
        status=manifest.status,
        exit_code=EXIT_CODES.get(manifest.status, 1),
        summaries=summaries,
        means=means_of_run(folder, manifest, summaries, load_plugins().benchmark),
        costs=manifest.sessions[-1].costs if manifest.sessions else {},
        manifest=manifest,
    )


def compared(
    results: Sequence[Result],
    *,
    metrics: Sequence[str] = (),
    against: str | None = None,
    by: str | None = None,
    gates: Sequence[str] = (),
    force: bool = False,
) -> ComparisonResult:
    """The comparison of each task that several of the runs have finished, with decided gates.

    Without `metrics` their main metrics are compared; `against` is the id of a run.
    """
    runs = {result.manifest.run_id: result for result in results}
    labels = labels_of(result.manifest for result in runs.values())
    gated = [_gated(result, labels[run]) for run, result in runs.items() if gates]
    if gates:
        check_base(len(runs), against)
    wanted = gates_of(gates, gated)
    tasks = [
        finished_task(
            RunFolder(result.folder),
            result.manifest,
            summary.task,
            load_plugins().benchmark(summary.benchmark),
            label=labels[run],
        )
        for run, result in runs.items()
        for summary in result.summaries
    ]
    found = compare_tasks(
        tasks,
        metrics=metrics,
        against=against,
        force=force,
        by=by,
        gated=metrics_by_task(wanted),
    )
    errors = (*found.skipped, *found.failed)
    if not found.compared:
        raise next(iter(errors), None) or DataError(
            "there is nothing to compare", expected="at least two runs that finished the same task"
        )
    document = with_gates(found.document(), wanted, gated, against, found.failed)
    fields = {name: getattr(document, name) for name in document.__struct_fields__}
    return ComparisonResult(**fields, errors=errors)


def _gated(result: Result, label: str) -> GatedRun:
    benchmarks = {}
    for name, entry in result.manifest.tasks.items():
        with contextlib.suppress(HarnessError):  # a benchmark that is not installed has no gate
            benchmarks[name] = load_plugins().benchmark(entry.task().benchmark)
    finished = frozenset(summary.task for summary in result.summaries)
    return GatedRun(label, result.manifest, benchmarks, finished)


def _recorder() -> Console:
    return Console(
        file=io.StringIO(), record=True, width=WIDTH, markup=False, highlight=False, emoji=False
    )
