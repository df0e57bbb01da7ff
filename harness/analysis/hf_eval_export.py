"""Export of stored runs as results of a model at the Hugging Face Hub, in its two formats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis.exported_runs import folders_of_runs, in_file_name
from harness.base.errors import UsageError
from harness.base.home import without_home
from harness.base.redaction import without_key_material
from harness.runs.atomic_files import atomic_write
from harness.scoring.finished_task import FinishedTask
from harness.scoring.summary import main_metrics

if TYPE_CHECKING:
    from huggingface_hub import EvalResult


TASK_TYPE = "text-generation"
CARD = "README.md"
RESULTS = ".eval_results"
BODY = """
# Results

The metadata of this card holds the results. The `args` of a metric have its interval, the number
of units and users behind it, and what is missing; the `args` of a dataset say whether the results
may stand next to published ones.
"""


def write_model_cards(folder: Path, tasks: Sequence[FinishedTask]) -> list[Path]:
    """The model cards written: one for each run, in a folder with the run's label.

    A second run with that label has a folder with label and run. No card has a key or the name of
    the home folder.
    """
    from huggingface_hub import ModelCardData

    written = []
    for into, own in folders_of_runs(folder, tasks, attrgetter("label")):
        results = [one for task in own for one in _results(task)]
        card = ModelCardData(model_name=own[0].manifest.label, eval_results=results)
        written.append(_write(into / CARD, f"---\n{card.to_yaml()}\n---\n{BODY}"))
    return written


def write_eval_results(folder: Path, tasks: Sequence[FinishedTask]) -> list[Path]:
    """The files for `.eval_results` of a model at the Hub: the main metric of each task.

    The Hub knows a benchmark by the data set it is, so data from elsewhere is a UsageError.
    """
    import yaml
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    unfit = {one.task.name: why for one in tasks if (why := _no_entry(one))}
    if unfit:
        raise UsageError(
            f"results that the Hub has no place for: {', '.join(unfit)}",
            found=", ".join(dict.fromkeys(unfit.values())),
            expected="tasks with a value, whose data is a data set at the Hub",
            hint="name a task with --task, or take --format hf-eval, which needs no data set",
        )
    written = []
    for into, own in folders_of_runs(folder, tasks, attrgetter("label")):
        (into / RESULTS).mkdir()
        for task in own:
            summary = task.summary
            name = main_metrics(summary.main, summary.metrics)[0]
            metric = summary.metrics[name]
            notes = [f"{name}, n {metric.n}, missing {sum(metric.missing.values())}"]
            if metric.interval is not None:
                low, high = metric.interval
                notes.append(f"{metric.confidence:.0%} interval {low} to {high}")
            entry = EvalResultEntry(
                dataset_id=summary.data["repo"],
                task_id=task.task.name,
                value=metric.value,
                dataset_revision=summary.data["revision"],
                date=task.manifest.sessions[-1].ended,
                notes="; ".join([*notes, *summary.not_comparable_because]),
            )
            entries = eval_result_entries_to_yaml([entry])
            path = into / RESULTS / f"{in_file_name(task.task.name)}.yaml"
            written.append(_write(path, yaml.safe_dump(entries, sort_keys=False)))
    return written


def _no_entry(task: FinishedTask) -> str | None:
    summary = task.summary
    if "repo" not in summary.data:
        return f"data of the kind {summary.data['origin']}"
    main = main_metrics(summary.main, summary.metrics)
    return None if main and summary.metrics[main[0]].value is not None else "no value"


def _write(path: Path, text: str) -> Path:
    atomic_write(path, without_home(without_key_material(text)).encode(), option="--out")
    return path


def _results(task: FinishedTask) -> Iterator[EvalResult]:
    """A result for each metric with a value, except for those that needed no model."""
    from huggingface_hub import EvalResult

    summary = task.summary
    data = summary.data
    for name, metric in summary.metrics.items():
        if metric.value is None or metric.baseline:
            continue
        yield EvalResult(
            task_type=TASK_TYPE,
            task_name=task.benchmark.description or summary.benchmark,
            dataset_type=summary.benchmark,
            dataset_name=summary.task,
            dataset_config=summary.task,
            dataset_revision=data.get("revision") or data.get("fingerprint"),
            dataset_args={
                "run": task.run,
                "paper": task.benchmark.paper or None,
                "version": summary.version,
                "content": summary.content,
                "limit": summary.limit,
                "seed": summary.seed,
                "comparable": summary.comparable,
                "not_comparable_because": list(summary.not_comparable_because),
            },
            metric_type=name,
            metric_name=metric.description or name,
            metric_value=metric.value,
            metric_args={
                "higher_is_better": metric.higher_is_better,
                "interval": list(metric.interval) if metric.interval is not None else None,
                "no_interval": metric.no_interval,
                "confidence": metric.confidence,
                "n": metric.n,
                "users": metric.users,
                "missing": dict(metric.missing),
                "counted_as_worst": metric.counted_as_worst,
            },
        )
