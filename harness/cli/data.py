"""`harness data NAME`, and the commands of plugins: tools that make data or tell what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.command import Command, CommandGroup, Option, epilog
from harness.cli.output import print_json
from harness.cli.reports import (
    check_plot,
    listed,
    made,
    print_tools,
    ran,
    report_options,
    show_report,
)
from harness.cli.struct_options import options_of, struct_from


class Tools(CommandGroup):
    """A command whose own commands are tools of plugins; without a name they are listed."""

    def __init__(self, name: str, *examples: str) -> None:
        super().__init__(
            name,
            callback=self._list,
            params=[Option(["--json"], is_flag=True, help="as one JSON document")],
            subcommand_metavar="[NAME [OPTION…]]",
            help="Use a tool. Without a name, the tools there are; "
            f"`harness {name} NAME --help` shows the options of one.",
            epilog=epilog(*examples) if examples else None,
        )

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the tools."""
        from harness.plugin_manager import load_plugins

        return list(load_plugins().tools_of(str(self.name)))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """The command of a tool, with the options that it declares."""
        from harness.plugin_manager import load_plugins

        registration = load_plugins().data_tool(cmd_name, str(self.name))
        tool = made(registration)

        def use(plot: Path | None, json: bool, **given: Any) -> int:
            options = struct_from(given, tool.options)
            check_plot(plot)
            report = ran(registration, lambda: tool.run(options))
            json = json or ctx.params["json"]
            show_report(report, {"tool": registration.name}, plot=plot, json=json)
            return 0

        own = report_options()
        params = [*own, *options_of(tool.options, beside=own)]
        return Command(cmd_name, callback=use, help=tool.description, params=params)

    def _list(self, json: bool) -> int:
        if click.get_current_context().invoked_subcommand is not None:
            return 0
        from harness.plugin_manager import load_plugins

        known = listed(load_plugins().tools_of(str(self.name)))
        if json:
            tools = [{"name": one.name, "description": one.description} for one in known]
            print_json({f"{self.name}_tools": tools})
        elif known:
            print_tools(known)
        else:
            print("no plugin offers a tool for data")
        return 0


data = Tools("data", "harness data", "harness data describe --data sample")
