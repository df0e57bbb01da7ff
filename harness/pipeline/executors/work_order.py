"""What a worker in another process is told of a run, and the check that it would do the same."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from harness.base.errors import HarnessError, UsageError
from harness.base.hashing import digest
from harness.base.key_files import hand_over, key_text
from harness.calls.engines import SharedEngines
from harness.contracts.model import Model
from harness.pipeline.preparation import bind_tasks
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
    the models that think, by the digests of their keys.
    """

    settings: RunSettings
    cwd: str
    run_id: str
    folder: str
    lock: str
    session: int
    workers: int
    stages: dict[str, dict[str, dict[str, Any]]]
    thinking: frozenset[str]

    def __repr__(self) -> str:
        # Without the settings: an address in them may hold a password.
        return f"WorkOrder(run_id={self.run_id!r}, tasks={list(self.stages)!r})"


def work_order(
    settings: RunSettings,
    contexts: Sequence[StageContext],
    plugins: Plugins,
    *,
    run_id: str,
    folder: Path,
    session: int,
    workers: int,
) -> bytes:
    """The order for `read_order`: in its process, a worker asks as a local run does."""
    stages: dict[str, dict[str, dict[str, Any]]] = {}
    for one in contexts:
        stages.setdefault(one.task.name, {})[one.stage.name] = _plain(one.components)
    order = WorkOrder(
        settings=msgspec.structs.replace(
            settings, executor="local", **dict.fromkeys(OF_EXECUTOR, None)
        ),
        cwd=str(Path.cwd()),
        run_id=run_id,
        folder=str(folder.absolute()),
        lock=(folder / LOCK).read_text(),
        session=session,
        workers=workers,
        stages=stages,
        thinking=frozenset(
            digest(model.identity.key(run_id)) for one in contexts for model in one.thinking
        ),
        versions=_versions(plugins),
    )
    return msgspec.msgpack.encode(order, enc_hook=str)


def read_order(data: bytes) -> tuple[WorkOrder, dict[tuple[str, str], StageContext], SharedEngines]:
    """The order, and the contexts of its stages as this process has them, with their engines.

    UsageError where it has other versions, plugins or prompts than the command, or does not see the
    run folder. The process works in the command's folder from now on, if there is one here.
    """
    plugins = load_plugins()
    _check_versions(msgspec.msgpack.decode(data, type=Versions).versions, _versions(plugins))
    order = msgspec.msgpack.decode(data, type=WorkOrder, dec_hook=lambda kind, value: kind(value))
    _check_folder(Path(order.folder), order.lock)
    if Path(order.cwd).is_dir():
        os.chdir(order.cwd)
    engines = SharedEngines()
    bound = bind_tasks(
        order.settings, plugins, {task: list(own) for task, own in order.stages.items()},
        engines=engines,
    )  # fmt: skip
    models = {model for each in bound for one in each.bindings.values() for model in one.models}
    thinking = [one for one in models if digest(one.identity.key(order.run_id)) in order.thinking]
    contexts = {
        (each.task.name, context.stage.name): context
        for each in bound
        for context in each.contexts(order.run_id, thinking)
    }
    for (task, stage), context in contexts.items():
        _check_stage(context, order.stages[task][stage])
    return order, contexts, engines


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
        **{
            f"plugin {one.entry_point}": f"{one.distribution} {one.version}"
            for one in plugins.loaded
        },
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
    here = _plain(context.components)
    differ = [name for name in {**wanted, **here} if wanted.get(name) != here.get(name)]
    if differ:
        raise UsageError(
            "a stage has another key here than where the run was prepared",
            where=context.label,
            found="; ".join(f"{name} {_shown(here.get(name))}" for name in differ),
            expected="; ".join(f"{name} {_shown(wanted.get(name))}" for name in differ),
            hint="give this machine the same models, prompts, variables and versions",
        )


def _plain(components: Mapping[str, Any]) -> dict[str, Any]:
    """The components as JSON values, as they are after a way over bytes."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(components))
    return plain


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def errors_of(node: str, error: HarnessError) -> HarnessError:
    """The error, which says from now on that it is about this node."""
    if node not in (error.where or ""):
        error.where = ", ".join(filter(None, (f"node {node}", error.where)))
    return error
