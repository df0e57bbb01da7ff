"""`--strict_plugins`: a broken plugin, a misspelt hook or a name given twice ends the command."""

from __future__ import annotations

import argparse


def add_strict(parser: argparse.ArgumentParser) -> None:
    """Give a parser the option."""
    parser.add_argument(
        "--strict_plugins",
        action="store_true",
        help="do nothing where a plugin is broken, a hook misspelt or a name given twice",
    )


def refuse_problems(args: argparse.Namespace) -> None:
    """Raise PluginError for what is wrong with the plugins, where the option was given."""
    if args.strict_plugins:
        from harness.plugin_manager import load_plugins

        load_plugins().refuse_problems()
