"""`harness validate`: checks of task files; runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.cli.command import argument, command
from harness.cli.output import print_error
from harness.cli.run_options import include_path_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from harness.base.errors import HarnessError
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
    """Check tasks and groups: their files, benchmark, options, metrics, prompts and sample data.

    Takes names, globs, groups, tags and files, as --tasks does.
    """
    from harness.base.errors import HarnessError, TaskError
    from harness.cli.run_options import task_folders
    from harness.registry import load_plugins
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
            found = checker.errors(document)
            wrong += bool(found)
            verdict = f"{len(found)} wrong" if found else "ok"
            print(f"{document.name}: {verdict} ({shown(document.file)})", flush=True)
            for one in found:
                # An error in a base or a matrix is found in many tasks and printed once.
                if str(one) not in printed:
                    print_error(one)
            printed.update(map(str, found))
    return TaskError.exit_code if wrong else 0


class Checker:
    """Checks task files, each once, and everything that they refer to."""

    def __init__(self, plugins: Plugins, catalogue: Catalogue) -> None:
        from harness.prompts import Templates

        folders = [bundle.prompts for bundle in plugins.bundles if bundle.prompts is not None]
        self._plugins = plugins
        self._catalogue = catalogue
        self._templates = Templates(folders)
        self._seen: set[Any] = set()

    def documents(self, target: str) -> list[Document]:
        """The files of a target, with the members of groups, except files returned before."""
        found: list[Document] = []
        self._collect(self._catalogue.find(target), found)
        return found

    def errors(self, document: Document) -> list[HarnessError]:
        """All errors in one file."""
        from harness.base.errors import HarnessError
        from harness.tasks.task_schema import completeness_errors, document_errors

        errors: list[HarnessError] = [*document_errors(document)]
        if errors:
            return errors
        try:
            if document.is_group:
                self._catalogue.group(document)
                return []
            resolved = self._catalogue.resolved(document)
            for base in resolved.documents[:-1]:
                errors += document_errors(base)
            if not resolved.values.get("abstract"):
                errors += completeness_errors(resolved.values, resolved.where)
                errors += [] if errors else self._task_errors(self._catalogue.task(document))
        except HarnessError as error:
            errors.append(error)
        return errors

    def _collect(self, documents: tuple[Document, ...], found: list[Document]) -> None:
        from harness.base.errors import TaskError

        for document in documents:
            if document.key in self._seen:
                continue
            self._seen.add(document.key)
            found.append(document)
            if document.is_group:
                try:
                    members = self._catalogue.members(document)
                except TaskError:
                    # `errors` reports the error of the group; its members are not known.
                    continue
                self._collect(members, found)

    def _task_errors(self, task: Task) -> list[HarnessError]:
        from harness.base.errors import HarnessError
        from harness.prompts.task_prompts import check_prompts_used, wrong_prompts
        from harness.tasks.check import mismatches
        from harness.tasks.locate import locate
        from harness.tasks.options import typed_options

        try:
            benchmark = self._plugins.benchmark(task.benchmark)
        except HarnessError as error:
            error.where = error.where or locate(task, ["benchmark"])
            return [error]
        errors: list[HarnessError] = [*mismatches(task, benchmark)]
        try:
            options = typed_options(task, benchmark.options)
        except HarnessError as error:
            errors.append(error)
            options = None
        errors += prompt_errors(benchmark, self._templates)
        wrong = list(wrong_prompts(task, self._templates))
        errors += wrong
        if options is not None and not wrong:
            try:
                # Which stages a task has is only known once its data is loaded.
                check_prompts_used(task, benchmark.stages, options)
            except HarnessError as error:
                errors.append(error)
        if options is not None and benchmark.contents is not None:
            try:
                benchmark.contents(options)
            except HarnessError as error:
                location = locate(task, ["options"])
                error.where = f"{location}: {error.where}" if error.where else location
                errors.append(error)
        if task.data.sample is not None:
            errors += self._data_errors(task, "sample", "sample")
        if task.data.folder is not None:
            errors += self._data_errors(task, "folder", task.data.folder)
        return errors

    def _data_errors(self, task: Task, key: str, place: str) -> Iterator[HarnessError]:
        """The error in the first rows of the data; `key` is its key in the task file."""
        from itertools import islice

        from harness.base.errors import HarnessError
        from harness.data import open_dataset
        from harness.tasks.locate import locate

        try:
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
        except HarnessError as error:
            location = locate(task, ["data", key])
            error.where = f"{location}: {error.where}" if error.where else location
            yield error


def prompt_errors(benchmark: Benchmark, templates: Templates) -> Iterator[HarnessError]:
    """A PromptError for each role of a stage whose prompt is missing or does not compile."""
    from harness.base.errors import PromptError

    for stage in benchmark.stages:
        for role in (*stage.roles, *stage.judges):
            found = False
            for prompt in stage.templates:
                try:
                    found = templates.get(benchmark.name, prompt, role) is not None or found
                except PromptError as error:
                    found = True
                    yield error
            if not found:
                yield PromptError(
                    f"the stage {stage.name!r} has no prompt for the role {role!r}",
                    where=f"benchmark {benchmark.name}",
                    expected=f"prompts/{benchmark.name}/{stage.templates[0]}.{role}.j2",
                )
