"""Commands whose subcommands plugins bring: `harness analyse`, `harness data` and tools."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import click
import msgspec
from msgspec import inspect
from msgspec.structs import FieldInfo

from harness.analysis.analysis import Analysis, Progress, no_progress
from harness.base.errors import (
    DataError,
    HarnessError,
    PluginError,
    UsageError,
    did_you_mean,
)
from harness.cli.command import (
    PATH,
    Argument,
    Command,
    CommandGroup,
    Option,
    Row,
    argument,
    command,
    epilog,
    json_option,
    print_error,
    print_json,
    print_rows,
)
from harness.cli.run_options import catalogue_with, include_path_option
from harness.cli.runs import open_runs, opened, read_finished
from harness.contracts.report import Report
from harness.contracts.task import Task
from harness.data import TaskData, open_dataset
from harness.data.build import ProgressLines
from harness.data.fetch import Fetching
from harness.data.files import patterns
from harness.pipeline.settings import task_names
from harness.registry import (
    ANY_BENCHMARK,
    AnalysisRegistration,
    Registration,
    Registry,
    load_plugins,
    made,
)
from harness.registry.data_tools import build_tool, run_tool
from harness.registry.hookspecs import TAKEN_TOOLS
from harness.reporting.figures import check_drawable, write_figures
from harness.reporting.text import clean_text
from harness.tasks.shapes import LISTS, Misfit, choices, in_words
from harness.tasks.task_schema import typed

S = TypeVar("S", bound=msgspec.Struct)

PREFIX = "option_"
"""The prefix of these options among the parameters of a command."""

_NOT_A_WORD = (
    *LISTS,
    inspect.TupleType,
    inspect.DictType,
    inspect.StructType,
    inspect.TypedDictType,
    inspect.DataclassType,
    inspect.NamedTupleType,
)
"""Types that no single word on a command line can give."""


def options_of(kind: type[msgspec.Struct], *, own: Sequence[click.Parameter] = ()) -> list[Option]:
    """An option for each field of a struct, under the field's encoded name.

    A list is given by repetition, a bool as a flag. Descriptions come from `msgspec.Meta`.
    PluginError for a field of a type that no word can give, or with the name of an option in
    `own`, the other options of the command.

        params = [*own, *options_of(tool.options, own=own)]
    """
    options: list[Option] = []
    for field, shape, text in fields_of(kind):
        inner = _inner(shape)
        path = isinstance(inner, inspect.CustomType) and inner.cls is Path
        if isinstance(inner, _NOT_A_WORD) or (isinstance(inner, inspect.CustomType) and not path):
            raise PluginError(
                f"the field {field.name!r} of {kind.__name__} cannot be an option",
                found=f"the type {field.type}",
                expected="a bool, int, float, str, Path, Literal or Enum, or a list of one of "
                "these",
            )
        options += _options(field, shape, text)
    taken = {name for param in own for name in param.opts} | {"--help"}
    for option in options:
        if not taken.isdisjoint(option.opts):
            raise PluginError(
                f"the field {str(option.name).removeprefix(PREFIX)!r} of {kind.__name__} has the "
                "name of an option of the command itself",
                expected="a field with a name that no option of the command has",
            )
    return options


def struct_from(given: Mapping[str, Any], kind: type[S]) -> S:
    """The struct with the values of a command; UsageError names the option that is wrong."""
    values = {}
    shapes = {field.encode_name: _inner(shape) for field, shape, _ in fields_of(kind)}
    for field, name in zip(kind.__struct_fields__, shapes, strict=True):
        words, meant = given[PREFIX + field], partial(_meant, shapes[name])
        if words is not None and words != ():
            values[name] = [*map(meant, words)] if isinstance(words, tuple) else meant(words)

    def unfit(one: Misfit) -> UsageError:
        if not one.path:
            return UsageError("these options cannot be combined", found=one.expected)
        name = str(one.path[0])
        return UsageError(
            f"the value of --{name.replace('-', '_')} is not valid",
            found=str(one.found),
            expected=in_words(shapes[name]),
            hint=did_you_mean(str(one.found), one.known),
        )

    return typed(values, kind, unfit, made=lambda kind, value: kind(value))


def _meant(shape: inspect.Type, word: Any) -> Any:
    """What a word is as a value of a type; a word that is none stays."""
    if isinstance(shape, inspect.UnionType):
        return next((one for each in shape.types if (one := _meant(each, word)) != word), word)
    if isinstance(shape, (inspect.IntType, inspect.FloatType)):
        try:
            number = int(word) if isinstance(shape, inspect.IntType) else float(word)
        except ValueError:
            return word
        return number if math.isfinite(number) else word
    listed = shape.values if isinstance(shape, inspect.LiteralType) else ()
    if isinstance(shape, inspect.EnumType):
        listed = tuple(one.value for one in shape.cls)
    return next((one for one in listed if str(one) == word), word)


def fields_of(kind: type[msgspec.Struct]) -> Iterator[tuple[FieldInfo, inspect.Type, str]]:
    """Each field with its type (without None, if it is optional) and its description."""
    for field in msgspec.structs.fields(kind):
        shape = inspect.type_info(field.type)
        help_text = ""
        if isinstance(shape, inspect.Metadata):
            help_text = (shape.extra_json_schema or {}).get("description", "")
            shape = shape.type
        if isinstance(shape, inspect.UnionType):
            others = [one for one in shape.types if not isinstance(one, inspect.NoneType)]
            shape = others[0] if len(others) == 1 else shape
        yield field, shape, help_text


def _options(field: FieldInfo, shape: inspect.Type, text: str) -> Iterator[Option]:
    name, dest = field.encode_name.replace("-", "_"), PREFIX + field.name
    make = partial(Option, section="Its own options")
    if isinstance(shape, inspect.BoolType):
        switch = partial(make, is_flag=True, default=None)
        if field.default is not True:
            yield switch([f"--{name}", dest], flag_value=True, help=text)
        if field.default is not False:
            opposite = text if field.default is True else "the opposite"
            yield switch([f"--no_{name}", dest], flag_value=False, help=opposite)
        return
    several = isinstance(shape, LISTS)
    parts = [text, "may be given again" if several else "", _default(field)]
    inner = _inner(shape)
    plain = {inspect.CustomType: "FILE", inspect.IntType: "N", inspect.FloatType: "X"}
    yield make(
        [f"--{name}", dest],
        metavar="|".join(choices(inner)) or plain.get(type(inner), "TEXT"),
        multiple=several,
        required=field.required,
        help="; ".join(part for part in parts if part),
    )


def _inner(shape: inspect.Type) -> inspect.Type:
    inner: inspect.Type = shape.item_type if isinstance(shape, LISTS) else shape
    return inner.type if isinstance(inner, inspect.Metadata) else inner


def _default(field: FieldInfo) -> str:
    if field.required or field.default in (None, "", (), msgspec.NODEFAULT):
        return ""
    value = field.default
    values = value if isinstance(value, tuple) else (value,)
    return f"default: {', '.join(str(getattr(one, 'value', one)) for one in values)}"


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

    def _list(self, json: bool) -> None:
        if click.get_current_context().invoked_subcommand is not None:
            return
        known = usable(load_plugins().tools_of(str(self.name)))
        tools = [(name, one.get_short_help_str(80)) for name, one in self.own.items()]
        tools += [(one.name, one.description) for one in known]
        if json:
            named = [{"name": name, "description": description} for name, description in tools]
            print_json({f"{self.name}_tools": named})
        else:
            print_rows(tools)


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
            check_drawable(plot)
        json = json or group.params["json"]
        others = {str(one.name): given[str(one.name)] for one in arguments}
        report, document, code = work(settings, json, **others)
        drawn = write_figures(report.figures, plot) if plot is not None else []
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


class Analyses(CommandGroup):
    """A command whose subcommands are the analyses of plugins."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the analyses."""
        return list(load_plugins().analyses)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """The command of an analysis, with the options that the analysis declares."""
        registration = load_plugins().analysis(cmd_name)
        analysis = made(registration)
        arguments = [
            Argument(
                ["runs"], metavar="RUN", nargs=-1, required=True, help="the folder of a run",
                candidates="runs",
            ),
            Option(
                ["--task"], metavar="NAME", multiple=True,
                help="this task only; may be given again",
            ),
        ]  # fmt: skip
        of = _describe_benchmark(registration.benchmark)
        return report_command(
            ctx,
            cmd_name,
            partial(_analyse, registration, analysis),
            options=analysis.options,
            help=f"{analysis.description.rstrip('.')}; for runs of {of}.",
            arguments=arguments,
        )


