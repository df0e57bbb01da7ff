"""What a node is sent of a run, and the check that it would work on the same run there."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.base.errors import HarnessError, UsageError
from harness.calls.engines import SharedEngines
from harness.contracts.model import Model
from harness.pipeline.executors.cluster import shared_concurrency
from harness.pipeline.preparation import BoundTask, bind_tasks
from harness.pipeline.settings import OF_RAY, RunSettings
from harness.pipeline.stage_context import StageContext
from harness.registry import load_plugins
from harness.registry.missing_packages import HARNESS
from harness.runs.run_folder import LOCK

if TYPE_CHECKING:
    from harness.registry import Plugins

DECIDING = ("json-repair", "jinja2")
"""The packages whose versions decide how prompts are rendered and replies are read."""

PYTHON = "python"

MOST_SHOWN = 8
"""So many differences are shown of a stage's components."""

ABSENT = "nothing"


class NodeDiffers(UsageError):
    """A node does not have what the run was prepared with."""


class Place(msgspec.Struct, frozen=True):
    """Where a model stands in a run, the same in every process: a task's role, and its number among
    the models of that role."""

    task: str
    role: str
    number: int


class StageOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A stage as the driver has it: its name, its key, and the components of the key.

    One that is `put_off` is left to a later session.
    """

    name: str
    key: str
    components: dict[str, Any]
    put_off: bool = False


class WorkOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a node needs to work on a run, except data, items and keys.

    `cwd` is the driver's folder and `folder` the run folder, both absolute; `lock` is what the
    driver wrote into the folder's lock. `session` counts the commands of the run. `workers` share
    the run's `--concurrency`. `stages` has the stages of each task by its name, `thinking` the
    models that think, `versions` those of the harness, of Python and of deciding packages, and
    `plugins` the distribution and version of each plugin.
    """

    settings: RunSettings
    cwd: str
    run_id: str
    folder: str
    lock: str
    session: int
    workers: int
    stages: dict[str, tuple[StageOrder, ...]]
    thinking: tuple[Place, ...]
    versions: dict[str, str]
    plugins: dict[str, str]

    @property
    def run_folder(self) -> Path:
        """The run folder."""
        return Path(self.folder)

    def now(self) -> list[tuple[str, str]]:
        """The stages of this session, by task and name."""
        return [
            (task, one.name)
            for task, stages in self.stages.items()
            for one in stages
            if not one.put_off
        ]

    def __repr__(self) -> str:
        # Without the settings: an address in them may hold a password.
        return f"WorkOrder(run_id={self.run_id!r}, tasks={list(self.stages)!r})"


