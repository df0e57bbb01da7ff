"""`harness --model … --tasks …`: run tasks and print the results."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import Any

import click
import msgspec

from harness.base.errors import UsageError
from harness.cli.command import print_error
from harness.cli.run_options import RunCommand, settings_from
from harness.cli.runs import with_resumed_run
from harness.cli.settings import Settings
from harness.pipeline.settings import RunSettings

EPILOG = """\
Settings can also be in ./harness.toml, in harness/config.toml of the user's
config folder, or in variables as HARNESS_MODEL; --no_SWITCH turns off a switch
that they turn on. Option names may have dashes: --dry-run.

examples:
  harness --model baseline --judge lexical --tasks interests --data sample
  harness --model openai --model_args base_url=http://host:8000/v1,model=m \\
          --judge openai:base_url=http://host:8001/v1,model=big --tasks gist
  harness --model vllm --model_args pretrained=Qwen/Qwen3-8B --tasks perrec
  harness … --dry_run             see prompts and expected calls first

exit codes: 0 done, 1 error, 2 usage, 3 too many failures, 130 interrupted"""


@click.command(
    cls=RunCommand, epilog=EPILOG, options_metavar="--model KIND --tasks NAMES [OPTION…]"
)
@click.pass_obj
def run(effective: Settings, /, **options: Any) -> int:
    """Run tasks and print the results. `harness --help` lists the other commands."""
    settings = settings_from(with_resumed_run(options))
    # Nobody should overlook what settles a run besides its command line.
    print_error(*effective.warnings())
    if not options["quiet"] and (summary := effective.summary()):
        print(f"settings: {summary} (`harness doctor --settings` shows them)", file=sys.stderr)
    files = {name: options[name] for name in ("write_requests", "answers") if options[name]}
    for name in files:
        for other in ("dry_run", "retry_failures"):
            if options[other]:
                raise UsageError(f"--{name} cannot be combined with --{other}")
        if settings.executor != "local":
            raise UsageError(
                f"--{name} needs --executor local",
                found=f"--executor {settings.executor}",
                expected="one process, which writes and reads the files",
            )
    json = options["json"]
    if options["dry_run"]:
        return _dry_run(settings, json=json)
    from harness.cli.show import print_result
    from harness.pipeline.run import arun
    from harness.reporting.display import make_display

    display = make_display(quiet=options["quiet"], json=json)
    deliver = partial(print_result, json=json, verbose=options["verbose"])
    started = arun(settings, display=display, handle_signals=True, deliver=deliver, **files)
    return asyncio.run(started).exit_code


def raise_no_command() -> None:
    """Raise UsageError for `harness` without arguments: settings alone do not start a run."""
    ctx = run.make_context("run", [])
    if ctx.params["tasks"]:
        raise UsageError(
            "no command given (settings alone do not start a run)",
            found=f"settings: {ctx.obj.summary()}",
            hint="`harness run` runs these settings, `harness --help` lists the commands",
        )
    settings_from(ctx.params)


def _dry_run(settings: RunSettings, *, json: bool) -> int:
    """Print the first prompt of every stage and role, and the expected calls; the exit code.

    Problems of models and disks are printed first, and are no error. No server is asked.
    """
    from harness.pipeline.forecast import rehearse
    from harness.pipeline.preflight import findings_about, look_at_disks, looks, players_of_run
    from harness.pipeline.preparation import prepare
    from harness.registry import load_plugins
    from harness.reporting.forecast_tables import print_forecast

    plugins = load_plugins()
    prepared = prepare(settings, plugins)
    forecast = asyncio.run(rehearse(settings, plugins, prepared))
    for note in prepared.notes:
        print(note, file=sys.stderr)
    players = players_of_run(prepared)
    looked = looks(findings_about(players, local=True), look_at_disks(settings))
    for one in asyncio.run(looked):
        if one.state != "good":
            to_do = f"\n  to do:    {one.to_do}" if one.to_do else ""
            print_error(f"{one.about}: {one.says}{to_do}")
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(forecast)).decode() + "\n")
    else:
        print_forecast(forecast)
    return 0
