"""`harness --model … --tasks …`: run tasks and print what they found."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.errors import print_error
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.cli.layers import Held
    from harness.pipeline.settings import RunSettings


_DATA_OF_TASK = re.compile(r"(?P<task>[\w.-]+)=(?P<place>.*)")
"""What `--data` says of one task; a path with `=` in it is told apart by its first `/`."""

ONCE = frozenset({
    "help", "version", "json", "dry_run", "rescore_only", "print_server_command", "resume", "fresh",
    "retry_failures",
})  # fmt: skip
"""Options that are meant for one command: no file of settings and no variable gives them."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give a parser every option of a run; dashes in their names work as well."""
    what = parser.add_argument_group("what to run")
    what.add_argument(
        "--model", metavar="KIND", help="how the candidate is asked: openai, baseline, …, or a SPEC"
    )
    what.add_argument(
        "--model_args", metavar="A=B,C=D", default="", help="its arguments, as base_url=…,model=…"
    )
    what.add_argument(
        "--tasks", metavar="NAMES", action="append", default=[],
        help="tasks, groups, tags, globs or YAML files, separated by commas",
    )  # fmt: skip
    what.add_argument("--judge", metavar="SPEC", help="who judges: openai:model=…,base_url=…")
    what.add_argument(
        "--role", metavar="NAME=SPEC", action="append", default=[], help="who answers for a role"
    )
    what.add_argument(
        "--data", metavar="DIR|FILE|sample", action="append", default=[],
        help="local data, or the bundled sample; TASK=DIR for one task alone",
    )  # fmt: skip
    what.add_argument("--limit", metavar="N", type=int, help="at most N users or samples a task")
    what.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], dest="changes",
        help="change an option: [TASK.]PATH=VALUE",
    )  # fmt: skip
    what.add_argument(
        "--gen_kwargs",
        metavar="A=B,C=D",
        default="",
        help="the candidate's sampling: temperature=…",
    )
    what.add_argument("--seed", metavar="N", type=int, default=0, help="decides every draw (0)")
    what.add_argument(
        "--num_repeats", metavar="N", type=int, default=1,
        help="ask everything N times, as N samples; tells mean and spread (1)",
    )  # fmt: skip
    what.add_argument(
        "--structured",
        action="store_true",
        help="ask servers to hold answers to the stage's schema",
    )
    add_include_path(what)
    what.add_argument(
        "--prompts", metavar="DIR", type=Path,
        help="prompts of your own in place of those of the same name: BENCHMARK/PROMPT.ROLE.j2",
    )  # fmt: skip
    what.add_argument(
        "--allow_self_judging", action="store_true", help="let the candidate be its own judge"
    )
    _add_running(parser)
    _add_showing(parser)
    _add_opposites(parser)
    # `settle` puts here what files, environment and command line give.
    parser.set_defaults(held=None)


def add_include_path(parser: argparse._ActionsContainer) -> None:
    """Give a parser the option for folders of task files."""
    parser.add_argument(
        "--include_path", metavar="DIR", type=Path, action="append", default=[],
        help="a folder of task files beside those that are installed; may be given again",
    )  # fmt: skip


