"""`harness doctor`: checks of everything that a run with these settings needs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from harness.base.errors import UsageError
from harness.cli.command import Option, command
from harness.cli.output import print_json
from harness.cli.run_options import RunCommand
from harness.cli.settings_sources import EffectiveSettings

if TYPE_CHECKING:
    from harness.cli.doctor_checks.looking import Check
    from harness.contracts.finding import Finding


EXCLUDED = (
    "dry_run", "rescore_only", "print_server_command", "resume", "fresh", "retry_failures",
)  # fmt: skip


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
    "harness doctor --model openai:small --judge openai:big --ask",
    "harness doctor --json",
    cls=DoctorCommand,
    options_metavar="[--ask] [--json] [OPTION OF A RUN…]",
    reports_plugins=True,
    params=[Option(["--ask"], is_flag=True, help="ask each model one small question")],
)
@click.pass_obj
def doctor(effective: EffectiveSettings, /, **options: Any) -> int:
    """Check what a run needs: versions, plugins, settings, models and their servers, folders, the
    store, the hub. Takes the options of a run; runs nothing. Calls no model, so it costs nothing,
    unless --ask is given. The exit code is 1 if something would prevent the run.
    """
    import asyncio

    from harness.cli.doctor_checks.looking import findings_of

    args = SimpleNamespace(**options, effective=effective)
    for other in EXCLUDED:
        if options[other]:
            raise UsageError(f"--{other} cannot be used with `harness doctor`")
    findings = asyncio.run(findings_of(_checks_of(args)))
    if args.json:
        print_json({"findings": findings})
    else:
        from harness.reporting.finding_tables import print_findings

        shown = [one for one in findings if one.state != "good"] if args.quiet else findings
        print_findings(shown)
    return 1 if any(one.state == "bad" for one in findings) else 0


def _checks_of(args: SimpleNamespace) -> list[Check]:
    """All checks, in the order of the report."""
    from harness.calls.store import default_path
    from harness.cli.doctor_checks import installation
    from harness.cli.doctor_checks.folders import folder
    from harness.cli.doctor_checks.hub import hub
    from harness.cli.doctor_checks.looking import Check
    from harness.cli.doctor_checks.store import store

    checks = [
        Check(about="harness", look=installation.versions),
        Check(about="libraries", look=installation.libraries),
        Check(about="terminal", look=installation.terminal),
        Check(about="plugins", look=partial(installation.plugins, strict=args.strict_plugins)),
        Check(about="settings", look=partial(_settings_findings, args.effective)),
        *_checks_of_run(args),
        Check(
            about="runs", look=partial(folder, "runs", args.output_path, option="--output_path DIR")
        ),
    ]
    try:
        file = None if args.no_store else args.store or default_path()
    except UsageError as error:
        checks.append(Check(about="store", look=partial(_unplaced, error)))
        file = None
    if file is not None:
        option = "--store FILE" if args.store else "HARNESS_CACHE=DIR"
        about = "store's folder"
        checks += [
            Check(about="store", look=partial(store, file)),
            Check(about=about, look=partial(folder, about, file.parent, option=option)),
        ]
    return [*checks, Check(about="hub", look=hub)]


def _unplaced(error: UsageError) -> Iterator[Finding]:
    """Why the store has no place."""
    from harness.contracts.finding import bad_by

    yield bad_by("store", error)


def _settings_findings(effective: EffectiveSettings) -> Iterator[Finding]:
    """Where the settings come from, or why they are not valid."""
    from harness.contracts.finding import bad_by, doubtful, good

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


def _checks_of_run(args: SimpleNamespace) -> Iterator[Check]:
    """The checks of the tasks, models and judges that the options name."""
    from harness.base.errors import HarnessError
    from harness.cli.doctor_checks.looking import Check
    from harness.cli.doctor_checks.models import checks_of_models
    from harness.cli.doctor_checks.tasks import tasks
    from harness.cli.run_options import settings_from
    from harness.contracts.finding import bad_by
    from harness.registry import load_plugins

    effective = EffectiveSettings() if isinstance(args.effective, UsageError) else args.effective
    try:
        plugins = load_plugins()
    except HarnessError:
        return  # the check of the plugins reports it
    named = {name: one.spec for name, one in effective.models.items()}
    try:
        settings = settings_from(vars(args), whole=False)
        models = checks_of_models(
            settings, named, plugins, with_source=effective.with_source, ask=args.ask
        )
    except HarnessError as error:
        finding = bad_by(
            "options", effective.with_source(error) if isinstance(error, UsageError) else error
        )
        yield Check(about="options", look=lambda: [finding])
        return
    if settings.tasks:
        yield Check(about="tasks", look=partial(tasks, settings, plugins))
    yield from models
