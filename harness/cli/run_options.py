"""The options of a run, which settings files and variables can also set, and their meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, get_args, get_type_hints

import click

from harness.base.errors import UsageError, one_of
from harness.cli.command import PATH, RARE_TOO, Command, Option, option
from harness.cli.settings import (
    NAMES_OF_0_1_0,
    PREFIX,
    Setting,
    Settings,
    entries,
    settings_in_effect,
    settings_of,
)
from harness.pipeline.settings import ALL_OTHERS, BOUNDS, RunSettings, make_settings, parse_args
from harness.tasks.load import read_value

if TYPE_CHECKING:
    from harness.registry.task_catalogue import Catalogue

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

    `ctx.obj` is the Settings, so that errors can name the file or variable at fault.
    """

    def __init__(
        self, name: str | None = None, *, params: Sequence[click.Parameter] = (), **attrs: Any
    ) -> None:
        everything = Option(
            ["--help_all"], is_flag=True, is_eager=True, expose_value=False, section=OUTPUT,
            callback=_print_help_of_all, help="show this help with all options and exit",
        )  # fmt: skip
        super().__init__(name, params=[*params, *run_options(), everything], **attrs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line, then fill in the settings."""
        ctx.meta[WORDS] = [*args]
        rest = super().parse_args(ctx, args)
        for name, setting in settings_of(self).items():
            if setting.table == "entries":
                ctx.params[name] = ctx.params[name] or {}
        if not ctx.resilient_parsing:
            ctx.obj = settings_in_effect(ctx)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error about a setting names its file or variable."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            settings: Settings = ctx.obj
            raise settings.with_source(error) from error.__cause__


WHAT, DATA, ASK = "What to run", "Data", "What is asked"
HOW, OUTPUT = "How it runs", "Output"


def _say(section: str, metavar: str | None, help: str, **attrs: Any) -> dict[str, Any]:
    """What an option is for the command, besides its type.

    A `rare` one is in `--help_all` only; `once` says that no file or variable can set it. `aliases`
    are its names in lm-evaluation-harness, and `theirs` what that has for our words in its value.
    """
    return {"section": section, "metavar": metavar, "help": help, **attrs}


KINDS = {"local-chat-completions": "openai", "openai-chat-completions": "openai"}
"""Kinds of model of lm-evaluation-harness, and ours."""


class RunOptions(TypedDict, total=False):
    """The options of a run: of the command, of settings files, of variables and of Python."""

    model: Annotated[str, _say(
        WHAT, "KIND", "the candidate: openai, baseline, …, or a SPEC", candidates="models",
        aliases=("-M", "-m"), theirs=KINDS,
    )]  # fmt: skip
    model_args: Annotated[Mapping[str, Any] | str, _say(
        WHAT, "A=B,C=D", "arguments of the model: base_url=…,model=…", table="arguments",
        aliases=("-a",), theirs={"num_concurrent": "concurrency"},
    )]  # fmt: skip
    tasks: Annotated[str | Sequence[str], _say(
        WHAT, "NAMES", "tasks, groups, tags, globs or YAML files, separated by commas",
        multiple=True, candidates="tasks", aliases=("-t",),
    )]  # fmt: skip
    judge: Annotated[str | None, _say(
        WHAT, "SPEC", "the judge: openai:model=…,base_url=…", candidates="judges",
    )]  # fmt: skip
    role: Annotated[Mapping[str, str] | None, _say(
        WHAT, "NAME=SPEC", "the model or judge of a role", table="entries", candidates="roles",
    )]  # fmt: skip
    name: Annotated[str | None, _say(
        WHAT, "LABEL", "the run's label in tables; else the model's label=, revision= or name",
    )]  # fmt: skip
    tag: Annotated[Mapping[str, Any] | None, _say(
        WHAT, "KEY=VALUE", "a tag that selects the run in `harness runs` and others",
        table="entries",
    )]  # fmt: skip
    include_path: Annotated[str | Path | Sequence[str | Path], _say(
        WHAT, **INCLUDE_PATH, rare=True,
    )]  # fmt: skip
    data: Annotated[str | Path | Mapping[str, str | Path] | None, _say(
        DATA, "DIR|FILE|sample",
        "local data, or the bundled sample; TASK=DIR for a task, group or glob",
        table="entries", candidates="data_places",
    )]  # fmt: skip
    columns: Annotated[Mapping[str, str] | None, _say(
        DATA, "COLUMN=NAME", "the name of a column in the data: [TABLE.]COLUMN=NAME",
        table="entries",
    )]  # fmt: skip
    values: Annotated[Mapping[str, str] | None, _say(
        DATA, "VALUE=MEANING", "what a value in the data stands for: [TABLE.]COLUMN.VALUE=MEANING",
        table="entries", rare=True,
    )]  # fmt: skip
    limit: Annotated[
        int | None, _say(DATA, "N", "at most N users or samples per task", aliases=("-L",))
    ]
    download: Annotated[bool | None, _say(
        DATA, None, "fetch data above 1 GB without asking, or fetch none", opposite="offline",
        default=None,
    )]  # fmt: skip
    set: Annotated[Mapping[str, Any] | None, _say(
        ASK, "KEY=VALUE", "change an option: [TASK.]PATH=VALUE", table="entries",
    )]  # fmt: skip
    gen_kwargs: Annotated[Mapping[str, Any] | str, _say(
        ASK, "A=B,C=D", "the candidate's sampling: temperature=…", table="arguments",
        theirs={"max_gen_toks": "max_tokens", "until": "stop"},
    )]  # fmt: skip
    seed: Annotated[int, _say(ASK, "N", "seed of every random draw (0)", default=0)]
    num_repeats: Annotated[int, _say(
        ASK, "N", "ask everything N times, as N samples; report mean and spread (1)", default=1,
    )]  # fmt: skip
    structured: Annotated[bool, _say(
        ASK, None, "request answers that follow the stage's schema", rare=True,
    )]  # fmt: skip
    prompts: Annotated[str | Path | None, _say(
        ASK, "DIR",
        "your prompts, which replace prompts of the same name: BENCHMARK/PROMPT.ROLE.j2",
        rare=True,
    )]  # fmt: skip
    allow_self_judging: Annotated[bool, _say(
        ASK, None, "allow the candidate to judge its own answers", rare=True,
    )]  # fmt: skip
    output_path: Annotated[str | Path, _say(
        HOW, "DIR", "the folder for runs (runs)", default="runs", aliases=("-o",),
    )]  # fmt: skip
    reuse: Annotated[Literal["run", "store", "none"], _say(
        HOW, "run|store|none", "which answers are used again: only this run's, also those in the "
        "store, or none from before (store)",
        type=click.Choice(("run", "store", "none")), default="store",
    )]  # fmt: skip
    retry_failures: Annotated[bool, _say(HOW, None, "ask the failed questions again", once=True)]
    concurrency: Annotated[int | None, _say(HOW, "N", "concurrent requests per model")]
    max_cost: Annotated[float | None, _say(HOW, "X", "spend at most X, at the prices of --prices")]
    prices: Annotated[str | Path | Mapping[str, Any] | None, _say(
        HOW, "FILE", "prices of models, for tables and --max_cost", table="contents",
    )]  # fmt: skip
    resume: Annotated[str | Path | None, _say(
        HOW, "RUN", "continue this run", candidates="runs", once=True, rare=True,
    )]  # fmt: skip
    max_calls: Annotated[int | None, _say(HOW, "N", "stop after N calls", rare=True)]
    max_tokens: Annotated[int | None, _say(HOW, "N", "stop after N tokens", rare=True)]
    max_failures: Annotated[float | str | Mapping[str, float], _say(
        HOW, "SHARE", "share of items that may fail: 0.2, or calls=0.1,parsing=0.5,judging=0.2",
        table="arguments", rare=True,
    )]  # fmt: skip
    store: Annotated[str | Path | None, _say(
        HOW, "FILE", "the store of answered calls", rare=True, aliases=("-c", "--use_cache"),
    )]  # fmt: skip
    one_engine_at_a_time: Annotated[bool, _say(HOW, None, "open one model at a time", rare=True)]
    attempts: Annotated[int | None, _say(
        HOW, "N", "attempts per call, if the error is temporary (8)", default=8, rare=True,
    )]  # fmt: skip
    timeout: Annotated[float | None, _say(
        HOW, "S", "seconds per attempt (600)", default=600, rare=True,
    )]  # fmt: skip
    total_timeout: Annotated[float | None, _say(
        HOW, "S", "seconds for all attempts of a call (3600)", default=3600, rare=True,
    )]  # fmt: skip
    start_timeout: Annotated[float | None, _say(
        HOW, "S", "seconds for a server's start (3600)", default=3600, rare=True,
    )]  # fmt: skip
    executor: Annotated[str, _say(
        HOW, "NAME", "what runs it: local, this process, or ray, workers on a Ray cluster (local)",
        default="local", candidates="executors", rare=True,
    )]  # fmt: skip
    ray_address: Annotated[str | None, _say(
        HOW, "ADDRESS",
        "the cluster: auto, HOST:PORT or ray://HOST:PORT; without it, this machine alone",
        rare=True,
    )]  # fmt: skip
    workers: Annotated[int | None, _say(
        HOW, "N", "with --executor ray: processes that ask servers", rare=True,
    )]  # fmt: skip
    engines: Annotated[int | None, _say(
        HOW, "N", "with --executor ray: engines of a model (all)", rare=True,
    )]  # fmt: skip
    quiet: Annotated[bool, _say(OUTPUT, None, "only results and errors")]
    offline: bool
    """The opposite of `download`, of which `--offline` is the other spelling."""


def run_options() -> list[Option]:
    """Every option of a run: those of `RunOptions`, and those that only the command has."""
    hints = get_type_hints(RunOptions, include_extras=True)
    switch = partial(Option, is_flag=True)
    return [
        *(_click_option(name, hint) for name, hint in hints.items() if name != "offline"),
        switch(
            ["--dry_run"], section=HOW, help="print the first prompts and expected calls and exit"
        ),
        Option(
            ["--write_requests"], metavar="DIR", type=PATH, section=HOW, rare=True,
            help="write the candidate's questions to files for a batch engine, and ask none",
        ),
        Option(
            ["--answers"], metavar="FILE", type=PATH, multiple=True, section=HOW, rare=True,
            help="the engine's answers to them; may be given again",
        ),
        switch(
            ["--verbose"], section=OUTPUT,
            help="after the table, print all metrics and costs",
        ),
        switch(["--json"], section=OUTPUT, help="results as one JSON document"),
        switch(
            ["--version"], is_eager=True, expose_value=False, callback=_print_version,
            section=OUTPUT, help="print the version and exit", rare=True,
        ),
    ]  # fmt: skip


def _click_option(name: str, hint: Any) -> Option:
    """The option of the command, whose type follows from that of Python.

    A switch is turned off by its opposite, `--no_NAME` if it has no other.
    """
    attrs = dict(hint.__metadata__[0])
    once, opposite = attrs.pop("once", False), attrs.pop("opposite", f"no_{name}")
    table, kinds = attrs.get("table"), get_args(hint.__origin__) or (hint.__origin__,)
    spelled, aliases = f"--{name}", attrs.pop("aliases", ())
    if bool in kinds:
        attrs["is_flag"] = True
        spelled += "" if once else f"/--{opposite}"
    elif table in ("entries", "arguments"):
        attrs |= {"multiple": True} if table == "entries" else {"default": ""}
    else:
        known = {int: int, float: float, Path: PATH}
        attrs.setdefault("type", next((known[kind] for kind in known if kind in kinds), None))
    if once:
        return Option([spelled], **attrs)
    return Setting([spelled, *aliases], envvar=PREFIX + name.upper(), **attrs)


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        print(version("user-understanding-harness"))
        ctx.exit()


def _print_help_of_all(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[RARE_TOO] = True
        print(ctx.get_help())
        ctx.exit()


def run_setting(name: str, *words: str) -> Any:
    """The value of an option for `harness run WORDS`, including the settings."""
    return RunCommand("run").make_context("run", list(words)).params[name]


def catalogue_with(folders: Iterable[Path]) -> Catalogue:
    """The installed tasks and those of the given folders, or else of those in the settings."""
    from harness.registry import load_plugins
    from harness.registry.task_catalogue import Catalogue

    words = (f"--include_path={one}" for one in folders)
    return Catalogue(load_plugins(), include_path=run_setting("include_path", *words))


def settings_from(options: Mapping[str, Any], *, whole: bool = True) -> RunSettings:
    """The settings of a run from its options; UsageError if they are not valid.

    With `whole`, the options that every run needs must be there.
    """
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
        "tags": _texts(options["tag"]),
        "data": _data(options["data"]),
        "columns": _texts(options["columns"]),
        "values": _texts(options["values"]),
        "changes": dict(options["set"] or {}),
        "sampling": _sampling(options["gen_kwargs"]),
        "patience": {name: value for name, value in patience.items() if value is not None},
        "max_failures": options["max_failures"] or {},
        "download": options["download"] is True,
        "offline": options["download"] is False,
        "fresh": options["reuse"] == "none",
        "use_store": options["reuse"] != "run",
    }
    return make_settings(given, whole=whole)


def options_of_python(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run, of which Python names some, also as in 0.1.0; UsageError for a name
    that no option has."""
    command = RunCommand("run")
    options = command.make_context("run", [], resilient_parsing=True).params
    tables = {name for name, one in settings_of(command).items() if one.table == "entries"}
    known = {**RunOptions.__annotations__, **NAMES_OF_0_1_0}
    for name, value in given.items():
        one_of(name, known, f"no option is named {name!r}")
        if name not in NAMES_OF_0_1_0:
            listed = name in tables and isinstance(value, (list, tuple))  # as on the command line
            options[name] = entries(name, value) if listed else value
        elif value:
            now, meant = NAMES_OF_0_1_0[name]
            options[now] = meant
    return options


def _texts(entries: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (entries or {}).items()}


def _data(given: Any) -> str | dict[str, str] | None:
    """The place of all data, or places by task, in the form of RunSettings."""
    if not isinstance(given, Mapping):
        return None if given is None else str(given)
    places = _texts(given)
    return places if places.keys() - {ALL_OTHERS} else places.get(ALL_OTHERS)


def _roles(options: Mapping[str, Any]) -> dict[str, str]:
    roles = dict(options["role"] or {})
    if options["judge"]:
        if "judge" in roles:
            found = f"--judge and --role judge={roles['judge']}"
            raise UsageError("the judge is given twice", where="--role", found=found)
        roles["judge"] = options["judge"]
    return roles


def _sampling(given: Mapping[str, Any] | str) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    try:
        return {name: read_value(value) for name, value in parse_args(given).items()}
    except UsageError as error:
        error.where = "--gen_kwargs"
        raise
