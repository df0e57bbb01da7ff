"""What a worker in another process is told of a run, and the check that it would do the same."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import HarnessError, UsageError
from harness.base.key_files import hand_over, key_text
from harness.calls.engines import SharedEngines
from harness.contracts.model import Model
from harness.pipeline.preparation import prepare_without_data
from harness.pipeline.session import Session
from harness.pipeline.settings import OF_EXECUTOR, RunSettings
from harness.pipeline.stage_context import StageContext
from harness.registry import Plugins, load_plugins
from harness.registry.missing_packages import HARNESS
from harness.runs.run_folder import LOCK

DECIDING = (HARNESS, "json-repair", "jinja2")
"""The packages whose versions decide how prompts are rendered and replies are read."""


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a work order that every version of the harness can read."""

    versions: dict[str, str]


class WorkOrder(Versions, frozen=True, kw_only=True):
    """Everything that a worker needs to know of a run, except data, items and keys.

    `folder` is the run folder, `cwd` the folder of the command, and `lock` what the command wrote
    into the run folder's lock. `session` counts the commands of the run. `workers` share its
    `--concurrency`. `stages` has the components of each stage's key, by task and stage, `thinking`
    the models that think, by task, role and number in it.
    """

    settings: RunSettings
    cwd: str
    run_id: str
    folder: str
    lock: str
    session: int
    workers: int
    stages: dict[str, dict[str, dict[str, Any]]]
    thinking: set[tuple[str, str, int]]

    def __repr__(self) -> str:
        # Without the settings: an address in them may hold a password.
        return f"WorkOrder(run_id={self.run_id!r}, tasks={list(self.stages)!r})"


def work_order(session: Session) -> bytes:
    """The order for `read_order`: in its process, a worker asks as a local run does."""
    contexts = [context for each in session.contexts.values() for context in each]
    stages: dict[str, dict[str, dict[str, Any]]] = {}
    for one in contexts:
        stages.setdefault(one.task.name, {})[one.stage.name] = _plain(one.components)
    folder = session.taken.folder.path
    order = WorkOrder(
        settings=msgspec.structs.replace(
            session.settings, executor="local", **dict.fromkeys(OF_EXECUTOR, None)
        ),
        cwd=str(Path.cwd()),
        run_id=session.taken.run_id,
        folder=str(folder.absolute()),
        lock=(folder / LOCK).read_text(),
        session=session.number,
        workers=session.workers,
        stages=stages,
        thinking={
            (one.task.name, role, number)
            for one in contexts
            for role, binding in one.bindings.items()
            for number, model in enumerate(binding.models)
            if model in one.thinking
        },
        versions=_versions(session.plugins),
    )
    return msgspec.msgpack.encode(order, enc_hook=str)


def read_order(data: bytes) -> tuple[WorkOrder, dict[tuple[str, str], StageContext], SharedEngines]:
    """The order, and the contexts of its stages as this process has them, with their engines.

    UsageError where it has other versions, plugins or prompts than the command, or does not see the
    run folder. The process works in the command's folder from now on, if there is one here.
    """
    plugins = load_plugins()
    broken = {f"plugin {one.plugin}": one.error for one in plugins.broken}
    wanted = msgspec.msgpack.decode(data, type=Versions).versions
    _check_versions(wanted, broken | _versions(plugins))
    order = msgspec.msgpack.decode(data, type=WorkOrder, dec_hook=lambda kind, value: kind(value))
    _check_folder(Path(order.folder), order.lock)
    if here := Path(order.cwd).is_dir():
        os.chdir(order.cwd)
    engines = SharedEngines()
    try:
        contexts = _contexts(order, plugins, engines)
    except HarnessError as error:
        if not here:
            lacking = f"there is no {order.cwd} here, so relative paths begin in {Path.cwd()}"
            error.hint = f"{error.hint}; {lacking}" if error.hint else lacking
        raise
    for (task, stage), context in contexts.items():
        _check_stage(context, order.stages[task][stage])
    return order, contexts, engines


