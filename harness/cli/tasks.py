"""`harness tasks`: the tasks and groups that can be run."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import UsageError
from harness.base.redaction import without_query
from harness.cli.command import argument, command, json_option, option
from harness.cli.output import Row, errors_to, print_error, print_sections
from harness.cli.run_options import include_path_option, task_folders
from harness.registry import load_plugins
from harness.reporting.text import clean_text

if TYPE_CHECKING:
    from msgspec import Struct

    from harness.contracts.benchmark import Benchmark
    from harness.contracts.task import DataSpec, Task
    from harness.registry import Plugins
    from harness.registry.task_catalogue import Catalogue, Entry

MORE = "`harness tasks NAME` describes one, `harness tasks --all` describes all"

MOST_LISTED = 4
"""The most tasks from one file that are listed one by one; more are listed as a pattern."""


@command(
    "harness tasks",
    "harness tasks --all",
    "harness tasks 'gist*' tag:example",
    "harness tasks interests",
)
@argument(
    "patterns", metavar="PATTERN", nargs=-1, help="a name, part, glob or tag:WORD",
    candidates="tasks",
)  # fmt: skip
@option("--all", is_flag=True, help="list everything, with descriptions")
@json_option
@include_path_option
def tasks(patterns: Sequence[str], all: bool, json: bool, include_path: Sequence[Path]) -> int:
    """List the tasks and groups on one screen; with --all every task, group and tag with its
    description, with a PATTERN those that match it. For the full name of a task, show its
    benchmark, options, roles and data.
    """
    from harness.registry.task_catalogue import Catalogue

    if all and patterns:
        raise UsageError("--all cannot be combined with names", found=" ".join(patterns))
    plugins = load_plugins()
    catalogue = Catalogue(plugins, include_path=task_folders(include_path))
    entries = [entry for entry in catalogue.matching(patterns) if not entry.abstract]
    named = [one for one in entries if one.members is None and one.name in patterns]
    if json:
        benchmarks = _benchmarks_of(named, plugins)
        document = {**_document(entries, catalogue, plugins), "benchmarks": benchmarks}
        print(dumps(document, indent=2, ensure_ascii=False))
        return 0
    pages = []
    for one in named:
        with errors_to(print_error):
            (task,) = catalogue.select([one.name]).tasks
            print_sections(_page(task, plugins))
            pages.append(one.name)
    others = [one for one in entries if one.name not in pages]
    if patterns:
        print_sections(_sections(others))
    elif not all:
        for line in _overview(others, catalogue):
            print(line)
    else:
        shown = folded(others)
        tags = [(tag, ", ".join(names)) for tag, names in _tags(shown).items()]
        print_sections([*_sections(shown), ("tags", tags)])
    print_error(*map(str, plugins.broken), *plugins.problems, *catalogue.problems)
    return 0


def _benchmarks_of(tasks: Sequence[Entry], plugins: Plugins) -> list[dict[str, str]]:
    """The descriptions of the benchmarks of these tasks; no other benchmark is loaded."""
    found, fields = [], ("name", "description", "paper", "licence")
    for name in dict.fromkeys(task.benchmark or "" for task in tasks):
        with errors_to(print_error):
            if name in plugins.benchmarks:
                benchmark = plugins.benchmark(name)
                found.append({field: getattr(benchmark, field) for field in fields})
    return found


def _document(entries: Sequence[Entry], catalogue: Catalogue, plugins: Plugins) -> dict[str, Any]:
    shared = ("name", "description", "tags")
    fields = {False: (*shared, "benchmark", "version"), True: (*shared, "members")}
    rows: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    for entry in entries:
        is_group = entry.members is not None
        one = {name: getattr(entry, name) for name in fields[is_group]}
        rows[is_group].append({**one, "source": entry.bundle, "file": str(entry.file)})
    return {
        "tasks": rows[False],
        "groups": rows[True],
        "tags": _tags(entries),
        "broken": [
            {"plugin": one.plugin, "distribution": one.distribution, "error": one.error}
            for one in plugins.broken
        ],
        "problems": [*plugins.problems, *catalogue.problems],
    }


def folded(entries: Sequence[Entry]) -> list[Entry]:
    """The entries, with one entry for the many tasks of a file, at the position of the first."""
    counts = Counter((entry.file, entry.pattern) for entry in entries)
    shown: dict[object, Entry] = {}
    for entry in entries:
        family = (entry.file, entry.pattern)
        count = counts[family]
        if entry.pattern is None or count <= MOST_LISTED:
            shown[entry.name] = entry
            continue
        known = shown.get(family, entry)
        tags = tuple(dict.fromkeys((*known.tags, *entry.tags)))
        about = f"{count} tasks: {entry.about}" if entry.about else f"{count} tasks"
        shown[family] = replace(entry, name=entry.pattern, description=about, tags=tags)
    return list(shown.values())


def _tags(entries: Sequence[Entry]) -> dict[str, list[str]]:
    tags = sorted({tag for entry in entries for tag in entry.tags})
    return {tag: [entry.name for entry in entries if tag in entry.tags] for tag in tags}


def _page(task: Task, plugins: Plugins) -> Iterator[tuple[str, list[Row]]]:
    from harness.tasks.load import shown

    yield "task", [(f"{task.name}, version {task.version}", task.description)]
    about = {
        "file": shown(task.file) if task.file else "",
        "over": ", ".join(base.name for base in reversed(task.bases)),
        "tags": ", ".join(task.tags),
    }
    benchmark: Benchmark | None = None
    described = ""
    with errors_to(print_error):
        benchmark = plugins.benchmark(task.benchmark)
        named = {"paper": benchmark.paper, "licence": benchmark.licence}
        parts = [f"{word}: {text}" for word, text in named.items() if text]
        described = "; ".join(filter(None, [benchmark.description.rstrip("."), *parts]))
    yield "about", [(name, text) for name, text in about.items() if text]
    yield "benchmark", [(task.benchmark, described)]
    yield "metrics, the main ones with *", list(_metrics(task, benchmark)) if benchmark else []
    yield "options", list(_options(task, benchmark))
    yield "roles", list(_roles(task, benchmark)) if benchmark else []
    yield "data", list(_data(task.data))


def _metrics(task: Task, benchmark: Benchmark) -> Iterator[Row]:
    from harness.scoring.score_run import chosen_metrics
    from harness.scoring.summary import main_metrics

    with errors_to(print_error):
        metrics = chosen_metrics(task, benchmark)
        main = main_metrics(benchmark.main, metrics)
        for name, metric in metrics.items():
            arrow = "↑" if metric.higher_is_better else "↓"
            yield f"{'*' if name in main else ' '} {name} {arrow}", metric.description


def _options(task: Task, benchmark: Benchmark | None) -> Iterator[Row]:
    import msgspec

    from harness.tasks.options import typed_options

    values: dict[str, Any] = task.options
    defaults: dict[str, Any] = {}
    meanings: dict[str, str] = {}
    if benchmark is not None:
        meanings = dict(_meanings(benchmark.options))
        # An option without a default has no default to show.
        with suppress(TypeError), errors_to(print_error):
            values = msgspec.to_builtins(typed_options(task, benchmark.options))
            defaults = msgspec.to_builtins(benchmark.options())
    default_of = dict(_flat(defaults))
    for name, value in _flat(values):
        default = default_of.get(name, value)
        shown = value if value == default else f"{value} (default {default})"
        yield name, "; ".join(filter(None, [shown, meanings.get(name)]))


def _meanings(options: type[Struct], above: str = "") -> Iterator[Row]:
    from msgspec.inspect import StructType

    from harness.cli.struct_options import fields_of
    from harness.tasks.shapes import choices

    for field, shape, text in fields_of(options):
        path = f"{above}{field.encode_name}"
        if isinstance(shape, StructType):
            yield from _meanings(shape.cls, f"{path}.")
        else:
            known = choices(shape)
            yield path, "".join([text, f" ({', '.join(known)})" if known else ""]).strip()


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[Row]:
    """Every value with its path, in the spelling of `--set`."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{above}{name}.")
        else:
            text = value if isinstance(value, str) else dumps(value, ensure_ascii=False)
            yield f"{above}{name}", text


