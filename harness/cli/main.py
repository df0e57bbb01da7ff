"""The entry point of the `harness` command: dispatch, printed errors and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from harness.base.errors import HarnessError, StorageError, UsageError, did_you_mean
from harness.cli.command import (
    FORMER,
    CommandGroup,
    prepare_streams,
    print_error,
    to_nowhere,
    usage_error,
)

COMMANDS = {
    "run": "run",
    "show": "show",
    "runs": "runs",
    "compare": "compare",
    "report": "report",
    "suite": "suite",
    "score": "compare",
    "analyse": "tools",
    "export": "report",
    "data": "tools",
    "tasks": "tasks",
    "list": "list",
    "validate": "tasks",
    "doctor": "doctor",
    "new-plugin": "scaffold",
    "completion": "completion",
}
"""The module of each command; the command is the function of that name in the module."""

HELP = (["--help"], ["-h"])

OVERVIEW = """\
usage: harness [run] --model KIND --tasks NAMES [OPTION…], or harness COMMAND …

Find out whether a language model understands people. Try it without a model:
  harness --model baseline --judge lexical --tasks interests --data sample

  harness run --help              the options of a run, and examples
  harness tasks|validate [NAME…]  list tasks and groups; check task files
  harness runs                    list the runs, or remove some
  harness show RUN                show the results of a run
  harness compare RUN…            which run is better, and how sure that is
  harness report RUN…             one page about runs, for a browser or paper
  harness suite FILE              models × tasks × seeds with one command
  harness score RUN…              score runs again; calls no model
  harness analyse NAME RUN…       analyses of finished runs
  harness export RUN… --out DIR   results as CSV, Parquet or lm-eval's files
  harness data [NAME]             create, describe or fetch data
  harness list models|judges|embedders|prompts|plugins|analyses   what is there
  harness doctor                  check what a run needs; the settings in effect
  harness new-plugin|completion   your own benchmark; words for your shell
  harness COMMAND --help          the options; plugins add commands, as perrec
"""
"""What `harness --help` prints: one screen of a small terminal."""


class Harness(CommandGroup):
    """The `harness` command with all subcommands, each imported when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands of the harness, then the commands of plugins."""
        from harness.registry import load_plugins

        return [*dict.fromkeys([*COMMANDS, *load_plugins().commands])]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, from the harness or a plugin; None if there is none."""
        if cmd_name in COMMANDS:
            module = import_module(f"harness.cli.{COMMANDS[cmd_name]}")
            function = "list_" if cmd_name == "list" else cmd_name.replace("-", "_")
            found: click.Command = getattr(module, function)
            return found
        from harness.registry import load_plugins

        if not load_plugins().tools_of(cmd_name):
            return None
        from harness.cli.tools import Tools

        return Tools(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str, click.Command, list[str]]:
        """The command that the first word names; UsageError with the nearest name otherwise."""
        found = self.get_command(ctx, args[0])
        if found is not None:
            return args[0], found, args[1:]
        from harness.registry import load_plugins

        known = self.list_commands(ctx)
        raise UsageError(
            f"no command {args[0]!r}",
            found="; ".join(map(str, load_plugins().broken)) or None,
            expected=", ".join(known) + ", or options of a run, such as --model",
            hint=FORMER.get(args[0]) or did_you_mean(args[0], known),
        )

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview."""
        formatter.write(OVERVIEW)


def _bare() -> None:
    if click.get_current_context().invoked_subcommand is None:
        from harness.cli.run import raise_no_command

        raise_no_command()


harness = Harness("harness", callback=_bare)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    prepare_streams()
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        if "_HARNESS_COMPLETE" in os.environ:
            from harness.cli.completion import complete

            return complete(harness)
        with harness.make_context("harness", with_command(given)) as ctx:
            code: int = harness.invoke(ctx) or 0
        sys.stdout.flush()
    except click.exceptions.Exit as exited:
        return exited.exit_code
    except (HarnessError, click.UsageError) as error:
        failure = usage_error(error) if isinstance(error, click.UsageError) else error
        print_error(failure)
        return failure.exit_code
    except KeyboardInterrupt:
        print_error("interrupted")
        return 130
    except MemoryError:
        print_error("no memory is left; a run keeps its answers, and the same command continues it")
        return 1
    except BrokenPipeError:
        # The reader of the output closed it, as `| head` does.
        to_nowhere(sys.stdout)
        return 1
    except OSError as error:
        if error.filename is not None:
            raise
        to_nowhere(sys.stdout)
        failure = StorageError(
            "the output cannot be written",
            where="standard output",
            found=error.strerror or str(error),
            hint="what was run is kept: `harness runs` lists it, and `harness show RUN` prints it",
        )
        print_error(failure)
        return 1
    return code


def with_command(arguments: list[str]) -> list[str]:
    """The arguments after the command, which is `run` if an option comes first.

    `help COMMAND` and `version` are options here.
    """
    first = arguments[0] if arguments and arguments not in HELP else ""
    if first == "help":
        return [*arguments[1:], "--help"]
    if arguments == ["version"]:
        return ["run", "--version"]
    return ["run", *arguments] if first.startswith("-") else arguments


if __name__ == "__main__":
    sys.exit(main())