def _contexts(
    order: WorkOrder, plugins: Plugins, engines: SharedEngines
) -> dict[tuple[str, str], StageContext]:
    """The contexts of the stages, by task and stage, as this process has them."""
    bound = prepare_without_data(order.settings, plugins, order.stages, engines=engines)
    bindings = {each.task.name: each.bindings for each in bound}
    thinking = [bindings[task][role].models[number] for task, role, number in order.thinking]
    return {
        (each.task.name, context.stage.name): context
        for each in bound
        for context in each.contexts(order.run_id, thinking)
    }


def share_concurrency(models: Iterable[Model], workers: int, *, seat: int) -> None:
    """Give the worker on this seat, from 0, its share of the requests that a server may get at the
    same time, where a number was given; the first workers have the largest."""
    for model in models:
        if model.limited and model.occupies is None:
            share, rest = divmod(model.concurrency, workers)
            model.concurrency = share + (seat < rest)


class RunKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What the keys and addresses of a run's models come from; no text shows the values.

    `variables` has the value of each environment variable, None for one that is not set, and
    `files` the texts of key files.
    """

    variables: dict[str, str | None] = {}
    files: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"RunKeys(variables={list(self.variables)!r}, files={list(self.files)!r})"

    def take(self) -> None:
        """Set the variables in this process, and keep the files' texts.

        What was not set where the run was started is not set here either, so that no request goes
        to an address, and with a key, that only this machine names.
        """
        for name, value in self.variables.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        hand_over(self.files)


def keys_of(models: Iterable[Model]) -> RunKeys:
    """The variables and files that the models read, with their values in this process.

    A file that cannot be read is left out: the node may have it, and says so if it does not.
    """
    variables: dict[str, str | None] = {}
    files: dict[str, str] = {}
    for model in models:
        variables |= {name: os.environ.get(name) for name in model.variables}
        for named in model.key_files:
            with suppress(OSError, UnicodeDecodeError, RuntimeError):
                files[named] = key_text(named)
    return RunKeys(variables=variables, files=files)


def _versions(plugins: Plugins) -> dict[str, str]:
    """The versions of Python, of deciding packages, and of each plugin by its entry point."""
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in DECIDING},
        **{f"plugin {one.plugin}": f"{one.distribution} {one.version}" for one in plugins.loaded},
    }


def _check_versions(wanted: Mapping[str, str], here: Mapping[str, str]) -> None:
    for name, expected in wanted.items():
        if here.get(name) != expected:
            raise UsageError(
                f"{name} is not what it was where the run was prepared",
                where=name,
                found=here.get(name, "nothing"),
                expected=expected,
                hint="install the same versions on all machines",
            )


def _check_folder(folder: Path, lock: str) -> None:
    found = "another folder of the same name"
    try:
        if (folder / LOCK).read_text() == lock:
            return
    except OSError as error:
        found = str(error)
    raise UsageError(
        "the run folder cannot be seen from a worker",
        where=str(folder),
        found=found,
        expected="a folder that all machines share",
        hint="name one with --output_path",
    )


def _check_stage(context: StageContext, wanted: Mapping[str, Any]) -> None:
    differ = list(_differences(_plain(context.components), wanted))
    if differ:
        raise UsageError(
            "a stage has another key here than where the run was prepared",
            where=context.label,
            found="; ".join(f"{name}: {here}" for name, here, _ in differ),
            expected="; ".join(f"{name}: {there}" for name, _, there in differ),
            hint="give this machine the same models, prompts, variables and versions",
        )


def _plain(components: Mapping[str, Any]) -> dict[str, Any]:
    """The components as JSON values, as they are after a way over bytes."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(components))
    return plain


def _differences(here: Any, there: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """What differs in two components, with both values: `roles.candidate.model.name`."""
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        for key in dict.fromkeys([*there, *here]):
            yield from _differences(here.get(key), there.get(key), f"{name}.{key}".strip("."))
    elif here != there:
        yield name, here, there