class _Versions(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a work order that every version of the harness can read."""

    versions: dict[str, str]
    plugins: dict[str, str]


def work_order(
    settings: RunSettings,
    contexts: Mapping[str, Sequence[StageContext]],
    plugins: Plugins,
    *,
    run_id: str,
    folder: Path,
    session: int,
    workers: int,
    put_off: Collection[tuple[str, str]] = (),
) -> WorkOrder:
    """The order for nodes: `settings` and `contexts` are those of the prepared run.
    Stages that are `put_off`, by task and name, are left to a later session.

    On its node, a worker asks as the local executor does.
    """
    here = dict.fromkeys(OF_RAY, None) | {"executor": "local", "run_storage": settings.run_storage}
    return WorkOrder(
        settings=msgspec.structs.replace(settings, **here),
        cwd=str(Path.cwd()),
        run_id=run_id,
        folder=str(folder.absolute()),
        lock=(folder / LOCK).read_text(),
        session=session,
        workers=workers,
        stages={
            task: tuple(
                StageOrder(
                    name=one.stage.name,
                    key=one.key,
                    components=_plain(one.components),
                    put_off=(task, one.stage.name) in put_off,
                )
                for one in stages
            )
            for task, stages in contexts.items()
        },
        thinking=_places(contexts),
        versions=versions_here(),
        plugins=plugins_here(plugins),
    )


def encoded(order: WorkOrder) -> bytes:
    """The order as bytes, which `decoded` reads on a node."""
    return msgspec.msgpack.encode(order, enc_hook=str)


def decoded(data: bytes, node: str, plugins: Plugins | None = None) -> WorkOrder:
    """The order in the bytes; NodeDiffers where the node has other versions than the driver."""
    there = msgspec.msgpack.decode(data, type=_Versions)
    _check_versions(there.versions, there.plugins, node, plugins or load_plugins())
    return msgspec.msgpack.decode(data, type=WorkOrder, dec_hook=lambda kind, value: kind(value))


def check_node(
    order: WorkOrder,
    node: str,
    plugins: Plugins | None = None,
    *,
    engines: SharedEngines | None = None,
) -> dict[str, tuple[StageContext, ...]]:
    """The contexts of each task's stages on a node, which are those of the driver.

    An error names the node, and what differs there: a version, a plugin, a file, or what decides
    the key of a stage. The process works in the driver's folder from now on, if the node has it.
    """
    plugins = plugins or load_plugins()
    _check_versions(order.versions, order.plugins, node, plugins)
    with errors_of(node, order):
        if Path(order.cwd).is_dir():
            os.chdir(order.cwd)
        stages = {task: [one.name for one in own] for task, own in order.stages.items()}
        bound = bind_tasks(order.settings, plugins, stages, engines=engines)
        thinking = [_model_at(place, bound) for place in order.thinking]
        contexts = {each.task.name: each.contexts(order.run_id, thinking) for each in bound}
        for task, own in order.stages.items():
            _check_stages(task, own, contexts[task])
    return contexts


def share_concurrency(models: Iterable[Model], order: WorkOrder, *, seat: int = 1) -> None:
    """Give the worker on this seat, from 1, its share of the requests that a server may get at the
    same time, where a number was given; the first workers have the largest."""
    for model in models:
        given = shared_concurrency(model)
        if given is not None:
            share, rest = divmod(given, order.workers)
            model.concurrency = share + (seat <= rest)


@contextmanager
def errors_of(node: str, order: WorkOrder) -> Iterator[None]:
    """Name the node in the errors of the body of the `with` statement, and the driver's folder if
    the node lacks it."""
    try:
        yield
    except HarnessError as error:
        error.where = f"node {node}, {error.where}" if error.where else f"node {node}"
        if not Path(order.cwd).is_dir():
            lacking = f"the node has no {order.cwd}, so relative paths begin in {Path.cwd()}"
            error.hint = f"{error.hint}; {lacking}" if error.hint else lacking
        raise


def versions_here() -> dict[str, str]:
    """The versions of the harness, of Python and of deciding packages in this process."""
    packages = {name: version(name) for name in (HARNESS, *DECIDING)}
    return {PYTHON: platform.python_version(), **packages}


def plugins_here(plugins: Plugins) -> dict[str, str]:
    """The distribution and version of each loaded plugin, by its entry point."""
    return {one.entry_point: f"{one.distribution} {one.version}" for one in plugins.loaded}


def _check_versions(
    versions: Mapping[str, str], of_plugins: Mapping[str, str], node: str, plugins: Plugins
) -> None:
    """Raise NodeDiffers for the first version or plugin that is another one on the node."""
    here = versions_here()
    for name, wanted in versions.items():
        found = here.get(name, ABSENT)
        if name == PYTHON and _minor(found) == _minor(wanted):
            continue
        if found != wanted:
            raise NodeDiffers(
                f"another version of {name} is installed here than where the run was prepared",
                where=f"node {node}, {name}",
                found=found,
                expected=wanted,
                hint=f"install {name} {wanted} on this node, as on all others",
            )
    loaded = plugins_here(plugins)
    for name, wanted in of_plugins.items():
        if loaded.get(name) != wanted:
            raise NodeDiffers(
                f"the plugin {name!r} is another one here than where the run was prepared"
                if name in loaded
                else f"the plugin {name!r} of the run is not loaded here",
                where=f"node {node}, plugin {name}",
                found=loaded.get(name) or _why_missing(name, plugins),
                expected=wanted,
                hint=f"install {wanted.replace(' ', '==')} on this node, or leave the plugin out "
                "of the run with HARNESS_PLUGINS",
            )


def _why_missing(name: str, plugins: Plugins) -> str:
    """Why a plugin is not among the loaded ones."""
    broken = next((str(one) for one in plugins.broken if one.entry_point == name), None)
    left_out = any(one.entry_point == name for one in plugins.left_out)
    return broken or ("left out by HARNESS_PLUGINS" if left_out else "no plugin of this name")


def _minor(text: str) -> str:
    """The first two numbers of a version: the third decides nothing that a run records."""
    return ".".join(text.split(".")[:2])


def _places(contexts: Mapping[str, Sequence[StageContext]]) -> tuple[Place, ...]:
    """The first place of each model that thinks."""
    found: dict[Model, Place] = {}
    for task, stages in contexts.items():
        for context in stages:
            for role, binding in context.bindings.items():
                for number, model in enumerate(binding.models):
                    if model in context.thinking:
                        found.setdefault(model, Place(task, role, number))
    return tuple(found.values())


def _model_at(place: Place, tasks: Sequence[BoundTask]) -> Model:
    """The model that stands in a place."""
    task = next(each for each in tasks if each.task.name == place.task)
    binding = task.bindings.get(place.role)
    models = () if binding is None else binding.models
    if place.number >= len(models):
        raise NodeDiffers(
            "a role has fewer models here than where the run was prepared",
            where=f"{place.task}, role {place.role}",
            found=str(len(models)),
            expected=f"at least {place.number + 1}",
        )
    return models[place.number]


def _check_stages(
    task: str, wanted: Sequence[StageOrder], contexts: Sequence[StageContext]
) -> None:
    """Raise NodeDiffers where the stages of a task are not those of the driver."""
    named, there = [one.stage.name for one in contexts], [one.name for one in wanted]
    if named != there:
        raise NodeDiffers(
            "the benchmark has other stages here than where the run was prepared",
            where=f"task {task}",
            found=", ".join(named) or ABSENT,
            expected=", ".join(there),
        )
    for stage, context in zip(wanted, contexts, strict=True):
        if stage.key == context.key:
            continue
        found = list(_differences(_plain(context.components), stage.components))[:MOST_SHOWN]
        names = ", ".join(name for name, _, _ in found)
        raise NodeDiffers(
            f"a stage has another key here than where the run was prepared: {names} differ",
            where=context.label,
            found="; ".join(f"{name}: {own}" for name, own, _ in found),
            expected="; ".join(f"{name}: {other}" for name, _, other in found),
            hint="give this node the same models, prompts, variables and versions",
        )


def _plain(components: Mapping[str, Any]) -> dict[str, Any]:
    """The components as JSON values, as they are after a way over bytes."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(components))
    return plain


def _differences(here: Any, there: Any, name: str = "") -> Iterator[tuple[str, str, str]]:
    """What differs in two components, with both values: `roles.candidate.model.name`."""
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        for key in dict.fromkeys([*there, *here]):
            below = f"{name}.{key}" if name else str(key)
            yield from _differences(here.get(key, ABSENT), there.get(key, ABSENT), below)
    elif here != there:
        yield name, _text(here), _text(there)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
