"""Prepares the tasks of a run: everything is loaded and checked before the first call."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.base.errors import (
    DataError,
    HarnessError,
    PluginError,
    PromptError,
    TaskError,
    UsageError,
    did_you_mean,
)
from harness.base.hashing import digest
from harness.base.home import expanded
from harness.calls.budget import without_price
from harness.calls.engines import SharedEngines
from harness.calls.pricing import price_of
from harness.contracts.benchmark import Benchmark
from harness.contracts.model import Model
from harness.contracts.stage import CANDIDATE, Stage
from harness.contracts.task import DataSpec, Group, Task
from harness.data import TaskData, open_dataset
from harness.data.dataset import BUILD, SAMPLE, name_of
from harness.data.fetch import Fetching, NotKept
from harness.data.files import GLOB, holder_of, no_table
from harness.data.wording import join_names
from harness.parsing import LADDER_VERSION
from harness.pipeline.desk import (
    Binding,
    DeclaredOptions,
    StageContext,
    sampling_of,
    sampling_parts,
)
from harness.pipeline.roles import RoleBinder, other_players
from harness.pipeline.settings import ALL_OTHERS, RunSettings
from harness.prompts import Templates
from harness.prompts.task_prompts import Overrides, check_prompts_used, templates_of
from harness.registry.data_tools import build_tool
from harness.registry.task_catalogue import Catalogue, Selection
from harness.tasks.changes import apply_changes, changes_in, format_changes
from harness.tasks.identity import content_hash
from harness.tasks.options import checked_options, typed_options
from harness.tasks.own_columns import named_columns, own_columns_of, with_own_columns
from harness.tasks.repeats import repeat_of, task_and_repeat

if TYPE_CHECKING:
    from harness.registry import Plugins


@dataclass(frozen=True, kw_only=True)
class PreparedTask:
    """A task with everything that it needs to run, except the run folder.

    `stages` are the benchmark's stages that its data and options call for, and `loaded` its tables
    and what the benchmark made of them; a worker elsewhere has none. `changes` are the changes by
    `--set` that apply to this task, and `own_columns` the options `--columns` and `--values` that
    do. `repeat` is the run's repeat, counted from 1: it is part of the task's name.
    """

    task: Task
    benchmark: Benchmark
    stages: tuple[Stage, ...]
    options: msgspec.Struct
    bindings: Mapping[str, Binding]
    templates: Templates
    settings: RunSettings
    loaded: tuple[TaskData, Any] | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    own_columns: tuple[str, ...] = ()
    repeat: int = 1

    @property
    def dataset(self) -> TaskData:
        """The tables of the task."""
        assert self.loaded is not None, "a worker has no data"
        return self.loaded[0]

    @property
    def data(self) -> Any:
        """What the benchmark made of the tables."""
        assert self.loaded is not None, "a worker has no data"
        return self.loaded[1]

    def contexts(self, run_id: str, thinking: Collection[Model] = ()) -> tuple[StageContext, ...]:
        """The contexts of the task's stages in the run of that name; `thinking` are the models that
        think."""
        return tuple(self._context(stage, run_id, thinking) for stage in self.stages)

    def _context(self, stage: Stage, run_id: str, thinking: Collection[Model]) -> StageContext:
        settings, name = self.settings, self.benchmark.name
        declared = DeclaredOptions(self.options, stage)
        roles = (*stage.roles, *stage.judges)
        own = {
            (prompt, role): found
            for prompt in stage.templates
            for role in roles
            if (found := self.templates.get(name, prompt, role)) is not None
        }
        samplings = {role: sampling_of(self.task, stage, role, settings.sampling) for role in roles}
        components: dict[str, Any] = {
            "benchmark": name,
            "stage": stage.name,
            "version": stage.version,
            "options": declared.as_json(),
            "prompts": {f"{prompt}.{role}": found.digest for (prompt, role), found in own.items()},
            "roles": {
                role: {
                    **self.bindings[role].key(run_id),
                    **sampling_parts(self.bindings[role], samplings[role], thinking),
                }
                for role in roles
            },
            "ladder": LADDER_VERSION,
            "seed": settings.seed,
            "structured": settings.structured,
            "fresh": run_id if settings.fresh else None,
        }
        if self.repeat > 1:
            components["repeat"] = self.repeat
        return StageContext(
            task=self.task,
            benchmark=name,
            stage=stage,
            number=self.benchmark.stages.index(stage) + 1,
            options=declared,
            bindings=self.bindings,
            templates=own,
            samplings=samplings,
            thinking=frozenset(thinking),
            seed=settings.seed,
            structured=settings.structured,
            repeat=self.repeat,
            components=components,
            key=digest(components),
        )

    @property
    def content(self) -> str:
        """The hash over everything in the task that decides its result."""
        return content_hash(
            self.task,
            template_hashes=self.templates.digests(self.benchmark.name),
            stage_versions={stage.name: stage.version for stage in self.benchmark.stages},
            options=self.options,
        )

    @property
    def contents(self) -> dict[str, str]:
        """Digests of the files that its options name."""
        found = self.benchmark.contents
        return dict(found(self.options)) if found else {}

    @property
    def not_comparable_because(self) -> tuple[str, ...]:
        """The reasons why the result is not comparable with published ones; empty if it is."""
        reasons = [*self.dataset.why_incomparable]
        if self.settings.limit is not None:
            reasons.append(f"--limit {self.settings.limit}")
        if self.own_columns:
            reasons.append(f"read with {', '.join(self.own_columns)}")
        adding = self.benchmark.adding
        kept = (name for name in self.changes if name.rpartition(".")[2] not in adding)
        if changed := {name: self.changes[name] for name in kept}:
            reasons.append(f"changed by --set: {format_changes(changed)}")
        if self.settings.sampling:
            reasons.append("changed by --gen_kwargs")
        if self.task.prompts:
            reasons.append(f"own prompts: {', '.join(sorted(self.task.prompts))}")
        if self.settings.allow_self_judging:
            reasons.append("the candidate may judge itself")
        by_rule = {
            one.label
            for binding in self.bindings.values()
            for one in binding.single
            if one.judge is not None and one.model is None
        }
        reasons += [f"judged by rule: {label}" for label in sorted(by_rule)]
        return (*reasons, *other_players(self.bindings, self.task, self.settings.roles))


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """All chosen tasks, ready to run; `notes` are lines about them for the user."""

    settings: RunSettings
    tasks: tuple[PreparedTask, ...]
    groups: tuple[Group, ...]
    notes: tuple[str, ...] = ()

    @property
    def candidate(self) -> Binding | None:
        """The candidate's binding, in the first task that asks it."""
        bound = (each.bindings.get(CANDIDATE) for each in self.tasks)
        return next((one for one in bound if one is not None), None)

    @property
    def models(self) -> tuple[Model, ...]:
        """All models that the tasks may ask, each once."""
        bindings = [binding for each in self.tasks for binding in each.bindings.values()]
        return tuple(dict.fromkeys(model for binding in bindings for model in binding.models))


