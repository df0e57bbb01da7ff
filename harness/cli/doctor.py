"""`harness doctor`: the looks that a run makes before it pays, and those at the installation."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import DataError, HarnessError, UsageError
from harness.base.redaction import (
    REDACTED,
    names_a_secret,
    redacted_args,
    safe_text,
    without_key_material,
)
from harness.cli.command import Option, command, errors_to, print_json
from harness.cli.run_options import RunCommand, settings_from
from harness.cli.settings import VARIABLES, Given, Settings, argument, settings_of
from harness.contracts.finding import Finding, NotReady, bad, bad_by, doubtful, good
from harness.pipeline.settings import RunSettings
from harness.registry import Plugins, load_plugins
from harness.reporting.text import clean_text
from harness.scoring.grouping import grouped

if TYPE_CHECKING:
    from harness.contracts.executor import Executor
    from harness.contracts.model import Model
    from harness.contracts.task import Task
    from harness.pipeline.preflight import Player

DISTRIBUTION = "user-understanding-harness"
PREPARE_SECONDS = 120.0
"""Ample for data that is in the cache; a first download may take longer."""

EXCLUDED = ("dry_run", "resume", "retry_failures")

DEFAULT = "default"
HEADERS = "OPENAI_CUSTOM_HEADERS"
"""A variable whose lines are headers: their values may be keys and cookies."""

OTHERS = ("HARNESS_", "OPENAI_")
"""Prefixes of other variables that are listed if they are set."""


class DoctorCommand(RunCommand):
    """A command that checks the settings too, so that an error in the settings does not end it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line and the settings; an error in the settings is kept as `problem`."""
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            if ctx.params.get("settings"):
                raise
            ctx.obj = Settings(problem=error)
            return ctx.args


@command(
    "harness doctor",
    "harness doctor --model openai:small --judge openai:big --tasks interests",
    "harness doctor --json",
    "harness doctor --settings --model local --limit 20",
    cls=DoctorCommand,
    options_metavar="[--ask | --settings] [--json] [OPTION OF A RUN…]",
    params=[
        Option(["--ask"], is_flag=True, help="ask each model one small question"),
        Option(
            ["--settings"], is_flag=True,
            help="print each setting, where it comes from and what it overrides, and check nothing",
        ),
    ],
)  # fmt: skip
@click.pass_context
def doctor(ctx: click.Context, /, **options: Any) -> int:
    """Check what a run needs: installation, plugins, settings, data, the model of every role with
    its server or weights, disks, the store. Takes the options of a run; starts no server, and
    prints the commands of those that the run would start. A model is asked one small question if
    its server does not list it, or with --ask. The exit code is 1 if something would prevent the
    run.

    Settings come, from the weakest to the strongest, from: default, the user's file, the folder's
    file, the environment, the command line. No key is printed.
    """
    import asyncio

    effective: Settings = ctx.obj
    if options["settings"]:
        return _print_settings(effective, ctx, json=options["json"])
    for other in EXCLUDED:
        if options[other]:
            raise UsageError(f"--{other} cannot be used with `harness doctor`")
    found, ways, servers = asyncio.run(_findings(effective, options))
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
    effective: Settings, options: dict[str, Any]
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
    rest = [findings_about(players, ask=options["ask"]), look_at_disks(settings)]
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
    loaded = load_plugins()
    for broken in loaded.broken:
        yield bad(
            "plugins",
            str(broken),
            f"`harness list plugins {broken.plugin}` shows the traceback; install another "
            f"version of {broken.distribution}, or uninstall it",
        )
    for problem in loaded.problems:
        yield doubtful("plugins", problem, "`harness list plugins NAME` shows the details of one")
    if loaded.loaded:
        names = ", ".join(f"{one.plugin} {one.version}".rstrip() for one in loaded.loaded)
        yield good("plugins", names)
    else:
        yield bad("plugins", "none is loaded, so there is nothing to run", "pip install PLUGIN")
    if loaded.left_out:
        names = ", ".join(one.plugin for one in loaded.left_out)
        yield doubtful("plugins", f"left out by HARNESS_PLUGINS: {names}")


def _of_settings(effective: Settings) -> Iterator[Finding]:
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
        f"{summary} (`harness doctor --settings` shows them)"
        if summary
        else f"only the options of the command; looked for {places} and HARNESS_ variables",
    )


async def _of_tasks(
    settings: RunSettings, loaded: Plugins, effective: Settings
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
    if error is not None:
        others = await in_thread(lambda: _errors_of_each_task(settings, loaded))
        # Models that cannot start, and data that they lack, are among the obstacles already.
        told = (NotReady, DataError) if isinstance(error, (NotReady, DataError)) else NotReady
        further = (
            bad_by("data" if isinstance(one, DataError) else "tasks", effective.with_source(one))
            for one in others
            if not isinstance(one, told)
        )
        said = {one.says for one in known} | {bad_by("tasks", error).says}
        known += [one for one in further if one.says not in said]
    return [*late, *known], players, ways


def _errors_of_each_task(settings: RunSettings, loaded: Plugins) -> list[HarnessError]:
    """The error of each task if it were the only one; the preparation of all ends with the first.

    Errors of usage count for the names of tasks alone: an option may be meant for another task.
    """
    from harness.pipeline.preparation import prepare
    from harness.registry.task_catalogue import Catalogue, Selection

    found: dict[str, HarnessError] = {}
    for name in settings.tasks:
        tasks: Sequence[Task] = ()
        with errors_to(lambda error: found.setdefault(str(error), error)):
            tasks = Catalogue(loaded, include_path=settings.include_path).select([name]).tasks
        for task in tasks:
            try:
                prepare(
                    settings, loaded, Selection(tasks=(task,), groups=()), say=lambda line: None
                )
            except HarnessError as error:
                if type(error) is not UsageError:
                    found.setdefault(str(error), error)
    return list(found.values())


def store(path: Path) -> Iterator[Finding]:
    """Whether the file is a store that this version can use; it is not changed."""
    import sqlite3

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
        yield bad("store", says, "--store FILE names another store, --reuse run runs without one")
    else:
        yield good("store", f"{path}; {path.stat().st_size / 1024**2:,.1f} MiB")


def _print_settings(effective: Settings, ctx: click.Context, *, json: bool) -> int:
    from harness.contracts.model import Model

    document = without_key_material(
        {
            "settings": list(_rows(effective, ctx)),
            "models": [
                {"name": one.name, "spec": one.spec, "where": one.where}
                for one in effective.models.values()
            ],
            "variables": list(_variables(effective, ctx)),
            "files": [{"file": file, "there": there} for file, there in effective.files],
        }
    )
    if json:
        print_json(document)
        return 0
    tables: dict[str, list[tuple[str, ...]]] = {"settings": []}
    for one in document["settings"]:
        if one["setting"] == "concurrency" and one["value"] is None:
            one["value"] = f"{Model.concurrency}, or the model's own"
        overridden = [("  overrides", other) for other in one["overrides"]]
        tables["settings"] += [
            (name, _word(given["value"]), given["where"] or DEFAULT)
            for name, given in [(one["setting"], one), *overridden]
        ]
    tables["models"] = [(one["name"], one["spec"], one["where"]) for one in document["models"]]
    tables["variables"] = [
        (one["name"], _word(one["value"]), "; ".join(filter(None, (one["meaning"], one["hint"]))))
        for one in document["variables"]
    ]
    tables["files"] = [
        (one["file"], "read" if one["there"] else "not found") for one in document["files"]
    ]
    for title, rows in tables.items():
        if rows:
            print(f"{title}:")
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
        for *first, last in rows:
            cells = [cell.ljust(width) for cell, width in zip(first, widths, strict=True)]
            print(clean_text(("  " + "  ".join([*cells, last])).rstrip()))
    return 0


def _rows(effective: Settings, ctx: click.Context) -> Iterator[dict[str, Any]]:
    from harness.calls.store import default_path
    from harness.pipeline.settings import FailureLimits

    defaults = ctx.command.make_context("doctor", [], resilient_parsing=True).params
    shares = {name: getattr(FailureLimits(), name) for name in FailureLimits.__struct_fields__}
    defaults["max_failures"] = ",".join(f"{name}={share}" for name, share in shares.items())
    with suppress(UsageError):
        defaults["store"] = str(default_path())
    slots_of = grouped((given[0].option, slot) for slot, given in effective.given.items())
    for option in settings_of(ctx.command):
        alone = [] if any(effective.holding(option)) else [option]
        for slot in slots_of.get(option, alone):
            given = effective.given.get(slot, ())
            held = effective.in_effect(slot) if given else []
            by_default = Given(option=slot, value=defaults.get(slot), source=DEFAULT, where="")
            others = [_as_json(one) for one in reversed(given) if one not in held]
            yield {**_as_json([by_default, *held][-1]), "overrides": others}


def _variables(effective: Settings, ctx: click.Context) -> Iterator[dict[str, Any]]:
    read = {option.envvar for option in settings_of(ctx.command).values()}
    others = sorted(name for name in os.environ if name.startswith(OTHERS))
    for name in dict.fromkeys([*VARIABLES, *others]):
        if name in read:
            continue
        value, meant = os.environ.get(name), effective.misspelt.get(name)
        yield {
            "name": name,
            "value": "set, not shown"
            if value and (name == HEADERS or names_a_secret(name))
            else value,
            "meaning": VARIABLES.get(name),
            "hint": f"did you mean {meant}?" if meant else None,
        }


def _as_json(given: Given) -> dict[str, Any]:
    value = given.value
    if given.source == DEFAULT:
        value = None if value in ("", [], (), {}) else value
    elif given.option == "set":
        # Keys and passwords are recognised by their names.
        secret = names_a_secret(str(given.entry).rpartition(".")[2])
        safe = redacted_args(value) if isinstance(value, Mapping) else value
        value = REDACTED if secret else argument(safe)
    elif isinstance(value, Mapping) and given.option != "prices":
        value = ",".join(f"{name}={argument(one)}" for name, one in value.items())
    if value is not None and not isinstance(value, (bool, int, float)):
        value = safe_text(_word(value))
    setting = given.slot.removesuffix(".*") if given.entry is not None else given.option
    where = given.where or None
    return {"setting": setting, "value": value, "source": given.source, "where": where}


def _word(value: Any) -> str:
    if isinstance(value, (list, tuple, Mapping)):
        value = ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value in (None, "") else str(value)
