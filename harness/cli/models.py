"""`harness models`: the kinds of model that `--model` may name, and their arguments."""

from __future__ import annotations

import argparse
from typing import Any

from harness.cli.kinds import add_kind_parser, show_kinds


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of the whole."""
    parser = add_kind_parser(subparsers, "models", of="model")
    parser.set_defaults(func=run, command="models")


def run(args: argparse.Namespace) -> int:
    """Print the kinds of model, or one; the exit code."""
    from harness.plugin_manager import load_plugins

    plugins = load_plugins()
    named = plugins.model(args.name) if args.name else None
    return show_kinds(args, plugins, plugins.models, named=named)
