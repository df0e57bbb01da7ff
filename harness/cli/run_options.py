"""The options of a run, which settings files and variables can also set, and their meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import UsageError
from harness.cli.command import PATH, Command, Option, option
from harness.cli.setting import PREFIX, Setting, data_of

if TYPE_CHECKING:
    from harness.cli.settings_sources import EffectiveSettings
    from harness.pipeline.settings import RunSettings

INCLUDE_PATH: dict[str, Any] = {
    "metavar": "DIR",
    "type": PATH,
    "multiple": True,
    "help": "a folder of task files besides the installed ones; may be given again",
}
include_path_option = option("--include_path", **INCLUDE_PATH)


WORDS = "words"
"""Where the context of a run's command has its words."""


class RunCommand(Command):
    """A command that takes the options of a run, filled in from the settings.

    `ctx.obj` is the EffectiveSettings, so that errors can name the file or variable at fault.
    """

    def __init__(
        self, name: str | None = None, *, params: Sequence[click.Parameter] = (), **attrs: Any
    ) -> None:
        super().__init__(name, params=[*params, *run_options()], **attrs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line, then fill in the settings."""
        ctx.meta[WORDS] = [*args]
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            from harness.cli.settings_sources import effective_settings

            ctx.obj = effective_settings(ctx)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error about a setting names its file or variable."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            settings: EffectiveSettings = ctx.obj
            raise settings.with_source(error) from error.__cause__


def run_options() -> list[Option]:
    """Every option of a run, in the order of its help."""
    return [*_what_to_run(), *_how_to_run(), *_output()]


def _what_to_run() -> Iterator[Option]:
    setting = partial(_setting, section="What to run")
    yield setting(
        "model", "KIND", "the candidate: openai, baseline, …, or a SPEC",
        candidates="models",
    )  # fmt: skip
    yield setting(
        "model_args", "A=B,C=D", "arguments of the model: base_url=…,model=…", default="",
        table="arguments",
    )  # fmt: skip
    yield setting(
        "tasks", "NAMES", "tasks, groups, tags, globs or YAML files, separated by commas",
        multiple=True, candidates="tasks",
    )  # fmt: skip
    yield setting("judge", "SPEC", "the judge: openai:model=…,base_url=…", candidates="judges")
    yield setting(
        "role", "NAME=SPEC", "the model or judge of a role", multiple=True, table="entries",
        candidates="roles",
    )  # fmt: skip
    yield setting(
        "data", "DIR|FILE|sample",
        "local data, or the bundled sample; TASK=DIR for a task, group or glob",
        multiple=True, table="entries", candidates="data_places",
    )  # fmt: skip
    yield setting(
        "columns", "COLUMN=NAME", "the name of a column in the data: [TABLE.]COLUMN=NAME",
        multiple=True, table="entries",
    )  # fmt: skip
    yield setting(
        "values", "VALUE=MEANING",
        "what a value in the data stands for: [TABLE.]COLUMN.VALUE=MEANING",
        multiple=True, table="entries",
    )  # fmt: skip
    yield setting("offline", None, "fetch no data: read what is in the caches")
    yield Option(
        ["--download"], is_flag=True, help="fetch data above 1 GB without asking",
        section="What to run",
    )  # fmt: skip
    yield setting("limit", "N", "at most N users or samples per task", type=int)
    yield setting(
        "set", "KEY=VALUE", "change an option: [TASK.]PATH=VALUE", multiple=True, table="entries",
        as_yaml=True,
    )  # fmt: skip
    yield setting(
        "gen_kwargs", "A=B,C=D", "the candidate's sampling: temperature=…", default="",
        table="arguments", as_yaml=True,
    )  # fmt: skip
    yield setting("seed", "N", "seed of every random draw (0)", type=int, default=0)
    yield setting(
        "num_repeats", "N", "ask everything N times, as N samples; report mean and spread (1)",
        type=int, default=1,
    )  # fmt: skip
    yield setting("structured", None, "request answers that follow the stage's schema")
    yield setting("include_path", **INCLUDE_PATH)
    yield setting(
        "prompts", "DIR",
        "your prompts, which replace prompts of the same name: BENCHMARK/PROMPT.ROLE.j2",
        type=PATH,
    )  # fmt: skip
    yield setting(
        "name", "LABEL",
        "the run's label in tables; else the model's label=, revision= or name",
    )  # fmt: skip
    yield setting(
        "tag", "KEY=VALUE", "a tag that selects the run in `harness runs` and others",
        multiple=True, table="entries",
    )  # fmt: skip
    yield setting("allow_self_judging", None, "allow the candidate to judge its own answers")


def _how_to_run() -> Iterator[Option]:
    section = "How to run it"
    setting = partial(_setting, section=section)

    def switch(name: str, text: str) -> Option:
        return Option([f"--{name}"], is_flag=True, help=text, section=section)

    yield setting("output_path", "DIR", "the folder for runs (runs)", type=PATH, default="runs")
    yield switch("dry_run", "print the first prompts and expected calls and exit")
    yield Option(
        ["--resume"], metavar="RUN", type=PATH, help="continue this run",
        candidates="runs", section=section,
    )  # fmt: skip
    yield Option(
        ["--write_requests"], metavar="DIR", type=PATH, section=section,
        help="write the candidate's questions to files for a batch engine, and ask none",
    )  # fmt: skip
    yield Option(
        ["--answers"], metavar="FILE", type=PATH, multiple=True, section=section,
        help="the engine's answers to them; may be given again",
    )  # fmt: skip
    yield switch("fresh", "reuse no answers of other runs")
    yield switch("retry_failures", "ask the failed questions again")
    yield setting("concurrency", "N", "concurrent requests per model", type=int)
    yield setting("one_engine_at_a_time", None, "open one model at a time")
    yield setting(
        "executor", "NAME",
        "what runs it: local, this process, or ray, workers on a Ray cluster (local)",
        default="local", candidates="executors",
    )  # fmt: skip
    yield setting(
        "ray_address", "ADDRESS",
        "the cluster: auto, HOST:PORT or ray://HOST:PORT; without it, this machine alone",
    )  # fmt: skip
    yield setting("workers", "N", "with --executor ray: processes that ask servers", type=int)
    yield setting("engines", "N", "with --executor ray: engines of a model (all)", type=int)
    yield setting("attempts", "N", "attempts per call, if the error is temporary (8)", type=int)
    yield setting("timeout", "S", "seconds per attempt (600)", type=float)
    yield setting("total_timeout", "S", "seconds for all attempts of a call (3600)", type=float)
    yield setting("start_timeout", "S", "seconds for a server's start (3600)", type=float)
    yield setting("max_calls", "N", "stop after N calls", type=int)
    yield setting("max_tokens", "N", "stop after N tokens", type=int)
    yield setting("max_cost", "X", "spend at most X, at the prices of --prices", type=float)
    yield setting(
        "prices", "FILE", "prices of models, for tables and --max_cost", type=PATH,
        table="contents",
    )  # fmt: skip
    yield setting(
        "max_failures", "SHARE",
        "share of items that may fail: 0.2, or calls=0.1,parsing=0.5,judging=0.2",
        default="", table="arguments",
    )  # fmt: skip
    yield setting("store", "FILE", "the store of answered calls", type=PATH)
    yield setting("no_store", None, "do not read or write a store")


def _output() -> Iterator[Option]:
    section = "Output"
    yield _setting("quiet", None, "only results and errors", section=section)
    yield Option(
        ["--verbose"], is_flag=True, section=section,
        help="after the table, print what `harness show RUN` prints",
    )  # fmt: skip
    yield Option(["--json"], is_flag=True, help="results as one JSON document", section=section)
    yield Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
        help="print the version and exit", section=section,
    )  # fmt: skip


def _setting(name: str, metavar: str | None = None, help: str = "", **attrs: Any) -> Setting:
    """The setting of a name; without a metavar a switch, which `--no_NAME` turns off."""
    envvar = PREFIX + name.upper()
    if metavar is not None:
        return Setting([f"--{name}"], envvar=envvar, metavar=metavar, help=help, **attrs)
    opposite = "" if name.startswith("no_") else f"/--no_{name}"
    return Setting([f"--{name}{opposite}"], envvar=envvar, is_flag=True, help=help, **attrs)


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        print(version("user-understanding-harness"))
        ctx.exit()


def run_setting(name: str, *words: str) -> Any:
    """The value of an option for `harness run WORDS`, including the settings."""
    return RunCommand("run").make_context("run", list(words)).params[name]


def task_folders(folders: Iterable[Path]) -> Sequence[Path]:
    """The folders of task files: the given folders, or else the folders in the settings."""
    found: Sequence[Path] = run_setting(
        "include_path", *(f"--include_path={one}" for one in folders)
    )
    return found


def settings_from(options: Mapping[str, Any], *, whole: bool = True) -> RunSettings:
    """The settings of a run from its options; UsageError if they are not valid.

    Options with entries or arguments may be mappings, as Python callers give them. With `whole`,
    the options that every run needs must be there.
    """
    from harness.pipeline.settings import BOUNDS, RunSettings, make_settings

    alike = (*RunSettings.__struct_fields__, *BOUNDS)
    patience = {
        "attempts": options["attempts"],
        "attempt_timeout": options["timeout"],
        "total_timeout": options["total_timeout"],
        "start_timeout": options["start_timeout"],
    }
    given = {
        **{name: options[name] for name in alike if name in options},
        "roles": _roles(options),
        "tags": {name: str(value) for name, value in _mapping(options["tag"], tags_from).items()},
        "data": _data(options["data"]),
        "columns": _own_columns("--columns", options["columns"]),
        "values": _own_columns("--values", options["values"]),
        "changes": _mapping(options["set"], changes_from),
        "sampling": _mapping(options["gen_kwargs"], _sampling),
        "patience": {name: value for name, value in patience.items() if value is not None},
        "max_failures": options["max_failures"] or {},
        "use_store": not options["no_store"],
    }
    return make_settings(given, whole=whole)


def _mapping(given: Any, read: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """The entries of an option: a mapping, or as `read` reads them from the command line."""
    return dict(given) if isinstance(given, Mapping) else read(given or ())


def changes_from(given: Sequence[str]) -> dict[str, Any]:
    """The changes of all `--set` options, by path."""
    from harness.tasks.changes import parse_change

    return _without_repeats("--set", [parse_change(text) for text in given])


def tags_from(given: Sequence[str]) -> dict[str, str]:
    """The tags of all `--tag` options, by name."""
    found = []
    for text in given:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals and value.strip()):
            raise UsageError(
                "--tag needs a name and a value", found=text, expected="--tag NAME=VALUE"
            )
        found.append((name.strip(), value.strip()))
    return _without_repeats("--tag", found)


def _own_columns(option: str, given: Any) -> dict[str, str]:
    """The entries of --columns or --values by path."""
    from harness.tasks.own_columns import read_own_columns

    found = _mapping(given, lambda texts: _without_repeats(option, read_own_columns(option, texts)))
    return {path: str(name) for path, name in found.items()}


def _without_repeats(option: str, given: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(given)
    if len(found) < len(given):
        names = [name for name, _ in given]
        twice = next(name for name in found if names.count(name) > 1)
        raise UsageError(f"{option} sets {twice!r} twice")
    return found


def _data(given: Any) -> str | dict[str, str] | None:
    """The place of all data, or places by task, in the form of RunSettings."""
    from harness.pipeline.settings import ALL_OTHERS

    if given is None or isinstance(given, str | Path):
        return None if given is None else str(given)
    if isinstance(given, Mapping):
        return {task: str(place) for task, place in given.items()}
    named = [data_of(text) for text in given]
    if [task for task, _ in named].count(ALL_OTHERS) > 1:
        raise UsageError(
            "--data for all tasks is given twice",
            found=", ".join(given),
            expected="one place for all tasks, and --data TASK=DIR for single tasks",
        )
    places = _without_repeats("--data", named)
    return places if places.keys() - {ALL_OTHERS} else places.get(ALL_OTHERS)


def _roles(options: Mapping[str, Any]) -> dict[str, str]:
    roles = _mapping(options["role"], _roles_from)
    if options["judge"]:
        if "judge" in roles:
            found = f"--judge and --role judge={roles['judge']}"
            raise UsageError("the judge is given twice", where="--role", found=found)
        roles["judge"] = options["judge"]
    return roles


def _roles_from(texts: Sequence[str]) -> dict[str, str]:
    given = []
    for text in texts:
        name, equals, spec = text.partition("=")
        if not equals or not spec:
            raise UsageError("--role needs NAME and SPEC", found=text, expected="--role NAME=SPEC")
        given.append((name, spec))
    return _without_repeats("--role", given)


def _sampling(text: str) -> dict[str, Any]:
    from harness.pipeline.settings import parse_args
    from harness.tasks.load import read_value

    try:
        return {name: read_value(value) for name, value in parse_args(text).items()}
    except UsageError as error:
        error.where = "--gen_kwargs"
        raise
