"""A plugin on trial: what it registered, and runs of its tasks over their samples."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from harness.base.errors import HarnessError, PluginError, UsageError, did_you_mean
from harness.base.resources import top_level
from harness.contracts.benchmark import Benchmark
from harness.contracts.task import Task
from harness.pipeline.run import RunResult
from harness.registry import GROUP, LoadedPlugin, Plugins, Registration, Registry, load_plugins
from harness.registry.task_catalogue import Catalogue
from harness.runs.run_folder import RunFolder
from harness.testing.running import Player, run_tasks

if TYPE_CHECKING:
    from harness.registry.task_catalogue import Entry

K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound="Registration[Any]")


RULE_JUDGE = "lexical"
OTHER_COMMAND_S = 600
"""Seconds that a run in another process may take."""

RUN_ELSEWHERE = """
import json, pathlib, sys
from harness.testing.running import run_tasks
result = run_tasks(**json.loads(sys.argv[1]), folder=pathlib.Path())
sys.exit(str(result.errors[0]) if result.errors else result.exit_code)
"""
"""What another process does: run tasks in the folder where it was started."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One installed plugin among all others."""

    point: EntryPoint
    plugins: Plugins
    catalogue: Catalogue

    @property
    def name(self) -> str:
        """The name of its entry point."""
        return self.point.name

    @property
    def package(self) -> str:
        """The top-level package that it is in."""
        return top_level(self.point.module)

    @functools.cached_property
    def distribution(self) -> str:
        """What is installed with pip; the same word that plugins' origins have for it."""
        return self.point.dist.name if self.point.dist is not None else "an unknown distribution"

    @functools.cached_property
    def loaded(self) -> LoadedPlugin | None:
        """The plugin as it is in use; None where it is broken, or left out."""
        place = (self.name, self.distribution)
        found = (one for one in self.plugins.loaded if (one.entry_point, one.distribution) == place)
        return next(found, None)

    @functools.cached_property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmarks that it registered."""
        return self.of(self.plugins.benchmarks)

    def of(self, registry: Registry[K, R]) -> tuple[K, ...]:
        """The names in a registry that this plugin gave, but those that another gave as well."""
        own = []
        for name in registry:
            try:
                origin = registry[name].origin
            except PluginError:
                # Given twice, which `Plugins.problems` tells.
                continue
            if (origin.plugin, origin.distribution) == (self.name, self.distribution):
                own.append(name)
        return tuple(own)

    @functools.cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The tasks, bases and groups of its package or of its benchmarks."""
        return tuple(
            entry
            for entry in self.catalogue.entries
            if entry.bundle == self.package or entry.benchmark in self.benchmarks
        )


def subject(name: str) -> Subject:
    """The installed plugin of that name; its package does as well, where only one plugin is in it.

    Raises PluginError for a name that no entry point has.
    """
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    found = [point for point in points if point.name == name]
    found = found or [point for point in points if top_level(point.module) == top_level(name)]
    if len(found) != 1:
        among = found or points
        raise PluginError(
            f"{'several plugins are' if found else 'no plugin is'} called {name!r}",
            found=", ".join(f"{point.name} = {point.value}" for point in among) or "no plugin",
            expected=f"the name of one entry point of the group {GROUP!r}, or its package",
            hint="ask for one of them by its own name"
            if found
            else did_you_mean(name, [point.name for point in points])
            or "install the package first: pip install -e .",
        )
    plugins = load_plugins()
    return Subject(point=found[0], plugins=plugins, catalogue=Catalogue(plugins))


class CannotBeTried(Exception):
    """A check that stands on something that does not work; the argument is what."""


