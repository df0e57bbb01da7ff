"""The plugin that is checked, right and damaged answers, and runs of its tasks over samples."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from harness.base.errors import HarnessError, PluginError, did_you_mean, one_of
from harness.base.hashing import stable_int
from harness.base.resources import top_level
from harness.contracts.benchmark import Benchmark
from harness.contracts.identity import RECORDED
from harness.contracts.model import CallError, Reply, Request
from harness.contracts.task import Task
from harness.data import open_dataset
from harness.pipeline.run import RunResult, arun
from harness.pipeline.settings import make_settings
from harness.registry import GROUP, LoadedPlugin, Origin, Plugins, load_plugins
from harness.registry.task_catalogue import Catalogue, Entry
from harness.reporting.display import make_display
from harness.runs.run_folder import RunFolder
from harness.tasks.options import typed_options
from harness.testing.scripted import Answer, Player, ScriptedModel, offered, run_tasks, spec_of

NONSENSE = 'As to ]}{"0": [NaN, -1, {"": null}] and so on\u2028<<<'
DAMAGES: tuple[Callable[[str], Answer], ...] = (
    lambda _: CallError("bad_request", "this call fails in a check of failures"),
    lambda _: Reply(text="I cannot help with that.", finish="refused"),
    lambda text: Reply(text=text[: len(text) // 2], finish="length"),
    lambda _: " \n",
    lambda _: NONSENSE,
)


def right(request: Request) -> str:
    """The baseline's answer, or for a judge one by the words that texts share."""
    assert request.topic is not None
    topic, variables = request.topic, request.topic.variables
    if "choices" in variables:
        wanted = set(variables["subject"].casefold().split())
        found = [name for name, text in variables["choices"] if wanted & {*text.casefold().split()}]
        return ", ".join(found[: variables["at_most"]]) or "NONE"
    if "labels" in variables:
        labels = variables["labels"]
        places = enumerate(variables["texts"], start=1)
        return json.dumps({n: labels[stable_int(text) % len(labels)] for n, text in places})
    respond = load_plugins().respondent(topic.benchmark, topic.prompt, topic.role, "default")
    texts = (message.content for message in request.messages)
    text: str = respond.factory()(variables, Random(stable_int(*texts)))
    return text


def damaged(request: Request) -> Answer:
    """The right answer, but to three questions in ten, however often they are asked, a damaged."""
    first = next(one.content for one in request.messages if one.role == "user")
    chance = Random(stable_int(first))
    return chance.choice(DAMAGES)(right(request)) if chance.random() < 0.3 else right(request)


class BatchModel(ScriptedModel):
    """Answers rightly in batches: the line of a request holds its answer."""

    takes_batches = True

    def batch_line(self, request: Request) -> dict[str, Any]:
        return {"method": "POST", "url": "/answers", "body": {"text": right(request)}}

    def read_batch(self, status: int, body: Any) -> Reply:
        return Reply(text=body["text"])


def answer_lines(requests: Path) -> Path:
    """The file of a batch service with the answers to a file of a BatchModel's requests."""
    answers = requests.with_suffix(".out")
    with answers.open("w", encoding="utf-8") as file:
        for line in map(json.loads, requests.read_text("utf-8").splitlines()):
            response = {"status_code": 200, "body": line["body"]}
            file.write(json.dumps({"custom_id": line["custom_id"], "response": response}) + "\n")
    return answers


def moved(
    before: Iterable[bytes], after: Iterable[bytes], *, names: Collection[str], excused: set[str]
) -> Iterator[str]:
    """Each score of these names that differs in another run, and nothing of its user says why.

    Both runs are given by the lines of their scores.
    """
    old, new = ({one["id"]: one for one in map(json.loads, lines)} for lines in (before, after))
    if old.keys() != new.keys():
        yield f"other units: {sorted(old.keys() ^ new.keys())[:3]}"
        return
    counted = {now["user"] for unit, now in new.items() if now["counts"] != old[unit]["counts"]}
    for unit, now in new.items():
        was = old[unit]
        for name in names:
            values = was["values"].get(name), now["values"].get(name)
            parts, _ = now.get("parts", {}).get(name, (0, 0))
            said = parts or name in now["missing"] or name in now.get("lost", {})
            if values[0] != values[1] and not (said or now["user"] in counted | excused):
                yield f"{name} of {unit}: {values[0]} became {values[1]}"