@command(
    "harness analyse gist-failure-modes RUN --plot modes.svg",
    cls=Analyses,
    subcommand_metavar="NAME RUN… [OPTION…]",
)
@json_option
def analyse(json: bool) -> None:
    """Analyse stored runs; no model is called. `harness list analyses` lists the analyses, `harness
    analyse NAME --help` shows the options of one.
    """
    if click.get_current_context().invoked_subcommand is None:
        raise UsageError("NAME is missing", hint="`harness list analyses` lists the analyses")


def _analyse(
    registration: AnalysisRegistration,
    analysis: Analysis,
    options: Any,
    json: bool,
    *,
    runs: Sequence[str],
    task: Sequence[str],
) -> Work:
    from harness.analysis.report_notes import told_apart, with_notes
    from harness.scoring.score_run import Unfinished
    from harness.tasks.repeats import task_and_repeat

    chosen = open_runs(runs, {}, only=task, of=registration.benchmark, copies=False)
    for run, _, manifest in opened(chosen):
        run.label = manifest.label  # `told_apart` sees only the runs with a task in the analysis
        # Repeats of a task are not tasks of their own: without --task, the first is analysed.
        run.benchmarks = {
            name: benchmark
            for name, benchmark in run.benchmarks.items()
            if task or task_and_repeat(name)[1] == 1
        }
    read_finished(chosen, "left out")
    left_out = [error for run in chosen for error in run.errors]
    last = None if any(run.opened for run in chosen) else left_out.pop()
    print_error(*left_out)
    if last is not None:
        raise last
    tasks = told_apart([one for run in chosen for one in run.kept])
    if not tasks:
        names = dict.fromkeys(name for run in chosen for name in run.benchmarks)
        raise DataError(
            f"the runs have no task that {registration.name!r} can analyse",
            found=f"unusable tasks: {', '.join(names)}" if names else "no task of that benchmark",
            expected=f"runs with a finished task of {_describe_benchmark(registration.benchmark)}",
        )
    report = with_notes(run_tool(registration, lambda: analysis.run(tasks, options)), tasks)
    document = {
        "analysis": registration.name,
        "tasks": [{"task": one.task.name, "run": one.run, "label": one.label} for one in tasks],
        "left_out": [str(problem) for problem in left_out],
    }
    codes = [one.exit_code for one in left_out if not isinstance(one, Unfinished)]
    return report, document, codes[-1] if codes else 0