def prepare(
    settings: RunSettings,
    plugins: Plugins,
    selection: Selection | None = None,
    *,
    engines: SharedEngines | None = None,
    say: Callable[[str], None] | None = None,
) -> Prepared:
    """The tasks of a run with these settings, loaded and checked; changes by `--set` that change
    no task are dropped from the settings.

    `selection` replaces the tasks that the settings name. `engines` are shared with other runs.
    `say` shows the progress of downloads, which is printed without it.
    """
    selection, tasks = _chosen(settings, plugins, selection)
    loader = _Loader(settings, plugins, tasks, selection.groups, say=say)
    binder = _Binder(tasks, settings, plugins, engines)
    changes = _changes_by_task(selection.tasks, tasks, settings, plugins)
    paths = {path for made in changes.values() for path in made}
    left = {path: to for path, to in settings.changes.items() if path in paths}
    settings = msgspec.structs.replace(settings, changes=left)
    prepared = []
    for bound in binder.tasks.values():
        loaded = loader.load(bound)
        stages = bound.benchmark.stages_for(loaded[1], bound.options)
        check_prompts_used(bound.task, stages, bound.options)
        one = replace(
            binder.bind(bound, stages),
            settings=settings,
            loaded=loaded,
            changes=changes[bound.task.name],
            own_columns=own_columns_of(bound.task, settings.columns, settings.values),
        )
        models = ((role, binding.model) for role, binding in one.bindings.items())
        identities = {role: model.identity for role, model in models if model is not None}
        try:
            if one.benchmark.suits is not None:
                one.benchmark.suits(one.data, one.options, identities)
        except HarnessError as error:
            error.where = error.where or f"task {one.task.name}"
            raise
        prepared.append(one)
    binder.roles.check_used_roles()
    binder.overrides.refuse_useless()
    return Prepared(
        settings=settings,
        tasks=_repeated(prepared, settings),
        groups=selection.groups,
        notes=(*loader.notes, *binder.roles.notes),
    )


