"""`harness doctor`: the looks that a run makes before it pays, and those at the installation."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import HarnessError, UsageError
from harness.base.redaction import safe_text
from harness.cli.command import Option, command
from harness.cli.output import print_json
from harness.cli.run_options import RunCommand, settings_from
from harness.cli.settings_sources import EffectiveSettings
from harness.contracts.finding import Finding, bad, bad_by, doubtful, good

if TYPE_CHECKING:
    from harness.contracts.executor import Executor
    from harness.contracts.model import Model
    from harness.pipeline.preflight import Player
    from harness.pipeline.settings import RunSettings
    from harness.registry import Plugins

DISTRIBUTION = "user-understanding-harness"
PREPARE_SECONDS = 120.0
"""Ample for data that is in the cache; a first download may take longer."""

EXCLUDED = ("dry_run", "resume", "fresh", "retry_failures")


class DoctorCommand(RunCommand):
    """A command that checks the settings too, so that an error in the settings does not end it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line and the settings; an error in the settings is kept as `problem`."""
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            ctx.obj = EffectiveSettings(problem=error)
            return ctx.args


@command(
    "harness doctor",
    "harness doctor --model openai:small --judge openai:big --tasks interests",
    "harness doctor --json",
    cls=DoctorCommand,
    options_metavar="[--ask] [--json] [OPTION OF A RUN…]",
    params=[Option(["--ask"], is_flag=True, help="ask each model one small question")],
)
@click.pass_obj
def doctor(effective: EffectiveSettings, /, **options: Any) -> int:
    """Check what a run needs: installation, plugins, settings, data, the model of every role with
    its server or weights, disks, the store. Takes the options of a run; starts no server, and
    prints the commands of those that the run would start. A model is asked one small question if
    its server does not list it, or with --ask. The exit code is 1 if something would prevent the
    run.
    """
    import asyncio

    for other in EXCLUDED:
        if options[other]:
            raise UsageError(f"--{other} cannot be used with `harness doctor`")
    found, ways, servers = asyncio.run(_findings(SimpleNamespace(**options), effective, options))
    if options["json"]:
        print_json({"findings": found, "servers": servers})
    else:
        from harness.reporting.grid import print_findings

        print_findings([one for one in found if one.state != "good" or not options["quiet"]])
        for line in ways:
            print(line)
        for one in servers:
            print(f"  {one['model']} starts:\n    {one['command']}")
    return 1 if any(one.state == "bad" for one in found) else 0


async def _findings(
    args: SimpleNamespace, effective: EffectiveSettings, options: dict[str, Any]
) -> tuple[list[Finding], list[str], list[dict[str, str]]]:
    """All findings, the lines of commands that work instead of this run, and the command of each
    server that the run would start."""
    from harness.base.threads import in_thread
    from harness.pipeline.executors.sharded import machines_of
    from harness.pipeline.preflight import (
        MODEL_SECONDS,
        findings_about,
        look,
        look_at_disks,
        looks,
        models_of,
    )
    from harness.registry import load_plugins

    first = await looks(
        look("installation", installation),
        look("plugins", plugins),
        look("settings", partial(_of_settings, effective)),
    )
    try:
        settings = settings_from(options, whole=False)
        found, players, ways = await _of_tasks(settings, load_plugins(), effective)
    except HarnessError as error:
        return [*first, bad_by("options", effective.with_source(error))], [], []
    models = list(models_of(players))
    file = settings.store_file
    rest = [findings_about(players, ask=args.ask), look_at_disks(settings)]
    if file is not None:
        rest.append(look("store", lambda: store(file)))
    try:
        machines = machines_of(settings, load_plugins())
    except HarnessError as error:
        found.append(bad_by("executor", effective.with_source(error)))
    else:
        if machines is not None:
            find = partial(_of_machines, machines, settings, models)
            rest.append(look(settings.executor, find, MODEL_SECONDS))
    servers = await in_thread(lambda: list(_servers(models)))
    return [*first, *found, *await looks(*rest)], ways, servers


def _servers(models: list[Model]) -> Iterator[dict[str, str]]:
    """Each model that would start a server, and the command for it."""
    for model in models:
        try:
            command = model.server_command()
        except HarnessError:  # a finding about the model says why its server cannot start
            continue
        if command is not None:
            yield {"model": model.identity.label, "command": safe_text(shlex.join(command))}


async def _of_machines(
    machines: Executor, settings: RunSettings, models: list[Model]
) -> list[Finding]:
    """What an executor's machines have, and whether they hold the workers of the run."""
    from harness.pipeline.executors.sharded import join

    found = [*machines.check()]
    if models and settings.ray_address is not None:
        try:
            many = join(machines, settings, models)
            found.append(good(settings.executor, f"the run has {many} workers there"))
        finally:
            await machines.close()
    return found


