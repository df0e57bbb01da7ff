"""`harness validate`: checks of task files; runs nothing."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice, product
from typing import TYPE_CHECKING, Any

from harness.base.errors import (
    DataError,
    HarnessError,
    PluginError,
    PromptError,
    TaskError,
    UsageError,
)
from harness.cli.command import argument, command
from harness.cli.output import errors_to, print_error
from harness.cli.run_options import include_path_option, task_folders
from harness.registry import load_plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from harness.contracts.benchmark import Benchmark
    from harness.contracts.task import Task
    from harness.prompts import Templates
    from harness.registry import Plugins
    from harness.registry.task_catalogue import Catalogue
    from harness.tasks.load import Document

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
    from harness.registry.task_catalogue import Catalogue
    from harness.tasks.load import shown

    plugins = load_plugins()
    checker = Checker(plugins, Catalogue(plugins, include_path=task_folders(include_path)))
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
            found = checker.errors(document) or checker.rehearsal_errors(document)
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
        from harness.prompts import Templates

        self._plugins = plugins
        self._catalogue = catalogue
        self._templates = Templates(prompt_folders(plugins))
        self._seen: set[Any] = set()
        self._rehearsed: dict[str, list[HarnessError]] = {}
        self.unrehearsed: dict[tuple[Path, str], str] = {}

    def documents(self, target: str) -> list[Document]:
        """The files of a target, with the members of groups, except files returned before."""
        return [*self._collect(self._catalogue.find(target))]

    def errors(self, document: Document) -> list[HarnessError]:
        """All errors in one file, in the order of lines."""
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
        return in_order(errors)

    def rehearsal_errors(self, document: Document) -> list[HarnessError]:
        """The error in a rehearsal of a correct task over its sample, if there is one.

        Tasks that ask the same prompts of the same data share a rehearsal.
        """
        import msgspec

        from harness.base.hashing import digest
        from harness.tasks.options import typed_options

        if document.is_group or self._catalogue.resolved(document).values.get("abstract"):
            return []
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
                try:
                    members = self._catalogue.members(document)
                except TaskError:
                    # `errors` reports the error of the group; its members are not known.
                    continue
                yield from self._collect(members)

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
        from harness.tasks.options import checked_options
        from harness.tasks.resolve import locate

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
        from harness.tasks.resolve import locate

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
    """Rehearse a task over its sample; the baseline plays all roles."""
    import asyncio

    import msgspec

    from harness.contracts.task import RoleSpec
    from harness.pipeline.forecast import rehearse
    from harness.pipeline.preparation import prepare
    from harness.pipeline.settings import make_settings
    from harness.registry.task_catalogue import Selection

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
