"""`harness data`, and the commands of plugins: tools, and how their reports are shown."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from harness.base.errors import INSTALL_ANALYSIS, DataError, HarnessError, PluginError
from harness.cli.command import PATH, Command, CommandGroup, Option, epilog
from harness.cli.output import print_error, print_json, print_rows
from harness.cli.struct_options import options_of, struct_from

if TYPE_CHECKING:
    from harness.contracts.report import Report
    from harness.registry import Registration, Registry

T = TypeVar("T")
R = TypeVar("R", bound="Registration[Any]")

EXTRA = {"matplotlib", "sklearn"}
"""What the extra `analysis` installs."""


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
        from harness.registry import load_plugins

        return list(load_plugins().tools_of(str(self.name)))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """The command of a tool, with the options that it declares."""
        from harness.registry import load_plugins

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
        from harness.registry import load_plugins

        known = listed(load_plugins().tools_of(str(self.name)))
        if json:
            tools = [{"name": one.name, "description": one.description} for one in known]
            print_json({f"{self.name}_tools": tools})
        elif known:
            print_tools(known)
        else:
            print("no plugin offers a tool for data")
        return 0


def report_options() -> list[Option]:
    """The options that say how a report is shown."""
    return [
        Option(["--json"], is_flag=True, help="as one JSON document"),
        Option(
            ["--plot"], metavar="FILE", type=PATH,
            help="draw its figures: FILE.svg, .png or .pdf, each further one in FILE-2, FILE-3, …",
        ),
    ]  # fmt: skip


def made(registration: Registration[Callable[[], T]]) -> T:
    """The tool that a plugin registered."""
    return _guarded(registration, "cannot be made", registration.factory)


def ran(registration: Registration[Any], run: Callable[[], Report]) -> Report:
    """The report that the tool gives; what it raises is told as the plugin's failure."""
    return _guarded(registration, "failed", run)


def show_report(report: Report, document: dict[str, Any], *, plot: Path | None, json: bool) -> None:
    """Draw the figures that are asked for, and print the report, as JSON within the document.

    DataError after it where figures are asked for and the report has none.
    """
    drawn: list[Path] = []
    if plot is not None and report.figures:
        from harness.reporting.figures import write_figures

        drawn = write_figures(report.figures, plot)
    if json:
        print_json({**document, "drawn": [str(path) for path in drawn], "report": report})
    else:
        _print(report, drawn)
    if plot is not None and not report.figures:
        raise DataError("there is no figure to draw", found="a report of tables alone")


def _print(report: Report, drawn: list[Path]) -> None:
    from harness.reporting.report_tables import print_report
    from harness.reporting.text import clean_text

    print_report(report)
    sys.stdout.flush()
    told = [f"drawn: {path}" for path in drawn] or [
        f"with --plot FILE.svg a figure is drawn: {figure.title}" for figure in report.figures
    ]
    for line in told:
        print(clean_text(line), file=sys.stderr)


def check_plot(plot: Path | None) -> None:
    """Raise what would keep the figures from being drawn, before anything is computed."""
    if plot is not None:
        from harness.reporting.figures import check_drawable

        check_drawable(plot)


def listed(registry: Registry[str, R]) -> list[R]:
    """What can be used by its name; what cannot, and why, is printed on standard error."""
    from harness.registry import load_plugins

    plugins = load_plugins()
    for line in (*plugins.broken, *plugins.problems):
        print_error(line)
    usable = []
    for name in registry:
        with contextlib.suppress(PluginError):  # one of two of that name, among the problems
            usable.append(registry[name])
    return usable


def print_tools(registrations: Iterable[Registration[Any]]) -> None:
    """Print the names of tools with what they give."""
    print_rows([(one.name, one.description) for one in registrations])


def _guarded(registration: Registration[Any], problem: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except HarnessError:
        raise
    except Exception as error:
        absent = error.name if isinstance(error, ModuleNotFoundError) else None
        extra = absent is not None and absent.partition(".")[0] in EXTRA
        trace = traceback.format_exc(limit=-4).strip()
        raise PluginError(
            f"{registration.name!r} {problem}",
            where=str(registration.origin),
            found=f"the package {absent} is not installed" if extra else trace,
            hint=INSTALL_ANALYSIS if extra else "mend the plugin, or tell those who keep it",
        ) from error


data = Tools("data", "harness data", "harness data describe --data sample")