def installation(distribution: str = DISTRIBUTION) -> Iterator[Finding]:
    """The versions, and each required package that is missing or too old."""
    from packaging.requirements import Requirement

    about = "installation"
    for wanted in map(Requirement, metadata.requires(distribution) or ()):
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        try:
            version = metadata.version(wanted.name)
        except metadata.PackageNotFoundError:
            version = ""
        if not version or not wanted.specifier.contains(version, prereleases=True):
            found = f"{wanted.name} {version}" if version else f"no {wanted.name}"
            needed = f"{wanted.name}{wanted.specifier}"
            yield bad(about, f"found {found}; expected {needed}", f"pip install '{needed}'")
    python = f"Python {platform.python_version()}, {sys.executable}"
    system = f"{platform.system()} {platform.machine()}"
    yield good(about, f"harness {metadata.version(distribution)}; {python}; {system}")


def plugins() -> Iterator[Finding]:
    """The loaded plugins, the broken plugins, and the problems of plugins."""
    from harness.registry import load_plugins

    loaded = load_plugins()
    for broken in loaded.broken:
        yield bad(
            "plugins",
            str(broken),
            f"`harness plugins {broken.plugin}` shows the traceback; install another "
            f"version of {broken.distribution}, or uninstall it",
        )
    for problem in loaded.problems:
        yield doubtful("plugins", problem, "`harness plugins NAME` shows the details of one")
    if loaded.loaded:
        names = ", ".join(f"{one.plugin} {one.version}".rstrip() for one in loaded.loaded)
        yield good("plugins", names)
    else:
        yield bad("plugins", "none is loaded, so there is nothing to run", "pip install PLUGIN")
    if loaded.left_out:
        names = ", ".join(one.plugin for one in loaded.left_out)
        yield doubtful("plugins", f"left out by HARNESS_PLUGINS: {names}")


def _of_settings(effective: EffectiveSettings) -> Iterator[Finding]:
    """Where the settings come from, or why they are not valid."""
    if effective.problem is not None:
        yield bad_by("settings", effective.problem)
        return
    for line in effective.warnings():
        yield doubtful("settings", line)
    summary = effective.summary()
    places = ", ".join(file for file, _ in effective.files)
    yield good(
        "settings",
        f"{summary} (`harness config` shows them)"
        if summary
        else f"only the options of the command; looked for {places} and HARNESS_ variables",
    )


async def _of_tasks(
    settings: RunSettings, loaded: Plugins, effective: EffectiveSettings
) -> tuple[list[Finding], list[Player], list[str]]:
    """The findings about tasks and data, what plays the roles, and commands that work instead.

    If the run cannot be prepared, the roles are bound one by one, so that each is looked at.
    """
    import asyncio

    from harness.base.threads import in_thread
    from harness.pipeline.preflight import obstacles, players_of_run
    from harness.pipeline.preparation import prepare

    error: HarnessError | None = None
    late = []
    if settings.tasks and settings.model:
        try:
            async with asyncio.timeout(PREPARE_SECONDS):
                prepared = await in_thread(lambda: prepare(settings, loaded))
        except TimeoutError:
            late = [doubtful("data", f"not known after {PREPARE_SECONDS:g} s")]
        except HarnessError as failed:
            error = failed
        else:
            data = dict.fromkeys(f"{one.task.name}: {one.dataset.origin}" for one in prepared.tasks)
            found = [good("tasks", "; ".join(data)), *(good("tasks", n) for n in prepared.notes)]
            return found, players_of_run(prepared), []
    known, players, ways = await obstacles(settings, loaded, error, effective.with_source)
    return [*late, *known], players, ways


def store(path: Path) -> Iterator[Finding]:
    """Whether the file is a store that this version can use; it is not changed."""
    import sqlite3
    from contextlib import closing

    from harness.calls.store import APPLICATION_ID, FORMAT

    if not path.exists():
        yield good("store", f"{path}; does not exist yet, the first run creates it")
        return
    try:
        address = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=2.0)) as connection:
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        yield bad("store", f"{path} cannot be read: {error}", "--store FILE names another store")
        return
    if tables and (mark != APPLICATION_ID or version > FORMAT):
        says = f"{path} is not a store that this version can use"
        yield bad("store", says, "--store FILE names another store, --no_store runs without one")
    else:
        yield good("store", f"{path}; {path.stat().st_size / 1024**2:,.1f} MiB")