def prepare_without_data(
    settings: RunSettings,
    plugins: Plugins,
    stages: Mapping[str, Collection[str]],
    *,
    engines: SharedEngines | None = None,
) -> tuple[PreparedTask, ...]:
    """The tasks of a run that was prepared elsewhere, whose data stay unopened here.

    `settings` are those of the prepared run, and `stages` has the names of each task's stages, by
    the task's name: the data called for them. TaskError where these settings name other tasks here.
    """
    _, tasks = _chosen(settings, plugins)
    repeats = range(1, settings.num_repeats + 1)
    named = [repeat_of(task, number).name for number in repeats for task in tasks]
    if set(named) != set(stages):
        raise TaskError(
            "the settings name other tasks here than where the run was prepared",
            where="tasks",
            found=", ".join(named),
            expected=", ".join(stages),
        )
    binder = _Binder(tasks, settings, plugins, engines)
    prepared = []
    for one in binder.tasks.values():
        called = [stage for stage in one.benchmark.stages if stage.name in stages[one.task.name]]
        check_prompts_used(one.task, called, one.options)
        prepared.append(binder.bind(one, called))
    return _repeated(prepared, settings)


def _repeated(tasks: Sequence[PreparedTask], settings: RunSettings) -> tuple[PreparedTask, ...]:
    return tuple(
        replace(each, task=repeat_of(each.task, number), repeat=number)
        for number in range(1, settings.num_repeats + 1)
        for each in tasks
    )


def _chosen(
    settings: RunSettings, plugins: Plugins, given: Selection | None = None
) -> tuple[Selection, tuple[Task, ...]]:
    """The tasks as their files have them, or as given, and as the settings change them."""
    folders = settings.include_path
    selection = given or Catalogue(plugins, include_path=folders).select(settings.tasks)
    tasks = apply_changes(selection.tasks, settings.changes, benchmark=plugins.benchmark)
    return selection, with_own_columns(tasks, settings.columns, settings.values)