@dataclass(frozen=True, kw_only=True)
class Tried:
    """The tasks of one benchmark that are run together, and the roles that they ask."""

    benchmark: Benchmark
    tasks: tuple[Task, ...]
    roles: frozenset[str]
    judges: frozenset[str]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tasks."""
        return tuple(task.name for task in self.tasks)

    def others(self, *, judge: Player, other: Player) -> dict[str, Player]:
        """Who plays each role but the candidate."""
        played: dict[str, Player] = dict.fromkeys(self.judges, judge)
        return played | dict.fromkeys(self.roles - {"candidate"}, other)


class Trial:
    """Runs of a plugin's tasks, each made when a check first wants it."""

    def __init__(
        self,
        subject: Subject,
        folder: Path,
        *,
        tasks: Sequence[str] = (),
        without_answers: Sequence[str] = (),
    ) -> None:
        self.subject = subject
        self.without_answers = self._metrics(without_answers)
        self.folder = folder
        self._known = tuple(
            entry.name for entry in subject.entries if entry.members is None and not entry.abstract
        )
        self._asked = self._own(tasks)

    @functools.cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The plugin's tasks that can be run, those asked for alone where some are."""
        found: list[Task] = []
        for name in self._asked or self._known:
            try:
                found += self.subject.catalogue.select([name]).tasks
            except HarnessError:
                # The check of the tasks tells what is wrong with it.
                continue
        return tuple(found)

    @functools.cached_property
    def tried(self) -> tuple[Tried, ...]:
        """The tasks with a sample, by benchmark."""
        found = []
        for name in self.subject.benchmarks:
            tasks = [task for task in self.tasks if task.benchmark == name]
            tasks = [task for task in tasks if task.data.sample is not None]
            if tasks:
                found.append(self._tried(name, tasks))
        return tuple(found)

    def _own(self, names: Sequence[str]) -> tuple[str, ...]:
        """These names, each a task of the plugin's."""
        for name in names:
            if name not in self._known:
                raise UsageError(
                    f"the plugin {self.subject.name!r} has no task {name!r}",
                    expected=f"one of its {len(self._known)}, which `harness tasks` lists",
                    hint=did_you_mean(name, self._known),
                )
        return tuple(names)

    def _metrics(self, names: Sequence[str]) -> frozenset[str]:
        """These names, each a metric of the plugin's."""
        benchmarks = map(self.subject.plugins.benchmark, self.subject.benchmarks)
        known = sorted({metric for one in benchmarks for metric in one.metrics}) if names else []
        for name in names:
            if name not in known:
                raise UsageError(
                    f"the plugin {self.subject.name!r} has no metric {name!r}",
                    expected=", ".join(known) or "none",
                    hint=did_you_mean(name, known),
                )
        return frozenset(names)

    def _tried(self, name: str, tasks: Sequence[Task]) -> Tried:
        from harness.data import open_dataset
        from harness.tasks.options import typed_options

        benchmark = self.subject.plugins.benchmark(name)
        roles: set[str] = set()
        judges: set[str] = set()
        for task in tasks:
            options = typed_options(task, benchmark.options)
            dataset = open_dataset(
                task.data, data="sample", limit=None, seed=0,
                package=self.subject.plugins.package_of(name), task=task.name,
            )  # fmt: skip
            for stage in benchmark.stages_for(benchmark.load(dataset, options), options):
                roles.update(stage.roles)
                judges.update(stage.judges)
        return Tried(
            benchmark=benchmark,
            tasks=tuple(tasks),
            roles=frozenset(roles),
            judges=frozenset(judges),
        )

    def run(self, tried: Tried, called: str, **settings: Any) -> RunResult:
        """A run of all tasks of a benchmark in a folder of that name, however many items fail."""
        return run_tasks(
            tried.names,
            **{
                "folder": self.folder / called / tried.benchmark.name,
                "roles": tried.others(judge=RULE_JUDGE, other="baseline"),
                "max_failures": 1.0,
                **settings,
            },
        )

    def baseline(self, tried: Tried) -> RunResult:
        """The run of the baseline that others are held against, made once."""
        try:
            return self._baseline(tried.benchmark.name)
        except HarnessError as error:
            raise CannotBeTried(f"the baseline does not run: {error}") from error

    @functools.cache  # noqa: B019 - a trial lives as long as its checks
    def _baseline(self, benchmark: str) -> RunResult:
        [tried] = (one for one in self.tried if one.benchmark.name == benchmark)
        return self.run(tried, "baseline", concurrency=16)

    def elsewhere(self, tried: Tried) -> Path:
        """The runs folder of the same run in a process of its own, one call at a time.

        Its hashes of texts are others, so that what depends on the order of a set shows. It reads
        no settings, as no run from Python does: they are of whoever runs the test.
        """
        place = self.folder / "elsewhere" / tried.benchmark.name
        place.mkdir(parents=True)
        asked = {
            "tasks": tried.names,
            "roles": tried.others(judge=RULE_JUDGE, other="baseline"),
            "max_failures": 1.0,
            "concurrency": 1,
        }
        command = [sys.executable, "-c", RUN_ELSEWHERE, json.dumps(asked)]
        environment = {
            **os.environ,
            "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True,
            timeout=OTHER_COMMAND_S, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise CannotBeTried(f"the run in another process failed:\n{done.stderr.strip()}")
        return place / "runs"


def scores_of(folder: Path, task: str) -> list[bytes]:
    """The lines of scores that a run folder has of a task."""
    return RunFolder(folder).scores(task).read_bytes().splitlines()