def _roles(task: Task, benchmark: Benchmark) -> Iterator[Row]:
    from harness.contracts.stage import CANDIDATE
    from harness.contracts.task import RoleSpec
    from harness.pipeline.roles import option_of

    asked = [role for stage in benchmark.stages for role in (*stage.roles, *stage.judges)]
    for role in dict.fromkeys(asked):
        stages = [one for one in benchmark.stages if role in (*one.roles, *one.judges)]
        spec = task.roles.get(role, RoleSpec())
        who = "--model" if role == CANDIDATE else option_of(role)
        if spec.same_as is not None:
            who = f"the {spec.same_as}, or {who}"
        elif spec.default is not None:
            who = f"{spec.default}, or {who}"
        sampling = ", ".join(f"{name} {value}" for name, value in spec.sampling.items())
        always = any(stage.when is None for stage in stages) or role == CANDIDATE
        where = "" if always else "if data and options need it"
        yield role, "; ".join(filter(None, [who, sampling, where]))


def _data(data: DataSpec) -> Iterator[Row]:
    from harness.tasks.load import shown

    for source in data.sources:
        if source.hub is not None:
            yield "hub", source.hub.repo
        elif source.url is not None:
            yield "url", without_query(source.url.address)
        elif source.drive is not None:
            yield "drive", f"{source.drive.name} ({source.drive.address})"
        elif source.build is not None:
            yield "build", f"harness data {source.build.tool}"
        elif source.ask is not None:
            yield "ask", "; ".join(source.ask.steps)
    if data.folder is not None:
        yield "folder", shown(Path(data.folder))
    if data.sample is not None:
        yield "sample", "--data sample"
    if data.size is not None:
        yield "size", f"{data.size:,}"
    tables = [
        name if table.required else f"{name} (optional)" for name, table in data.tables.items()
    ]
    yield "tables", ", ".join(tables)


