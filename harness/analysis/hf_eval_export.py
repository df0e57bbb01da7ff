"""Export of stored runs as results in model cards, as the Hugging Face Hub reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.analysis.lm_eval_export import in_file_name
from harness.base.home import without_home
from harness.base.redaction import without_key_material
from harness.runs.atomic_files import atomic_writer
from harness.scoring.finished_task import FinishedTask

if TYPE_CHECKING:
    from huggingface_hub import EvalResult


TASK_TYPE = "text-generation"
CARD = "README.md"
BODY = """
# Results

The metadata of this card holds the results. The `args` of a metric have its interval, the number
of units and users behind it, and what is missing; the `args` of a dataset say whether the results
may stand next to published ones.
"""


def write_hf_eval(folder: Path, tasks: Sequence[FinishedTask]) -> list[Path]:
    """The model cards written: one for each run, in a folder with the run's label.

    A second run with that label has a folder with label and run. No card has a key or the name of
    the home folder.
    """
    from huggingface_hub import ModelCardData

    written = []
    for run in dict.fromkeys(task.run for task in tasks):
        own = [task for task in tasks if task.run == run]
        name = own[0].manifest.label
        into = folder / in_file_name(name)
        if into.exists():
            into = folder / in_file_name(f"{name} {run}")
        into.mkdir(parents=True)
        card = ModelCardData(
            model_name=name, eval_results=[one for task in own for one in _results(task)]
        )
        path = into / CARD
        with atomic_writer(path, option="--out") as file:
            text = without_home(without_key_material(card.to_yaml()))
            file.write(f"---\n{text}\n---\n{BODY}".encode())
        written.append(path)
    return written


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