def _add_running(parser: argparse.ArgumentParser) -> None:
    how = parser.add_argument_group("how to run it")
    how.add_argument(
        "--output_path", metavar="DIR", type=Path, default=Path("runs"), help="where runs go (runs)"
    )
    how.add_argument(
        "--dry_run", action="store_true", help="first prompts and expected calls; ask nothing"
    )
    how.add_argument(
        "--rescore_only", action="store_true",
        help="ask nothing: score the newest finished run of this command under what --set changes",
    )  # fmt: skip
    how.add_argument(
        "--print_server_command", action="store_true",
        help="how the models' servers would be started; start and ask nothing",
    )  # fmt: skip
    how.add_argument("--resume", metavar="RUN", type=Path, help="go on with this run folder")
    how.add_argument("--fresh", action="store_true", help="reuse no answer of another run")
    how.add_argument("--retry_failures", action="store_true", help="ask again what failed")
    how.add_argument("--concurrency", metavar="N", type=int, help="requests in flight at a model")
    how.add_argument(
        "--one_engine_at_a_time", action="store_true", help="never two models open together"
    )
    how.add_argument(
        "--attempts", metavar="N", type=int, help="tries of a call that can be retried (8)"
    )
    how.add_argument("--timeout", metavar="S", type=float, help="seconds for one attempt (600)")
    how.add_argument(
        "--total_timeout", metavar="S", type=float, help="seconds for all attempts (3600)"
    )
    how.add_argument("--max_calls", metavar="N", type=int, help="stop after N calls")
    how.add_argument("--max_tokens", metavar="N", type=int, help="stop after N tokens")
    how.add_argument(
        "--max_cost", metavar="X", type=float, help="spend at most X, by the prices given"
    )
    how.add_argument(
        "--prices", metavar="FILE", type=Path, help="what models cost, for tables and --max_cost"
    )
    how.add_argument(
        "--max_failures", metavar="SHARE", default="",
        help="share of items that may fall out: 0.2, or calls=0.1,parsing=0.5,judging=0.2",
    )  # fmt: skip
    how.add_argument("--store", metavar="FILE", type=Path, help="the store of answered calls")
    how.add_argument("--no_store", action="store_true", help="neither read nor write a store")


def _add_showing(parser: argparse.ArgumentParser) -> None:
    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--quiet", action="store_true", help="only results and errors")
    shown.add_argument("--json", action="store_true", help="results as one JSON document")
    shown.add_argument("--version", action="store_true", help="print the version and stop")