RULE_JUDGE, BASELINE = "lexical", "baseline"
ANY_MODEL = {RECORDED: "the answers of a check"}
"""Details of a model that stands for one of any kind, so that a benchmark which suits only some
kinds of models lets it answer."""

RUN_ELSEWHERE = """
import json, pathlib, sys
from harness.testing.scripted import run_tasks
result = run_tasks(**json.loads(sys.argv[1]), folder=pathlib.Path())
sys.exit(str(result.errors[0]) if result.errors else result.exit_code)
"""
"""The program of another process: it runs tasks in its working directory."""


@dataclass(frozen=True, kw_only=True)
class PluginUnderTest:
    """An installed plugin, with all plugins and tasks around it."""

    origin: Origin
    plugins: Plugins
    catalogue: Catalogue

    @property
    def name(self) -> str:
        """The name of its entry point."""
        return self.origin.plugin

    @property
    def package(self) -> str:
        """The plugin's top-level package."""
        return top_level(self.origin.module)

    @property
    def loaded(self) -> LoadedPlugin | None:
        """The loaded plugin; None where it is broken or left out."""
        return self.origin if isinstance(self.origin, LoadedPlugin) else None

    @functools.cached_property
    def registered(self) -> Mapping[str, tuple[Any, ...]]:
        """What it registered by kind, such as `judges`."""
        return self.plugins.registered_by(self.loaded) if self.loaded else {}

    @functools.cached_property
    def benchmarks(self) -> tuple[str, ...]:
        """The names of the benchmarks that it registered."""
        return tuple(one.name for one in self.registered.get("benchmarks", ()))

    @functools.cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The tasks, abstract tasks and groups of its package or its benchmarks."""
        return tuple(
            entry
            for entry in self.catalogue.entries
            if entry.bundle == self.package or entry.benchmark in self.benchmarks
        )


def plugin_under_test(name: str) -> PluginUnderTest:
    """The installed plugin with this name, or the only plugin in the package with this name.

    Raises PluginError where there is none, or more than one.
    """
    plugins = load_plugins()
    origins: list[Origin] = [*plugins.loaded, *plugins.broken, *plugins.left_out]
    origins.sort(key=lambda one: one.plugin)
    found = [one for one in origins if one.plugin == name]
    found = found or [one for one in origins if top_level(one.module) == top_level(name)]
    if len(found) != 1:
        near = did_you_mean(name, [one.plugin for one in origins])
        raise PluginError(
            f"{'several plugins are' if found else 'no plugin is'} named {name!r}",
            found=", ".join(f"{one.plugin} = {one.module}" for one in found or origins)
            or "no plugin",
            expected=f"the name of one entry point of the group {GROUP!r}, or its package",
            hint="give the name of one entry point"
            if found
            else near or "install the package first: pip install -e .",
        )
    return PluginUnderTest(origin=found[0], plugins=plugins, catalogue=Catalogue(plugins))


class SampleRunFailed(Exception):
    """A check needs a run that failed; the argument is the reason."""


@dataclass(frozen=True, kw_only=True)
class SampledTasks:
    """The tasks of one benchmark that run together, with the roles that they ask.

    The roles in `own` have a default of a kind of model that the plugin itself brings.
    """

    benchmark: Benchmark
    tasks: tuple[Task, ...]
    roles: frozenset[str]
    judges: frozenset[str]
    own: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tasks."""
        return tuple(task.name for task in self.tasks)

    def others(self, *, judge: Player, other: Player) -> dict[str, Player]:
        """The players of all roles except the candidate; the baseline leaves `own` to defaults."""
        played: dict[str, Player] = dict.fromkeys(self.judges, judge)
        kept = {"candidate", *(self.own if other == BASELINE else ())}
        return played | dict.fromkeys(self.roles - kept, other)