def _describe_benchmark(benchmark: str) -> str:
    return "any benchmark" if benchmark == ANY_BENCHMARK else f"the benchmark {benchmark!r}"


names_of_tasks = argument(
    "names", metavar="TASK", nargs=-1, required=True, help="tasks, groups, globs or YAML files",
    candidates="tasks",
)  # fmt: skip


@command(
    "harness data fetch my_task.yaml",
    short_help="fetch the data of tasks, for runs without a network",
    params=[
        Option(
            ["--download/--offline"], is_flag=True, default=None,
            help="fetch data above 1 GB without asking, or check what is in the caches",
        ),
    ],
)  # fmt: skip
@names_of_tasks
@include_path_option
def fetch(names: Sequence[str], include_path: Sequence[Path], download: bool | None) -> int:
    """Fetch the data of tasks from their sources, so that a run needs no network for it.

    Prints the files of each task.
    """
    return _print_places(names, include_path, offline=download is False, download=download is True)


@command("harness data where my_task.yaml", short_help="print where the data of tasks lies")
@names_of_tasks
@include_path_option
def where(names: Sequence[str], include_path: Sequence[Path]) -> int:
    """Print where the data of tasks lies on this machine; fetches nothing."""
    return _print_places(names, include_path, offline=True, look=True, say=lambda line: None)


def _print_places(names: Sequence[str], include_path: Sequence[Path], **how: Any) -> int:
    """Print the files of tasks, then what is not here of data that several may share, with the
    reason; return the exit code. `how` says how data is fetched."""
    fetching = Fetching(tools=partial(build_tool, load_plugins()), **how)
    wanted = [one for name in names for one in task_names(name)]
    absent: dict[bytes, tuple[HarnessError, list[Task]]] = {}
    for task in catalogue_with(include_path).select(wanted).tasks:
        shared = msgspec.json.encode(task.data)
        if shared not in absent:
            try:
                # A task's own data, as a run without --data opens it.
                data = open_dataset(
                    task.data, data=task.data.folder, limit=None, seed=0, package=None,
                    task=task.name, fetching=fetching,
                )  # fmt: skip
                print_rows([*_files(task, data)])
                continue
            except HarnessError as error:
                absent[shared] = error, []
        absent[shared][1].append(task)
    for reason, tasks in absent.values():
        rows = [(task.name, "not on this machine") for task in tasks]
        tables = tasks[0].data.tables.items()
        print_rows([*rows, *((f"  {table}", patterns(table, spec)[0]) for table, spec in tables)])
        print_error(reason)
    return 1 if absent else 0


def _files(task: Task, data: TaskData) -> Iterator[Row]:
    from harness.reporting.tables import data_name

    digest = data.about.get("digest")
    name = data_name({"origin": data.origin, **data.about})
    yield task.name, f"{name}, {digest}" if digest else name
    for table in data.tables:
        if table in data.files:
            for path in data.paths(table):
                yield f"  {table}", str(path)


data = Tools(
    "data", "harness data", "harness data describe --data sample",
    own=dict(zip(TAKEN_TOOLS, (fetch, where), strict=True)),
    about=" `fetch TASK…` fetches the data of tasks; `where TASK…` finds it.",
)  # fmt: skip
