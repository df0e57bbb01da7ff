"""`harness new-plugin NAME`: a package with a benchmark to begin from."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of the whole."""
    parser = subparsers.add_parser(
        "new-plugin",
        help="write a package with a benchmark of your own to begin from",
        description="Write a package that installs, runs against the baseline and passes its own "
        "tests: pyproject, task, prompt, sample, baseline, tests. Then make it yours.",
        epilog="examples:\n  harness new-plugin my-bench\n"
        "  harness new-plugin my-bench --into ~/work --stages",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "name", metavar="NAME", help="of the package, as my-bench; its task is my_bench"
    )
    parser.add_argument(
        "--into", metavar="DIR", type=Path, default=Path(), help="where its folder is made (here)"
    )
    parser.add_argument(
        "--stages", action="store_true",
        help="two stages, options and a judge, instead of one question a row",
    )  # fmt: skip
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Write the package and say what to do next; the exit code."""
    from harness.scaffold.writing import SIMPLE, STAGES, write_plugin

    written = write_plugin(args.name, STAGES if args.stages else SIMPLE, into=args.into)
    folder = shlex.quote(str(written.folder))
    print(f"{written.folder}: {len(written.files)} files. Next:")
    print(f"  pip install -e {folder}")
    print(f"  {written.run}")
    print(f"  python -m pytest {folder}")
    return 0