class _Binder:
    """Binds tasks to models, judges and prompts.

    `tasks` are bound for the stages that they have with any data, so that what is wrong shows
    before data are loaded; those that the data call for are bound later.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        settings: RunSettings,
        plugins: Plugins,
        engines: SharedEngines | None,
    ) -> None:
        homes = () if settings.prompts is None else (settings.prompts,)
        self._templates = Templates(prompt_folders(plugins), homes=homes)
        self.overrides = Overrides(settings.prompts, self._templates)
        self.roles = RoleBinder(settings, plugins, engines=engines)
        self.tasks: dict[str, PreparedTask] = {}
        for task in tasks:
            benchmark = plugins.benchmark(task.benchmark)
            options = checked_options(task, benchmark)
            bare = PreparedTask(
                task=task,
                benchmark=benchmark,
                stages=(),
                options=options,
                bindings={},
                templates=self._templates,
                settings=settings,
            )
            always = [stage for stage in benchmark.stages if stage.when is None]
            self.tasks[task.name] = self.bind(bare, always)
        self.roles.check_known_roles(one.benchmark for one in self.tasks.values())

    def bind(self, prepared: PreparedTask, stages: Sequence[Stage]) -> PreparedTask:
        """The task bound for these stages, for some of which it may be bound before."""
        added = [stage for stage in stages if stage not in prepared.stages]
        task = self.overrides.over(prepared.task, added, prepared.options)
        templates = templates_of(task, self._templates)
        bindings = self.roles.bind(task, prepared.benchmark, added, bound=prepared.bindings)
        check_prompts(prepared.benchmark, added, bindings, templates)
        return replace(
            prepared, task=task, stages=tuple(stages), bindings=bindings, templates=templates
        )


def _changes_by_task(
    before: Sequence[Task], tasks: Sequence[Task], settings: RunSettings, plugins: Plugins
) -> dict[str, dict[str, Any]]:
    """The changes by `--set` that gave each task anything but what it had, or had by default."""
    found: dict[str, dict[str, Any]] = {}
    for old, task in zip(before, tasks, strict=True):
        kind = plugins.benchmark(task.benchmark).options
        found[task.name] = {}
        made = changes_in(task, settings.changes, among=tasks, benchmark=plugins.benchmark)
        for path, to in made.items():
            (then,) = apply_changes((old,), {path: to}, benchmark=plugins.benchmark)
            sides = [
                (msgspec.structs.replace(one, options={}), typed_options(one, kind))
                for one in (old, then)
            ]
            if sides[0] != sides[1]:
                found[task.name][path] = to
    return found


def check_prices(prepared: Prepared) -> None:
    """Raise UsageError for models without a price if the budget limits the cost."""
    settings = prepared.settings
    if settings.budget.cost is None:
        return
    identities = [model.identity for model in prepared.models]
    unpriced = [one for one in identities if price_of(one, settings.prices) is None]
    if unpriced:
        raise without_price(unpriced, settings.prices)


def with_data_of(prepared: Prepared, settings: RunSettings, plugins: Plugins) -> Prepared:
    """The same tasks, stages and roles over the data of other settings."""
    asked, shared = [each.task for each in prepared.tasks], prepared.tasks[0].dataset.shared
    loader = _Loader(settings, plugins, asked, prepared.groups, shared=shared)
    tasks = (replace(each, loaded=loader.load(each), settings=settings) for each in prepared.tasks)
    return replace(prepared, settings=settings, tasks=tuple(tasks))


def data_problems(settings: RunSettings, plugins: Plugins) -> list[DataError]:
    """Why data of a run cannot be had, for each place of data once. Nothing is fetched for it:
    what may be fetched is no problem."""
    selection, tasks = _chosen(settings, plugins)
    loader = _Loader(settings, plugins, tasks, selection.groups, say=lambda line: None, stop=True)
    problems: dict[str, DataError] = {}
    for task in tasks:
        key = digest({"data": msgspec.to_builtins(task.data), "place": loader.place_of(task)})
        try:
            loader.open(task)
        except NotKept:
            continue
        except DataError as error:
            problems.setdefault(key, error)
    return [*problems.values()]


def prompt_folders(plugins: Plugins) -> list[Any]:
    """The folders of prompts, the harness's own first."""
    return [bundle.prompts for bundle in plugins.bundles if bundle.prompts is not None]


def check_prompts(
    benchmark: Benchmark,
    stages: Iterable[Stage],
    bindings: Mapping[str, Binding],
    templates: Templates,
) -> None:
    """Raise PromptError where a role that asks a model has no template in a stage."""
    for stage in stages:
        for role in (*stage.roles, *stage.judges):
            if not bindings[role].models:
                continue
            found = [templates.get(benchmark.name, prompt, role) for prompt in stage.templates]
            if not any(found):
                raise PromptError(
                    f"stage {stage.name!r} has no prompt for the role {role!r}",
                    expected=f"prompts/{benchmark.name}/{stage.templates[0]}.{role}.j2",
                )


