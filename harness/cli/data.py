"""`harness data NAME`: tools that make data, check it or tell what it holds."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from harness.cli.reports import add_named_parser

if TYPE_CHECKING:
    from harness.hookspecs import DataToolFactory
    from harness.plugin_manager import Plugins, Registration


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser."""
    parser = add_named_parser(
        subparsers,
        "data",
        an="a tool",
        help="tools that make data or tell what it holds",
        usage="harness data [--json] | NAME [OPTION…]",
        description="Use a tool for data. Without a name, the tools there are; "
        "`harness data NAME --help` shows the options of one.",
    )
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """List the tools, or use one; the exit code."""
    from harness.plugin_manager import load_plugins

    plugins = load_plugins()
    if args.name is None:
        return _list(plugins, json=args.json)
    return _use(plugins.data_tool(args.name), args)


def _list(plugins: Plugins, *, json: bool) -> int:
    from harness.cli.json_output import print_json
    from harness.cli.reports import listed, print_tools

    known = listed(plugins, plugins.data_tools)
    if json:
        tools = [{"name": one.name, "description": one.description} for one in known]
        print_json({"data_tools": tools})
    elif known:
        print_tools(known)
    else:
        print("no plugin offers a tool for data")
    return 0


def _use(registration: Registration[DataToolFactory], args: argparse.Namespace) -> int:
    from harness.cli.main import Parser
    from harness.cli.reports import add_report_options, check_plot, made, ran, show
    from harness.cli.struct_options import add_struct_options, struct_from

    tool = made(registration)
    parser = Parser(
        prog=f"harness data {registration.name}", description=tool.description, allow_abbrev=False
    )
    add_report_options(parser)
    add_struct_options(parser, tool.options)
    chosen = parser.parse_args(["--json", *args.rest] if args.json else args.rest)
    options = struct_from(chosen, tool.options)
    check_plot(chosen)
    report = ran(registration, lambda: tool.run(options))
    show(report, chosen, {"tool": registration.name})
    return 0
