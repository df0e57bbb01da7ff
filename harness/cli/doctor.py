"""`harness doctor`: whether a run with these settings could go well, and what is in its way."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.cli.layers import Held
    from harness.doctor.looking import Check
    from harness.findings import Finding


SENSELESS = (
    "dry_run", "rescore_only", "print_server_command", "resume", "fresh", "retry_failures",
)  # fmt: skip


def add_parser(subparsers: Any) -> None:
    """Add the command to the parser of the whole."""
    from harness.cli.run import add_options

    parser = subparsers.add_parser(
        "doctor",
        help="what is in the way of a run, and what to do about it",
        usage="harness doctor [--ask] [--json] [OPTION OF A RUN…]",
        description="Look at all that a run needs: versions, plugins, settings, models and their "
        "servers, folders, the store, the hub. Takes the options of a run and runs nothing. Asks "
        "no model anything, so it costs nothing, unless --ask is given. The exit code is 1 where "
        "something is in the way.",
    )
    parser.add_argument("--ask", action="store_true", help="ask each model one small question")
    add_options(parser)
    parser.set_defaults(func=run, unsettled=None)


def run(args: argparse.Namespace) -> int:
    """Print what was found; the exit code."""
    import asyncio

    from harness.doctor.looking import findings_of

    for other in SENSELESS:
        if getattr(args, other):
            raise UsageError(f"--{other} means nothing to `harness doctor`")
    findings = asyncio.run(findings_of(checks_of(args)))
    if args.json:
        from harness.cli.json_output import print_json

        print_json({"findings": findings})
    else:
        from harness.reporting.findings import print_findings

        shown = [one for one in findings if one.state != "good"] if args.quiet else findings
        print_findings(shown)
    return 1 if any(one.state == "bad" for one in findings) else 0


def checks_of(args: argparse.Namespace) -> list[Check]:
    """All that is to be looked at, in the order in which it is told."""
    from harness.calls.store import default_path
    from harness.doctor import installation
    from harness.doctor.folders import folder
    from harness.doctor.hub import hub
    from harness.doctor.looking import Check
    from harness.doctor.store import store

    checks = [
        Check(about="harness", look=installation.versions),
        Check(about="libraries", look=installation.libraries),
        Check(about="terminal", look=installation.terminal),
        Check(about="plugins", look=partial(installation.plugins, strict=args.strict_plugins)),
        Check(about="settings", look=partial(of_settings, args.held, args.unsettled)),
        *_of_run(args),
        Check(
            about="runs", look=partial(folder, "runs", args.output_path, option="--output_path DIR")
        ),
    ]
    if not args.no_store:
        file = args.store or default_path()
        option = "--store FILE" if args.store else "HARNESS_CACHE=DIR"
        about = "store's folder"
        checks += [
            Check(about="store", look=partial(store, file)),
            Check(about=about, look=partial(folder, about, file.parent, option=option)),
        ]
    return [*checks, Check(about="hub", look=hub)]


def of_settings(held: Held | None, unsettled: UsageError | None) -> Iterator[Finding]:
    """Where settings were found, or why they cannot be used."""
    from harness.findings import bad_by, doubtful, good

    if unsettled is not None:
        yield bad_by("settings", unsettled)
    if held is None:
        return
    for line in held.unread:
        yield doubtful("settings", line)
    told = held.told()
    looked = ", ".join(file for file, _ in held.files)
    yield good(
        "settings",
        f"{told} (`harness config` shows them)"
        if told
        else f"none but those of the command; looked for {looked} and HARNESS_ variables",
    )


def _of_run(args: argparse.Namespace) -> Iterator[Check]:
    """The checks of what the options of a run name: tasks, models and judges."""
    from harness.cli.run import settings_from
    from harness.doctor.looking import Check
    from harness.doctor.models import checks_of_models
    from harness.doctor.tasks import tasks
    from harness.errors import HarnessError
    from harness.findings import bad_by
    from harness.plugin_manager import load_plugins

    def placed(error: UsageError) -> UsageError:
        return error if args.held is None else args.held.placed(error)

    try:
        plugins = load_plugins()
    except HarnessError:
        return  # what is wrong with the plugins is told as such
    named = {name: one.spec for name, one in args.held.models.items()} if args.held else {}
    try:
        settings = settings_from(args, whole=False)
        models = checks_of_models(settings, named, plugins, placed=placed, ask=args.ask)
    except HarnessError as error:
        told = bad_by("options", placed(error) if isinstance(error, UsageError) else error)
        yield Check(about="options", look=lambda: [told])
        return
    if settings.tasks:
        yield Check(about="tasks", look=partial(tasks, settings, plugins))
    yield from models
