"""`harness tasks` lists tasks and groups, and `harness validate` checks their files."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice, product
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.inspect import StructType

from harness.base.errors import (
    DataError,
    HarnessError,
    PluginError,
    PromptError,
    TaskError,
    UsageError,
)
from harness.base.redaction import without_query
from harness.cli.command import (
    Row,
    argument,
    command,
    errors_to,
    json_option,
    option,
    print_error,
    print_sections,
)
from harness.cli.run_options import catalogue_with, include_path_option
from harness.contracts.stage import CANDIDATE
from harness.contracts.task import DataSpec, RoleSpec, Task
from harness.prompts import Templates
from harness.registry import Plugins, load_plugins
from harness.registry.task_catalogue import Catalogue, Entry, Selection
from harness.reporting.text import clean_text
from harness.tasks.load import Document, shown
from harness.tasks.options import checked_options, typed_options
from harness.tasks.resolve import locate
from harness.tasks.shapes import choices

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark


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
def tasks(patterns: Sequence[str], all: bool, json: bool, include_path: Sequence[Path]) -> None:
    """List the tasks and groups on one screen; with --all every task, group and tag with its
    description, with a PATTERN those that match it. For the full name of a task, show its
    benchmark, options, roles and data.
    """
    if all and patterns:
        raise UsageError("--all cannot be combined with names", found=" ".join(patterns))
    plugins = load_plugins()
    catalogue = catalogue_with(include_path)
    entries = [entry for entry in catalogue.matching(patterns) if not entry.abstract]
    named = [one for one in entries if one.members is None and one.name in patterns]
    if json:
        benchmarks = _benchmarks_of(named, plugins)
        document = {**_document(entries, catalogue, plugins), "benchmarks": benchmarks}
        print(dumps(document, indent=2, ensure_ascii=False))
        return
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
        listed = folded(others)
        tags = [(tag, ", ".join(names)) for tag, names in _tags(listed).items()]
        print_sections([*_sections(listed), ("tags", tags)])
    print_error(*map(str, plugins.broken), *plugins.problems, *catalogue.problems)


def _benchmarks_of(tasks: Sequence[Entry], plugins: Plugins) -> list[dict[str, str]]:
    """The descriptions of the benchmarks of these tasks; no other benchmark is loaded."""
    found, fields = [], ("name", "description", "paper", "licence")
    for name in dict.fromkeys(task.benchmark or "" for task in tasks):
        with errors_to(print_error):
            if name in plugins.benchmarks:
                found.append({field: getattr(plugins.benchmark(name), field) for field in fields})
    return found


def _document(entries: Sequence[Entry], catalogue: Catalogue, plugins: Plugins) -> dict[str, Any]:
    def rows(*fields: str, groups: bool) -> list[dict[str, Any]]:
        return [
            {name: getattr(one, name) for name in ("name", "description", "tags", *fields)}
            | {"source": one.bundle, "file": str(one.file)}
            for one in entries
            if (one.members is not None) is groups
        ]

    return {
        "tasks": rows("benchmark", "version", groups=False),
        "groups": rows("members", groups=True),
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
        tags = tuple(dict.fromkeys((*shown.get(family, entry).tags, *entry.tags)))
        about = f"{count} tasks: {entry.about}" if entry.about else f"{count} tasks"
        shown[family] = replace(entry, name=entry.pattern, description=about, tags=tags)
    return list(shown.values())


def _tags(entries: Sequence[Entry]) -> dict[str, list[str]]:
    tags = sorted({tag for entry in entries for tag in entry.tags})
    return {tag: [entry.name for entry in entries if tag in entry.tags] for tag in tags}


def _page(task: Task, plugins: Plugins) -> Iterator[tuple[str, list[Row]]]:
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
        text = value if value == default else f"{value} (default {default})"
        yield name, "; ".join(filter(None, [text, meanings.get(name)]))


def _meanings(options: type[msgspec.Struct], above: str = "") -> Iterator[Row]:
    from harness.cli.tools import fields_of

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
    for name, table in data.tables.items():
        columns = []
        for column, spec in table.columns.items():
            kind = ", ".join(spec.one_of) or spec.type
            columns.append(f"{column} ({kind}{'' if spec.required else ', optional'})")
        yield f"table {name}" + ("" if table.required else ", optional"), ", ".join(columns)


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
        yield "tasks, except matrix tasks of these groups ('NAME{…}', in quotes, is many):"
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


FIRST_ROWS = 20
"""The number of rows that are read from each table of the sample."""


@command("harness validate interests", "harness validate my_task.yaml 'perrec*'")
@argument(
    "targets", metavar="TASK|FILE", nargs=-1, required=True, help="what to check",
    candidates="tasks",
)  # fmt: skip
@include_path_option
def validate(targets: Sequence[str], include_path: Sequence[Path]) -> int:
    """Check tasks and groups: their files, benchmark, options, metrics, prompts and sample data,
    and render the prompts in a rehearsal of the sample, which asks no model.

    Takes names, globs, groups, tags and files, as --tasks does.
    """
    plugins = load_plugins()
    checker = Checker(plugins, catalogue_with(include_path))
    wrong = 0
    printed: set[str] = set()
    for target in targets:
        try:
            documents = checker.documents(target)
        except HarnessError as error:
            print_error(error)
            wrong += 1
            continue
        for document in documents:
            found = checker.check(document)
            wrong += bool(found)
            verdict = f"{len(found)} wrong" if found else "ok"
            print(f"{document.name}: {verdict} ({shown(document.file)})", flush=True)
            if not found and document.key in checker.unrehearsed:
                print(f"  not rehearsed: {checker.unrehearsed[document.key]}")
            for one in found:
                # An error in a base or a matrix is found in many tasks and printed once.
                if str(one) not in printed:
                    print_error(one)
            printed.update(map(str, found))
    return TaskError.exit_code if wrong else 0


class Checker:
    """Checks task files, each once, and everything that they refer to.

    State: `unrehearsed` says of correct tasks why they cannot be rehearsed.
    """

    def __init__(self, plugins: Plugins, catalogue: Catalogue) -> None:
        from harness.pipeline.preparation import prompt_folders

        self._plugins = plugins
        self._catalogue = catalogue
        self._templates = Templates(prompt_folders(plugins))
        self._seen: set[Any] = set()
        self._rehearsed: dict[str, list[HarnessError]] = {}
        self.unrehearsed: dict[tuple[Path, str], str] = {}

    def documents(self, target: str) -> list[Document]:
        """The files of a target, with the members of groups, except files returned before."""
        return [*self._collect(self._catalogue.find(target))]

    def check(self, document: Document) -> list[HarnessError]:
        """All errors in one file, in the order of lines, or else that in a rehearsal of its sample.

        Tasks that ask the same prompts of the same data share a rehearsal.
        """
        from harness.tasks.task_schema import completeness_errors, document_errors, in_order

        errors: list[HarnessError] = [*document_errors(document)]
        if errors:
            return errors
        with errors_to(errors.append):
            if document.is_group:
                self._catalogue.group(document)
                return []
            resolved = self._catalogue.resolved(document)
            for base in resolved.documents[:-1]:
                errors += document_errors(base)
            if not resolved.values.get("abstract"):
                errors += completeness_errors(resolved.values, resolved.where)
                errors += [] if errors else self._task_errors(document)
                errors += [] if errors else self._rehearsal_errors(document)
        return in_order(errors)

    def _rehearsal_errors(self, document: Document) -> list[HarnessError]:
        from harness.base.hashing import digest

        task = self._catalogue.task(document)
        if task.data.sample is None or document.key in self.unrehearsed:
            return []
        benchmark = self._plugins.benchmark(task.benchmark)
        options = typed_options(task, benchmark.options)
        prompts = sorted({one for stage in benchmark.stages for one in stage.asked(options)})
        data = msgspec.to_builtins(task.data)
        key = digest([task.benchmark, prompts, dict(task.prompts), data])
        if key not in self._rehearsed:
            self._rehearsed[key] = []
            with errors_to(self._rehearsed[key].append):
                _rehearse(task, benchmark, self._plugins)
        found = self._rehearsed[key]
        if benchmark.suits is not None and any(type(one) is UsageError for one in found):
            # A baseline plays every role of a rehearsal.
            self.unrehearsed[document.key] = f"no baseline suits its roles: {found[0].problem}"
            return []
        return self._held(document, found)

    def _collect(self, documents: tuple[Document, ...]) -> Iterator[Document]:
        for document in documents:
            if document.key in self._seen:
                continue
            self._seen.add(document.key)
            yield document
            if document.is_group:
                # `errors` reports the error of a group whose members are not known.
                with suppress(TaskError):
                    yield from self._collect(self._catalogue.members(document))

    def _held(self, document: Document, errors: list[HarnessError]) -> list[HarnessError]:
        """The errors about a sample that count: without those about its data, if a file names other
        data than the base with the sample.
        """
        documents = self._catalogue.resolved(document).documents
        last = max(n for n, one in enumerate(documents) if one.has(["data", "sample"]))
        ours = (set(one.values.get("data", {})) - {"size"} for one in documents[last + 1 :])
        if not any(ours):
            return errors
        about_data = [error for error in errors if isinstance(error, DataError)]
        if about_data:
            misfit = f"its base's sample does not fit its data: {about_data[0].problem}"
            self.unrehearsed[document.key] = misfit
        return [error for error in errors if error not in about_data]

    def _task_errors(self, document: Document) -> list[HarnessError]:
        from harness.pipeline.plan import check_order
        from harness.prompts.task_prompts import check_prompts_used, wrong_prompts
        from harness.registry.data_tools import build_tool

        task = self._catalogue.task(document)
        try:
            benchmark = self._plugins.benchmark(task.benchmark)
        except HarnessError as error:
            error.where = error.where or locate(task, ["benchmark"])
            return [error, *map(PluginError, self._plugins.problems)]
        origin = str(self._plugins.benchmarks[task.benchmark].origin)
        own = [one for one in self._plugins.loaded if str(one) == origin]
        errors: list[HarnessError] = [
            PluginError(line) for one in own for line in self._plugins.problems_of(one)
        ]
        options = None
        with errors_to(errors.append):
            check_order(benchmark)
        with errors_to(errors.append):
            options = checked_options(task, benchmark)
        errors += prompt_errors(benchmark, self._templates)
        wrong = list(wrong_prompts(task, self._templates))
        errors += wrong
        if options is not None and not wrong:
            with errors_to(errors.append):
                # Which stages a task has is only known once its data is loaded.
                check_prompts_used(task, benchmark.stages, options)
        if options is not None and benchmark.contents is not None:
            with errors_to(errors.append), located(lambda: locate(task, ["options"])):
                benchmark.contents(options)
        for number, source in enumerate(task.data.sources):
            if source.build is not None:
                try:
                    build_tool(self._plugins, source.build)
                except HarnessError as error:
                    error.where = locate(task, ["data", "sources", number, "build"])
                    errors.append(error)
        if task.data.sample is not None:
            errors += self._held(document, self._data_errors(task, "sample", "sample"))
        if task.data.folder is not None:
            errors += self._data_errors(task, "folder", task.data.folder)
        return errors

    def _data_errors(self, task: Task, key: str, place: str) -> list[HarnessError]:
        """The error in the first rows of the data; `key` is its key in the task file."""
        from harness.data import open_dataset

        errors: list[HarnessError] = []
        with errors_to(errors.append), located(lambda: locate(task, ["data", key])):
            dataset = open_dataset(
                task.data, data=place, limit=None, seed=0,
                package=self._plugins.package_of(task.benchmark), task=task.name,
            )  # fmt: skip
            for name, table in task.data.tables.items():
                if not dataset.has(name):
                    continue
                if table.columns:
                    for _ in islice(dataset.table(name).rows(), FIRST_ROWS):
                        pass
                else:
                    dataset.paths(name)
        return errors


@contextmanager
def located(place: Callable[[], str]) -> Iterator[None]:
    """Put a place in a task file before that of an error in the block."""
    try:
        yield
    except HarnessError as error:
        error.where = f"{place()}: {error.where}" if error.where else place()
        raise


def prompt_errors(benchmark: Benchmark, templates: Templates) -> Iterator[HarnessError]:
    """A PromptError for each role of a stage whose prompt is missing or does not compile."""
    for stage in benchmark.stages:
        roles = (*stage.roles, *stage.judges)
        there = set()
        for role, prompt in product(roles, stage.templates):
            try:
                if templates.get(benchmark.name, prompt, role) is not None:
                    there.add((role, prompt))
            except PromptError as error:
                there.add((role, prompt))
                yield error
        for role in roles:
            if role not in {one for one, _ in there}:
                yield PromptError(
                    f"the stage {stage.name!r} has no prompt for the role {role!r}",
                    where=f"benchmark {benchmark.name}",
                    expected=f"prompts/{benchmark.name}/{stage.templates[0]}.{role}.j2",
                )
        for prompt in stage.templates if there else ():
            if prompt not in {one for _, one in there}:
                yield PromptError(
                    f"the stage {stage.name!r} names a prompt that does not exist",
                    where=f"benchmark {benchmark.name}",
                    found=prompt,
                    expected=" or ".join(
                        f"prompts/{benchmark.name}/{prompt}.{role}.j2" for role in roles
                    ),
                )


def _rehearse(task: Task, benchmark: Benchmark, plugins: Plugins) -> None:
    import asyncio

    from harness.pipeline.forecast import rehearse
    from harness.pipeline.preparation import prepare
    from harness.pipeline.settings import make_settings

    settings = make_settings(
        {"tasks": task.name, "model": "baseline", "data": "sample", "allow_self_judging": True}
    )
    roles = {
        role: msgspec.structs.replace(
            task.roles.get(role, RoleSpec()), default="baseline", same_as=None
        )
        for role in benchmark.roles
    }
    selection = Selection(tasks=(msgspec.structs.replace(task, roles=roles),), groups=())
    asyncio.run(rehearse(settings, plugins, prepare(settings, plugins, selection)))