@dataclass(frozen=True)
class Finding:
    """One problem of a plugin: the place, the problem, the remedy, and the name of the check."""

    where: str
    problem: str
    to_do: str
    check: str = ""

    def __str__(self) -> str:
        problem = self.problem.replace("\n", "\n    ")
        return f"[{self.check}] {self.where}: {problem}\n    to do: {self.to_do}"


class SampleRuns:
    """Runs of a plugin's tasks; each is made when a check first needs it."""

    def __init__(
        self,
        plugin: PluginUnderTest,
        folder: Path,
        *,
        tasks: Sequence[str] = (),
        without_answers: Sequence[str] = (),
        limit: int | None = None,
        data: str = "sample",
    ) -> None:
        self.plugin = plugin
        self._limit = limit
        self._data = data
        self.without_answers = frozenset(without_answers)
        self.folder = folder
        self._kept: dict[tuple[str, str], RunResult] = {}
        self._known = tuple(
            entry.name for entry in plugin.entries if entry.members is None and not entry.abstract
        )
        self._asked = tuple(tasks)
        if without_answers:
            benchmarks = map(plugin.plugins.benchmark, plugin.benchmarks)
            metrics = sorted({metric for one in benchmarks for metric in one.metrics})
            expected = ", ".join(metrics) or "a plugin that has metrics"
            self._check("metric", without_answers, metrics, expected)
        expected = f"one of its {len(self._known)} tasks, which `harness tasks` lists"
        self._check("task", tasks, self._known, expected)

    @functools.cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The plugin's tasks with a sample that can run."""
        found: list[Task] = []
        for name in self._known:
            # The check of the tasks reports the error.
            with contextlib.suppress(HarnessError):
                found += self.plugin.catalogue.select([name]).tasks
        return tuple(task for task in found if task.data.sample is not None)

    @functools.cached_property
    def sampled(self) -> tuple[SampledTasks, ...]:
        """The tasks with a sample, by benchmark; the requested ones if there are any."""
        tasks = self.plugin.catalogue.select(self._asked).tasks if self._asked else self.tasks
        found = []
        for name in self.plugin.benchmarks:
            own = [one for one in tasks if one.benchmark == name and one.data.sample is not None]
            found += [self._sampled(name, own)] if own else []
        return tuple(found)

    def options(self, task: Task) -> Any:
        """The options of a task as its benchmark's own type."""
        return typed_options(task, self.plugin.plugins.benchmark(task.benchmark).options)

    def sample(self, task: Task) -> Path:
        """The file or folder of a task's sample."""
        return self.plugin.plugins.package_of(task.benchmark) / str(task.data.sample)

    def load(self, task: Task, data: str = "sample") -> Any:
        """What the task's benchmark loads of its sample or of other data."""
        plugins = self.plugin.plugins
        dataset = open_dataset(
            task.data, data=data, limit=self._limit, seed=0,
            package=plugins.package_of(task.benchmark), task=task.name,
        )  # fmt: skip
        return plugins.benchmark(task.benchmark).load(dataset, self.options(task))

    def _check(self, kind: str, names: Sequence[str], known: Sequence[str], expected: str) -> None:
        """Raise UsageError for a name that no task or metric of the plugin has."""
        for name in names:
            problem = f"the plugin {self.plugin.name!r} has no {kind} {name!r}"
            one_of(name, known, problem, listed=expected, none=expected)

    def _sampled(self, name: str, tasks: Sequence[Task]) -> SampledTasks:
        benchmark = self.plugin.plugins.benchmark(name)
        stages = set(benchmark.stages)
        if any(stage.when for stage in stages):
            stages = {
                stage
                for task in tasks
                for stage in benchmark.stages_for(self.load(task), self.options(task))
            }
        kinds = {one.name for one in self.plugin.registered.get("models", ())}
        own = {
            role
            for task in tasks
            for role, spec in task.roles.items()
            if spec.default is not None and spec.default.partition(":")[0] in kinds
        }
        return SampledTasks(
            benchmark=benchmark,
            tasks=tuple(tasks),
            roles=frozenset(role for stage in stages for role in stage.roles),
            judges=frozenset(judge for stage in stages for judge in stage.judges),
            own=frozenset(own),
        )

    def run(self, sampled: SampledTasks, called: str, **settings: Any) -> RunResult:
        """A run of all tasks of a benchmark in the folder `called`, however many items fail."""
        folder = self.folder / called / sampled.benchmark.name
        return run_tasks(**{**self._settings(sampled), "folder": folder, **settings})

    def _settings(self, sampled: SampledTasks) -> dict[str, Any]:
        return {
            "tasks": sampled.names,
            "roles": sampled.others(judge=RULE_JUDGE, other=BASELINE),
            "max_failures": 1.0,
            "limit": self._limit,
            "data": self._data,
        }

    def baseline(self, sampled: SampledTasks) -> RunResult:
        """The baseline's run, which other runs are compared with; made once."""
        return self._once(sampled, "baseline", concurrency=16)

    def right(self, sampled: SampledTasks) -> RunResult:
        """The run in which a model gives right answers in each role; made once."""
        players = right_players(sampled)
        model = players.pop("candidate", BASELINE)
        return self._once(sampled, "right answers", model=model, roles=players)

    def _once(self, sampled: SampledTasks, called: str, **settings: Any) -> RunResult:
        key = (called, sampled.benchmark.name)
        try:
            if key not in self._kept:
                self._kept[key] = self.run(sampled, called, **settings)
        except HarnessError as error:
            raise SampleRunFailed(f"the run of the {called} failed: {error}") from error
        return self._kept[key]

    def in_batches(self, sampled: SampledTasks) -> RunResult:
        """A run of right answers whose candidate is asked elsewhere until nothing is left."""
        folder = self.folder / "batches" / sampled.benchmark.name
        folder.mkdir(parents=True)
        players = right_players(sampled, kind=BatchModel)
        roles = {role: spec_of(player) for role, player in players.items()}
        model = roles.pop("candidate", BASELINE)
        given = self._settings(sampled) | {
            "model": model, "roles": roles, "output_path": folder / "runs", "use_store": False,
        }  # fmt: skip
        with offered([one for one in players.values() if isinstance(one, ScriptedModel)]):
            files: list[Path] = []
            while True:
                run = arun(
                    make_settings(given), display=make_display(quiet=True),
                    write_requests=folder, answers=files,
                )  # fmt: skip
                result = asyncio.run(run)
                if not result.requests:
                    return result
                files = [answer_lines(Path(file)) for file in result.requests]

    def elsewhere(self, sampled: SampledTasks) -> Path:
        """The folder of runs with the same run in a new process, one call at a time.

        Texts have other hashes there, so that code that depends on the order of a set is found. No
        settings files are read, as in every run from Python: they belong to the user of the test.
        """
        place = self.folder / "elsewhere" / sampled.benchmark.name
        place.mkdir(parents=True)
        asked = {**self._settings(sampled), "concurrency": 1, "quiet": True}
        command = [sys.executable, "-c", RUN_ELSEWHERE, json.dumps(asked)]
        environment = {
            **os.environ,
            "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True,
            timeout=600, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise SampleRunFailed(f"the run in another process failed:\n{done.stderr.strip()}")
        return place / "runs"


def right_players(
    sampled: SampledTasks, kind: type[ScriptedModel] = ScriptedModel
) -> dict[str, Player]:
    """A model for each role that gives right answers."""
    roles = sorted((sampled.roles | sampled.judges) - sampled.own)
    return {role: kind(right, name=role, details=ANY_MODEL, concurrency=16) for role in roles}


def scores_of(folder: Path, task: str) -> list[bytes]:
    """The lines of a task's scores in a run folder."""
    return RunFolder(folder).scores(task).read_bytes().splitlines()