class _Loader:
    """Loads each distinct dataset once for all tasks that share it.

    `shared` is what other datasets of the same files made of their tables, and `notes` are lines
    for the user about places that are not as given.
    """

    def __init__(
        self,
        settings: RunSettings,
        plugins: Plugins,
        tasks: Iterable[Task],
        groups: Iterable[Group],
        *,
        say: Callable[[str], None] | None = None,
        shared: dict[Any, Any] | None = None,
        stop: bool = False,
    ) -> None:
        specs = {task_and_repeat(task.name)[0]: task.data for task in tasks}
        self._places, self.notes = places_of(settings.data, specs, groups)
        self._specs = specs
        self._settings = settings
        self._fetching = Fetching(
            offline=settings.offline, download=settings.download, stop=stop,
            say=say or Fetching.say, tools=partial(build_tool, plugins),
        )  # fmt: skip
        self._plugins = plugins
        self._loaded: dict[str, tuple[TaskData, Any]] = {}
        self._shared: dict[Any, Any] = {} if shared is None else shared

    def place_of(self, task: Task) -> str | None:
        return self._places[task_and_repeat(task.name)[0]]

    def load(self, each: PreparedTask) -> tuple[TaskData, Any]:
        benchmark, options = each.benchmark, each.options
        key = digest(
            {
                "benchmark": benchmark.name,
                "data": msgspec.to_builtins(each.task.data),
                "place": self.place_of(each.task),
                "options": msgspec.to_builtins(options),
            }
        )
        if key not in self._loaded:
            dataset = self.open(each.task)
            try:
                self._loaded[key] = dataset, benchmark.load(dataset, options)
            except HarnessError:
                raise
            except Exception as error:
                gaps = dataset.gaps() if "None" in str(error) else []
                rows = (
                    f"; or complete the rows that lack a value: {', '.join(gaps)}" if gaps else ""
                )
                about = next(iter(dataset.about.values()), "")
                raise PluginError(
                    f"the benchmark {benchmark.name!r} cannot load its data",
                    where=f"task {dataset.task}, {dataset.origin} data: {about}",
                    found=traceback.format_exc(limit=-4).strip(),
                    hint="correct `load` in the benchmark's code; for rows that it cannot use, it "
                    "raises `table.bad(…)`, which names the row. `harness list plugins` names the "
                    f"benchmark's package{rows}",
                ) from error
        return self._loaded[key]

    def open(self, task: Task) -> TaskData:
        if task.data.sample is None and self.place_of(task) == SAMPLE and len(self._specs) > 1:
            without = {name for name, spec in self._specs.items() if spec.sample is None}
            others = ",".join(name for name in self._specs if name not in without)
            raise DataError(
                f"tasks without a bundled sample: {join_names(sorted(without))}",
                found="--data sample",
                expected="tasks with one, or data for each other task: --data TASK=PLACE",
                hint=f"--tasks {others} runs on samples" if others else None,
            )
        return open_dataset(
            task.data,
            data=self.place_of(task),
            limit=self._settings.limit,
            seed=self._settings.seed,
            package=self._plugins.package_of(task.benchmark),
            task=task.name,
            shared=self._shared,
            fetching=self._fetching,
            named=named_columns(task, self._settings.columns),
        )