def _add_opposites(parser: argparse.ArgumentParser) -> None:
    """Give every switch its opposite, which takes back what a file or a variable says."""
    for action in parser._actions:
        name = action.option_strings[-1].lstrip("-")
        switch = isinstance(action, argparse._StoreTrueAction) and not name.startswith("no_")
        if switch and name not in ONCE:
            parser.add_argument(
                f"--no_{name}", dest=action.dest, action="store_false",
                default=argparse.SUPPRESS, help=argparse.SUPPRESS,
            )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run what the options ask for; the exit code."""
    if args.version:
        from importlib.metadata import version

        print(version("user-understanding-harness"))
        return 0
    settings = settings_from(args)
    if args.held is not None:
        tell_settings(args.held, quiet=args.quiet)
    if args.rescore_only:
        from harness.cli.rescore import rescore_only

        _refuse_with("--rescore_only", args, ("dry_run", "resume", "fresh", "retry_failures"))
        return rescore_only(settings, json=args.json)
    if args.print_server_command:
        from harness.cli.server_command import print_server_commands

        return print_server_commands(settings)
    if args.dry_run:
        from harness.cli.dry_run import dry_run

        return dry_run(settings, json=args.json)
    return _run(settings, quiet=args.quiet, json=args.json)


def tell_settings(held: Held, *, quiet: bool) -> None:
    """Say what was not given on the command line, so that nobody is surprised by it."""
    for line in held.unread:
        print_error(line)
    if not quiet and (told := held.told()):
        print(f"settings: {told} (`harness config` shows them)", file=sys.stderr)


def _refuse_with(option: str, args: argparse.Namespace, others: Sequence[str]) -> None:
    for other in others:
        if getattr(args, other):
            raise UsageError(f"{option} asks nothing, and --{other} means nothing beside it")


def _run(settings: RunSettings, *, quiet: bool, json: bool) -> int:
    import asyncio

    from harness.cli.analyse import print_group
    from harness.pipeline.run import arun
    from harness.reporting.amounts import cost_line
    from harness.reporting.display import make_display
    from harness.reporting.overview import print_results

    display = make_display(quiet=quiet, json=json)
    result = asyncio.run(arun(settings, display=display, handle_signals=True))
    if json:
        sys.stdout.write(result.to_json())
    elif result.summaries:
        print_results(result.summaries, str(result.folder))
        for group in result.groups:
            print_group(group, result.folder)
    for error in result.errors:
        print_error(error)
    if not json:
        cost = cost_line(result.costs.values())
        if cost is not None:
            print(f"this time: {cost}", file=sys.stderr)
        print(f"run folder: {result.folder}", file=sys.stderr)
    return result.exit_code


def settings_from(args: argparse.Namespace, *, whole: bool = True) -> RunSettings:
    """The options as one value; UsageError for what means nothing, or is not a `whole` run."""
    from harness.pipeline.settings import make_settings

    patience = {
        "attempts": args.attempts,
        "attempt_timeout": args.timeout,
        "total_timeout": args.total_timeout,
    }
    given = {
        "tasks": args.tasks,
        "model": args.model,
        "model_args": args.model_args,
        "roles": _roles(args),
        "data": _data(args.data),
        "limit": args.limit,
        "seed": args.seed,
        "num_repeats": args.num_repeats,
        "changes": changes_from(args),
        "sampling": _sampling(args.gen_kwargs),
        "structured": args.structured,
        "allow_self_judging": args.allow_self_judging,
        "prompts": args.prompts,
        "include_path": args.include_path,
        "output_path": args.output_path,
        "resume": args.resume,
        "fresh": args.fresh,
        "retry_failures": args.retry_failures,
        "concurrency": args.concurrency,
        "one_engine_at_a_time": args.one_engine_at_a_time,
        "patience": {name: value for name, value in patience.items() if value is not None},
        "budget": {
            "calls": args.max_calls,
            "tokens": args.max_tokens,
            "cost": args.max_cost,
        },
        "prices": args.prices,
        "max_failures": args.max_failures or {},
        "store": args.store,
        "use_store": not args.no_store,
    }
    return make_settings(given, whole=whole)


def changes_from(args: argparse.Namespace) -> dict[str, Any]:
    """What every `--set` changes, by path."""
    from harness.tasks.changes import parse_change

    return _unrepeated("--set", [parse_change(text) for text in args.changes])


def _unrepeated(option: str, given: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(given)
    if len(found) < len(given):
        names = [name for name, _ in given]
        twice = next(name for name in found if names.count(name) > 1)
        raise UsageError(f"{option} gives {twice!r} twice")
    return found


def _data(given: Sequence[str]) -> str | dict[str, str] | None:
    """The place of all data, or places by task, as settings have them."""
    from harness.pipeline.settings import ALL_OTHERS

    named = [data_of(text) for text in given]
    if [task for task, _ in named].count(ALL_OTHERS) > 1:
        raise UsageError(
            "--data is given twice",
            found=", ".join(given),
            expected="one place for all tasks, or TASK=DIR for each of some",
        )
    places = _unrepeated("--data", named)
    return places if places.keys() - {ALL_OTHERS} else places.get(ALL_OTHERS)


def data_of(text: str) -> tuple[str, str]:
    """The task that one `--data` speaks of, all others as `*`, and the place of its data."""
    from harness.pipeline.settings import ALL_OTHERS

    of_task = _DATA_OF_TASK.fullmatch(text)
    if of_task and not of_task["place"]:
        raise UsageError("no place to read from", found=text, expected="--data TASK=DIR")
    return (of_task["task"], of_task["place"]) if of_task else (ALL_OTHERS, text)


def _roles(args: argparse.Namespace) -> dict[str, str]:
    given = []
    for text in args.role:
        name, equals, spec = text.partition("=")
        if not equals or not spec:
            raise UsageError("not a role", found=text, expected="--role NAME=SPEC")
        given.append((name, spec))
    roles = _unrepeated("--role", given)
    if args.judge:
        if "judge" in roles:
            raise UsageError(
                "the judge is given twice", found=f"--judge and --role judge={roles['judge']}"
            )
        roles["judge"] = args.judge
    return roles


def _sampling(text: str) -> dict[str, Any]:
    from harness.pipeline.roles import parse_args
    from harness.tasks.load import read_value

    return {name: read_value(value) for name, value in parse_args(text).items()}
