"""`harness export RUN…`: the results of runs as files for other programs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.base.errors import DataError, HarnessError, UsageError, one_of
from harness.cli.command import PATH, command, option
from harness.cli.kept_runs import named_runs, open_run, runs_argument, tag_option
from harness.cli.output import errors_to, print_error
from harness.reporting.text import clean_text
from harness.runs.atomic_files import storage_error

if TYPE_CHECKING:
    from harness.scoring.finished_task import FinishedTask

WRITERS = {
    "inspect": ("inspect_export", "write_inspect"),
    "lm-eval": ("lm_eval_export", "write_lm_eval"),
    "hf-eval": ("hf_eval_export", "write_model_cards"),
    "eval-results": ("hf_eval_export", "write_eval_results"),
    "every-eval-ever": ("every_eval_ever_export", "write_every_eval_ever"),
}
"""The module of `harness.analysis` and its function that write each format, but for tables."""
FORMATS = ("inspect", "csv", "parquet", *[one for one in WRITERS if one != "inspect"])


@command(
    "harness export RUN --format inspect --out logs",
    "harness export RUN --format parquet --out tables",
    "harness export --tag week=47 --format csv --out week47",
    "harness export RUN --format lm-eval --task interests --out results",
)
@runs_argument
@option("--format", type=click.Choice(FORMATS), required=True, help="which files to write")
@option("--out", metavar="DIR", type=PATH, required=True, help="a new folder, or an empty one")
@tag_option()
@option("--task", metavar="NAME", help="this task only")
def export(
    runs: Sequence[str], format: str, out: Path, tag: Mapping[str, str], task: str | None
) -> int:
    """Write the finished tasks of runs to a new folder: logs in which `inspect view` shows every
    answer (inspect), tables of metrics, scores, records and calls (csv, parquet), results and
    samples as lm-evaluation-harness writes them (lm-eval), results for a model at the Hugging Face
    Hub as its card (hf-eval) or as entries (eval-results), or records of the shared data set of
    evaluations (every-eval-ever). No model is called, and no run is changed.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise UsageError(
            "the folder of an export must be new or empty",
            where=str(out),
            found="a folder that is not empty" if out.is_dir() else "a file",
            expected="--out DIR with a new or empty folder",
        )
    tasks, errors = _tasks(named_runs(runs, tag), tag, task)
    if not tasks:
        raise errors[0]
    for path in _write(out, format, tasks):
        print(clean_text(str(path)))
    print_error(*errors)
    return 1 if errors else 0


def _tasks(
    runs: Sequence[str], tags: Mapping[str, str], only: str | None
) -> tuple[list[FinishedTask], list[HarnessError]]:
    from harness.registry import load_plugins
    from harness.scoring.finished_task import finished_task, labels_of

    found = {one[1].run_id: one for one in (open_run(run, tags=tags) for run in runs)}.values()
    labels, plugins = labels_of(manifest for _, manifest in found), load_plugins()
    tasks: list[FinishedTask] = []
    errors: list[HarnessError] = []
    for folder, manifest in found:
        if not manifest.tasks:
            errors.append(DataError("the run has no tasks", where=str(folder.path)))
        for name in manifest.tasks if only is None else [only]:
            with errors_to(errors.append):
                one_of(name, manifest.tasks, f"the run has no task {name!r}")
                benchmark = plugins.benchmark(manifest.tasks[name].task().benchmark)
                label = labels[manifest.run_id]
                tasks.append(finished_task(folder, manifest, name, benchmark, label=label))
    return tasks, errors


def _write(out: Path, format: str, tasks: Sequence[FinishedTask]) -> list[Path]:
    """Write all files or none: they are moved into place when the last one is complete.

    An existing folder is kept, because it may be a working directory or the target of a link.
    """
    try:
        parent = out if out.is_dir() else out.parent
        parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".export.", suffix=".tmp", dir=parent))
        try:
            written = _files(draft, format, tasks)
            if parent is out:
                for path in draft.iterdir():
                    path.rename(out / path.name)
                draft.rmdir()
            else:
                mask = os.umask(0)
                os.umask(mask)
                draft.chmod(0o777 & ~mask)
                draft.rename(out)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        raise storage_error(out, error, option="--out") from error
    return [out / path.relative_to(draft) for path in written]


def _files(folder: Path, format: str, tasks: Sequence[FinishedTask]) -> list[Path]:
    """The files of a format, written into a folder."""
    match format:
        case "csv" | "parquet":
            from harness.analysis.run_tables import tables_of
            from harness.reporting.table_files import write_table

            return [write_table(folder, table, format) for table in tables_of(tasks)]
    module, function = WRITERS[format]
    write = getattr(import_module(f"harness.analysis.{module}"), function)
    written: list[Path] = write(folder, tasks)
    return written