def places_of(
    data: str | Mapping[str, str] | None, specs: Mapping[str, DataSpec], groups: Iterable[Group]
) -> tuple[dict[str, str | None], list[str]]:
    """The place of each task's data by the task's name, where None stands for its sources, and
    lines for the user about places that are not as given.

    `data` is that of the settings, and `specs` are those of the tasks by name.

    A place for all tasks goes to those whose tables it holds; if there are any, the others read
    what they read without it. If one folder in a given folder holds a task's tables, and the given
    folder holds none, the task reads that one.
    """
    given = data if isinstance(data, Mapping) else {} if data is None else {ALL_OTHERS: data}
    named = named_places(given, list(specs), groups)
    of = {task: spec.folder for task, spec in specs.items()}
    deeper: dict[str, list[str]] = {}
    lacking: dict[str, Path] = {}
    held = False
    for task, spec in specs.items():
        place = named.get(task, given.get(ALL_OTHERS))
        if place is None:
            continue
        of[task] = place
        if place in (SAMPLE, BUILD):
            continue
        folder = expanded(place, where="--data")
        holder = holder_of(folder, spec.tables, task=task)
        if holder is None:
            lacking[task] = folder
            continue
        held = held or task not in named
        if holder != folder:
            of[task] = str(holder)
            deeper.setdefault(str(holder), []).append(task)
    elsewhere: dict[str, list[str]] = {}
    for task, folder in lacking.items():
        if held and task not in named:
            of[task] = specs[task].folder
            elsewhere.setdefault(_without(task, specs[task], folder), []).append(task)
        elif not any(table.required for table in specs[task].tables.values()):
            # The error for a required table has such a hint too.
            error = no_table(folder, specs[task].tables, task=task)
            if error.hint is not None:
                raise error
    notes = [f"{join_names(tasks)}: the data is in {place}" for place, tasks in deeper.items()]
    notes += [
        f"{join_names(tasks)}: no table in --data {given[ALL_OTHERS]}, so read from {where}"
        for where, tasks in elsewhere.items()
    ]
    return of, notes


def _without(task: str, spec: DataSpec, place: Path) -> str:
    """What a task reads instead of a place without its tables, in words.

    DataError if it can read nothing else, or if its tables seem to be near.
    """
    error = no_table(place, spec.tables, task=task)
    if error.hint is None and spec.folder is not None:
        return spec.folder
    automatic = [name_of(source) for source in spec.sources if source.ask is None]
    if error.hint is None and automatic:
        return automatic[0]
    error.hint = error.hint or f"give the task a folder of its own with --data {task}=DIR"
    raise error


def named_places(
    given: Mapping[str, str], tasks: Sequence[str], groups: Iterable[Group]
) -> dict[str, str]:
    """The places of the tasks that are named, alone or by a group or a glob.

    The name of a task comes before a group, and a group before a glob; of two groups or two globs,
    the one with fewer tasks comes first.
    """
    members = _tasks_by_group(groups, tasks)
    reach: dict[str, tuple[int, list[str]]] = {}
    for name in given:
        if name == ALL_OTHERS:
            continue
        if name in tasks:
            reach[name] = 0, [name]
        elif name in members:
            reach[name] = 1, members[name]
        elif GLOB & set(name) and any(fnmatchcase(task, name) for task in tasks):
            reach[name] = 2, [task for task in tasks if fnmatchcase(task, name)]
        else:
            also = f"; or a group: {', '.join(members)}" if members else ""
            raise UsageError(
                f"--data names a task that is not run: {name!r}",
                expected=f"TASK=PLACE with one of: {', '.join(tasks)}{also}",
                hint=did_you_mean(name, [*tasks, *members])
                or f"write a path with = in its name as --data ./{name}=…",
            )
    places: dict[str, str] = {}
    by: dict[str, str] = {}
    breadth = {name: (kind, len(reached)) for name, (kind, reached) in reach.items()}
    for name in sorted(reach, key=breadth.__getitem__):
        for task in reach[name][1]:
            first = by.setdefault(task, name)
            if breadth[first] == breadth[name] and given[first] != given[name]:
                raise UsageError(
                    f"--data gives the task {task!r} two places",
                    found=f"{first}={given[first]}, {name}={given[name]}",
                    expected="one place for each task",
                    hint=f"name the task itself: --data {task}=DIR",
                )
            places.setdefault(task, given[name])
    return places


def _tasks_by_group(groups: Iterable[Group], tasks: Sequence[str]) -> dict[str, list[str]]:
    """The tasks of each group, those of groups in it included."""
    by_name = {group.name: group for group in groups}

    def within(name: str) -> Iterable[str]:
        if name not in by_name:
            return [name]
        return chain.from_iterable(map(within, by_name[name].members))

    return {
        name: [task for task in dict.fromkeys(within(name)) if task in tasks] for name in by_name
    }
