"""`harness data NAME`, and the commands of plugins: tools that make data or tell what it holds."""

from __future__ import annotations

import argparse
import functools
from typing import TYPE_CHECKING, Any

from harness.cli.reports import add_named_parser
from harness.cli.strict import refuse_problems

if TYPE_CHECKING:
    from harness.plugin_manager import DataToolRegistration, Plugins


def add_parser(subparsers: Any, command: str = "data") -> None:
    """Add the command to the parser."""
    parser = add_named_parser(
        subparsers,
        command,
        an="a tool",
        help="tools that make data or tell what it holds",
        usage=f"harness {command} [--json] | NAME [OPTION…]",
        description="Use a tool. Without a name, the tools there are; "
        f"`harness {command} NAME --help` shows the options of one.",
    )
    parser.set_defaults(func=functools.partial(run, command=command))


def run(args: argparse.Namespace, *, command: str) -> int:
    """List the tools of a command, or use one; the exit code."""
    from harness.plugin_manager import load_plugins

    plugins = load_plugins()
    if args.name is None:
        return _list(plugins, command, json=args.json)
    return _use(plugins.data_tool(args.name, command), args)


def _list(plugins: Plugins, command: str, *, json: bool) -> int:
    from harness.cli.json_output import print_json
    from harness.cli.reports import listed, print_tools

    known = listed(plugins, plugins.tools_of(command))
    if json:
        tools = [{"name": one.name, "description": one.description} for one in known]
        print_json({f"{command}_tools": tools})
    elif known:
        print_tools(known)
    else:
        print("no plugin offers a tool for data")
    return 0


def _use(registration: DataToolRegistration, args: argparse.Namespace) -> int:
    from harness.cli.main import Parser
    from harness.cli.reports import add_report_options, check_plot, made, ran, show
    from harness.cli.struct_options import add_struct_options, struct_from

    tool = made(registration)
    parser = Parser(
        prog=f"harness {registration.command} {registration.name}",
        description=tool.description,
        allow_abbrev=False,
    )
    add_report_options(parser)
    add_struct_options(parser, tool.options)
    chosen = parser.parse_args(["--json", *args.rest] if args.json else args.rest)
    options = struct_from(chosen, tool.options)
    refuse_problems(chosen)
    check_plot(chosen)
    report = ran(registration, lambda: tool.run(options))
    show(report, chosen, {"tool": registration.name})
    return 0
