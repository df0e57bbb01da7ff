"""The commands whose subcommands plugins bring, and how their reports are printed and drawn."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click
import msgspec

from harness.analysis.analysis import no_progress
from harness.base.errors import DataError, PluginError
from harness.cli.command import (
    PATH,
    Command,
    CommandGroup,
    Option,
    epilog,
)
from harness.cli.output import print_error, print_json, print_rows
from harness.cli.struct_options import options_of, struct_from
from harness.data.build import ProgressLines
from harness.registry import load_plugins, made
from harness.registry.data_tools import run_tool
from harness.reporting.text import clean_text

if TYPE_CHECKING:
    from harness.analysis.analysis import Progress
    from harness.contracts.report import Report
    from harness.registry import Registration, Registry

R = TypeVar("R", bound="Registration[Any]")


class Tools(CommandGroup):
    """A command whose subcommands are data tools of plugins; without a name it lists them.

    `own` are further subcommands, which no plugin brings, and `about` is what help says of them.
    """

    def __init__(
        self,
        name: str,
        *examples: str,
        own: Mapping[str, Command] = MappingProxyType({}),
        about: str = "",
    ) -> None:
        super().__init__(
            name,
            callback=self._list,
            params=[Option(["--json"], is_flag=True, help="as one JSON document")],
            subcommand_metavar="[NAME [OPTION…]]",
            help="Use a tool. Without a name, list the tools; "
            f"`harness {name} NAME --help` shows the options of one.{about}",
            epilog=epilog(*examples) if examples else None,
        )
        self.own = own

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the tools, and of the command's own."""
        return [*(name for _, name in load_plugins().tools_of(str(self.name))), *self.own]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """The command of a tool, with the options that the tool declares, or the command's own."""
        if cmd_name in self.own:
            return self.own[cmd_name]
        registration = load_plugins().data_tool(cmd_name, str(self.name))
        tool = made(registration)

        def work(options: msgspec.Struct, json: bool) -> Work:
            with shown_progress(quiet=json) as progress:
                report = run_tool(registration, lambda: tool.run(options, progress))
            return report, {"tool": registration.name}, 0

        return report_command(ctx, cmd_name, work, options=tool.options, help=tool.description)

    def _list(self, json: bool) -> int:
        if click.get_current_context().invoked_subcommand is not None:
            return 0
        known = usable(load_plugins().tools_of(str(self.name)))
        tools = [(name, one.get_short_help_str(80)) for name, one in self.own.items()]
        tools += [(one.name, one.description) for one in known]
        if json:
            named = [{"name": name, "description": description} for name, description in tools]
            print_json({f"{self.name}_tools": named})
        else:
            print_rows(tools)
        return 0


Work: TypeAlias = "tuple[Report, dict[str, Any], int]"
"""A report, the document that holds it as JSON, and the exit code."""


def report_command(
    group: click.Context,
    name: str,
    work: Callable[..., Work],
    *,
    options: type[msgspec.Struct],
    help: str,
    arguments: Sequence[click.Parameter] = (),
) -> Command:
    """The command of a tool or an analysis, whose options are the fields of a struct.

    `work` gets the struct, whether JSON is asked for, and the values of the other `arguments`.
    """

    def use(plot: Path | None, json: bool, **given: Any) -> int:
        settings = struct_from(given, options)
        if plot is not None:
            from harness.reporting.figures import check_drawable

            check_drawable(plot)
        json = json or group.params["json"]
        others = {str(one.name): given[str(one.name)] for one in arguments}
        report, document, code = work(settings, json, **others)
        show_report(report, document, plot=plot, json=json)
        return code

    own = [
        *arguments,
        Option(["--json"], is_flag=True, help="as one JSON document"),
        Option(
            ["--plot"], metavar="FILE", type=PATH,
            help="draw the figures: FILE.svg, .png or .pdf, the others in FILE-2, FILE-3, …",
        ),
    ]  # fmt: skip
    return Command(name, callback=use, help=help, params=[*own, *options_of(options, own=own)])


def show_report(report: Report, document: dict[str, Any], *, plot: Path | None, json: bool) -> None:
    """Draw the figures if `plot` is given, and print the report; as JSON it is part of `document`.

    DataError after printing if `plot` is given and the report has no figures.
    """
    drawn: list[Path] = []
    if plot is not None and report.figures:
        from harness.reporting.figures import write_figures

        drawn = write_figures(report.figures, plot)
    if json:
        print_json({**document, "drawn": [str(path) for path in drawn], "report": report})
    else:
        from harness.reporting.grid import print_report

        print_report(report)
        sys.stdout.flush()
        lines = [f"drawn: {path}" for path in drawn] or [
            f"--plot FILE.svg draws a figure: {figure.title}" for figure in report.figures
        ]
        for line in lines:
            print(clean_text(line), file=sys.stderr)
    if plot is not None and not report.figures:
        raise DataError("--plot: the report has no figures", found="a report with tables only")


def usable(registry: Registry[Any, R]) -> list[R]:
    """The registrations that can be used; problems of plugins are printed on standard error."""
    plugins = load_plugins()
    print_error(*plugins.broken, *plugins.problems)
    usable = []
    for name in registry:
        with contextlib.suppress(PluginError):  # two have that name, which is among the problems
            usable.append(registry[name])
    return usable


@contextlib.contextmanager
def shown_progress(
    *, quiet: bool, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """What shows a tool's progress on standard error until the block ends; nothing if `quiet`.

    with shown_progress(quiet=False) as progress:
        progress("users", 10, 400)
    """
    if quiet:
        yield no_progress
    elif sys.stderr.isatty():
        with _bars() as progress:
            yield progress
    else:
        yield ProgressLines(
            lambda line: print(clean_text(line), file=sys.stderr, flush=True), clock
        )


@contextlib.contextmanager
def _bars() -> Iterator[Progress]:
    """Bars on a terminal, one for each kind of thing that is counted; gone at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        known = {}

        def progress(what: str, done: int, of: int | None = None) -> None:
            if what not in known:
                known[what] = bars.add_task(clean_text(what), total=of)
            bars.update(known[what], completed=done, total=of)

        yield progress