def _overview(entries: Sequence[Entry], catalogue: Catalogue) -> Iterator[str]:
    """The lines of the screen; the many tasks of a file only if no group contains them."""
    width = shutil.get_terminal_size((100, 24)).columns
    held: dict[str, tuple[str, ...]] = {}
    for one in entries:
        if one.members is not None:
            held[one.name] = ()
            with errors_to(print_error):
                held[one.name] = catalogue.tasks_of(one.name)
    grouped = {name for names in held.values() for name in names}
    if held:
        yield "groups, with the number of their tasks:"
    rows = [
        (clean_text(one.name), f"{len(held[one.name]):,}", clean_text(one.description))
        for one in entries
        if one.members is not None
    ]
    columns = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    for name, count, about in rows:
        start = f"  {name.ljust(columns[0])}  {count.rjust(columns[1])}  "
        room = max(width - len(start), 20)
        yield start + (about if len(about) <= room else about[: room - 1].rstrip() + "…")
    tasks = [one for one in entries if one.members is None]
    alone = [one for one in tasks if one.pattern is None or one.name not in grouped]
    if alone:
        yield "tasks, except matrix tasks of these groups:"
        names = ", ".join(clean_text(one.name) for one in folded(alone))
        yield from textwrap.wrap(
            names, width, initial_indent="  ", subsequent_indent="  ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
    yield MORE


def _sections(entries: Sequence[Entry]) -> list[tuple[str, list[Row]]]:
    tasks = [(entry.name, entry.description) for entry in entries if entry.members is None]
    groups = [
        (entry.name, f"{entry.description} ({', '.join(entry.members)})".lstrip())
        for entry in entries
        if entry.members is not None
    ]
    return [("tasks", tasks), ("groups", groups)]
