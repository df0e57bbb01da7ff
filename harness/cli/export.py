"""`harness export RUN`: a run's results in files that other programs read."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import DataError, HarnessError

if TYPE_CHECKING:
    from harness.results.kept import KeptTask

FORMATS = ("csv", "parquet", "lm-eval")


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser."""
    parser = subparsers.add_parser(
        "export",
        help="a run as CSV or Parquet tables, or as lm-evaluation-harness writes it",
        description="Write the finished tasks of a run to a new folder: metrics, scores, records "
        "and calls as tables (csv, parquet), or results and samples as lm-evaluation-harness "
        "writes them (lm-eval). No model is asked, and the run is left as it is.",
    )
    parser.add_argument("run", metavar="RUN", help="the folder of a run")
    parser.add_argument("--format", choices=FORMATS, required=True, help="which files to write")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="a new folder, or an empty one"
    )
    parser.add_argument("--task", metavar="NAME", help="this task only")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Write the files; 1 where a task had to be left out."""
    from harness.cli.errors import print_error
    from harness.results.tables import refuse_full

    refuse_full(args.out)
    tasks, errors = _tasks(args)
    if not tasks:
        raise errors[0]
    for path in _write(args.out, args.format, tasks):
        print(path)
    for error in errors:
        print_error(error)
    return 1 if errors else 0


def _tasks(args: argparse.Namespace) -> tuple[list[KeptTask], list[HarnessError]]:
    """The finished tasks of the run that are meant, and why others are left out."""
    from harness.cli.kept_runs import one_of, open_run
    from harness.plugin_manager import load_plugins
    from harness.results.kept import kept_task

    folder, manifest = open_run(args.run)
    names = list(manifest.tasks)
    if args.task is not None:
        names = [one_of(args.task, names, "task")]
    if not names:
        raise DataError("the run has no task", where=str(folder.path))
    plugins = load_plugins()
    tasks, errors = [], []
    for name in names:
        try:
            benchmark = plugins.benchmark(manifest.tasks[name].task().benchmark)
            tasks.append(kept_task(folder, manifest, name, benchmark, label=manifest.model))
        except HarnessError as error:
            errors.append(error)
    return tasks, errors


def _write(out: Path, format: str, tasks: Sequence[KeptTask]) -> list[Path]:
    """Write all files, or none: they take their place when the last one is whole.

    A folder that is there stays the same folder: somebody may stand in it, or link to it.
    """
    from harness.reporting.table_files import write_csv, write_parquet
    from harness.results.files import storage_error
    from harness.results.lm_eval import write_lm_eval
    from harness.results.tables import tables_of

    try:
        beside = out if out.is_dir() else out.parent
        beside.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix=".export.", suffix=".tmp", dir=beside))
        try:
            if format == "lm-eval":
                written = write_lm_eval(half, tasks)
            else:
                write = write_csv if format == "csv" else write_parquet
                written = [write(half, table) for table in tables_of(tasks)]
            if beside is out:
                for path in half.iterdir():
                    path.rename(out / path.name)
                half.rmdir()
            else:
                half.chmod(0o777 & ~_mask())
                half.rename(out)
        except BaseException:
            shutil.rmtree(half, ignore_errors=True)
            raise
    except OSError as error:
        raise storage_error(out, error, option="--out") from error
    return [out / path.relative_to(half) for path in written]


def _mask() -> int:
    import os

    mask = os.umask(0)
    os.umask(mask)
    return mask
