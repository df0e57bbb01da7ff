"""`harness judges`: the judges that `--judge` may name beside models, and their arguments."""

from __future__ import annotations

import argparse
from typing import Any

from harness.cli.kinds import add_kind_parser, show_kinds


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of the whole."""
    parser = add_kind_parser(subparsers, "judges", of="judge")
    parser.set_defaults(func=run, command="judges")


def run(args: argparse.Namespace) -> int:
    """Print the judges, or one; the exit code."""
    from harness.plugin_manager import load_plugins

    plugins = load_plugins()
    named = plugins.judge(args.name) if args.name else None
    return show_kinds(args, plugins, plugins.judges, named=named)
