"""The entry of the `harness` command: picks the subcommand, prints errors, sets the exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from harness.cli import (
    analyse,
    completion,
    config,
    data,
    doctor,
    export,
    judges,
    models,
    new_plugin,
    plugins,
    prompts,
    replies,
    requests,
    run,
    score,
    show,
    tasks,
    validate,
)
from harness.cli.errors import print_error
from harness.cli.help_pages import OVERVIEW, HelpPage, dress
from harness.cli.strict import add_strict, refuse_problems
from harness.errors import HarnessError, UsageError, did_you_mean

COMMANDS = {
    "tasks": tasks,
    "show": show,
    "score": score,
    "analyse": analyse,
    "data": data,
    "validate": validate,
    "config": config,
    "doctor": doctor,
    "completion": completion,
    "plugins": plugins,
    "models": models,
    "judges": judges,
    "prompts": prompts,
    "requests": requests,
    "replies": replies,
    "export": export,
    "new-plugin": new_plugin,
}

ALSO_SPELT = ("run", "ls", "validate")
"""Commands that have another harness's spelling as well."""

EPILOG = """\
settings that are given each time may stand in ./harness.toml, in config.toml
of the user's config folder, or in variables as HARNESS_MODEL; a switch of these
is taken back by --no_SWITCH. Names of options may have dashes: --dry-run.

examples:
  harness --model baseline --judge lexical --tasks interests --data sample
  harness --model openai --model_args base_url=http://host:8000/v1,model=m \\
          --judge openai:base_url=http://host:8001/v1,model=big --tasks gist
  harness --model vllm --model_args pretrained=Qwen/Qwen3-8B --tasks perrec
  harness … --dry_run             see prompts and expected calls first

exit codes: 0 done, 1 error, 2 usage, 3 too many failures, 130 interrupted
"""


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors as all others are; all have `--strict_plugins`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        add_strict(self)

    def error(self, message: str) -> NoReturn:
        """Raise what is wrong with the arguments as a UsageError, with the nearest option."""
        options = [name for action in self._actions for name in action.option_strings]
        unknown = message.removeprefix("unrecognized arguments: ").split()
        known = message.startswith("unrecognized")
        raise UsageError(
            message,
            hint=(did_you_mean(unknown[0], options) if known else None)
            or f"`{self.prog} --help` lists what there is",
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == [completion.ASKED]:
        return completion.answer(*given[1:])
    if given in (["--help"], ["-h"]):
        sys.stdout.write(OVERVIEW)
        return 0
    try:
        code = carried_out(with_underscores(given))
    except HarnessError as error:
        print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        print_error("interrupted")
        return 130
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does; Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def carried_out(arguments: Sequence[str]) -> int:
    """Carry a command out; the exit code."""
    said_nothing = not arguments
    arguments = in_our_spelling(arguments)
    parsed = parser_for(arguments).parse_args(arguments)
    if "held" not in vars(parsed) or parsed.version:
        return _done(parsed)
    from harness.cli.settle import settle, without_defaults

    explicit = without_defaults(parser_for(arguments)).parse_args(arguments)
    try:
        parsed.held = settle(parsed, explicit, run_parser=parser_for([]))
    except UsageError as error:
        if parsed.func is not doctor.run:  # which tells what is wrong with it, and all else
            raise
        parsed.unsettled = error
        return _done(parsed)
    if said_nothing and parsed.tasks:
        raise UsageError(
            "nothing was asked",
            found=f"settings: {parsed.held.told()}",
            hint="`harness run` runs what the settings say, `harness --help` lists what there is",
        )
    try:
        return _done(parsed)
    except UsageError as error:
        raise parsed.held.placed(error) from error.__cause__


def _done(parsed: argparse.Namespace) -> int:
    """Do what was asked, with plugins that may be used for it; the exit code."""
    if parsed.func not in (plugins.run, doctor.run):  # which tell of them first
        refuse_problems(parsed)
    code: int = parsed.func(parsed)
    return code


def in_our_spelling(arguments: Sequence[str]) -> Sequence[str]:
    """The arguments as the harness has them, where another harness's users spell them so."""
    if arguments and not arguments[0].startswith("-") and arguments[0] not in ALSO_SPELT:
        return arguments
    from harness.cli.lm_eval_spellings import translate

    translated, notes = translate(arguments)
    for note in notes:
        print_error(f"note: {note}")
    return translated


def parser_for(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the subcommand that the arguments begin with, or of a run."""
    if arguments and arguments[0] in COMMANDS:
        parser = Parser(prog="harness")
        subparsers = parser.add_subparsers(required=True)
        COMMANDS[arguments[0]].add_parser(subparsers)
        dress(subparsers.choices[arguments[0]], arguments[0])
        return parser
    if arguments and not arguments[0].startswith("-"):
        check_plugins_command(arguments[0])
        parser = Parser(prog="harness")
        data.add_parser(parser.add_subparsers(required=True), arguments[0])
        return parser
    parser = Parser(
        prog="harness run",
        usage="harness [run] --model KIND --tasks NAMES [OPTION…]",
        description="Run tasks, and print what they found. `harness --help` lists the other "
        "commands.",
        epilog=EPILOG,
        formatter_class=HelpPage,
        allow_abbrev=False,
    )
    run.add_options(parser)
    parser.set_defaults(func=run.run)
    return parser


def check_plugins_command(name: str) -> None:
    """Raise UsageError for a first word that is no command, neither ours nor a plugin's."""
    from harness.plugin_manager import load_plugins

    loaded = load_plugins()
    if loaded.tools_of(name):
        return
    known = [*COMMANDS, *(word for word in loaded.commands if word not in COMMANDS)]
    raise UsageError(
        f"no command {name!r}",
        found="; ".join(map(str, loaded.broken)) or None,
        expected=", ".join(known) + ", or options of a run, as --model",
        hint=did_you_mean(name, known),
    )


def with_underscores(arguments: Sequence[str]) -> list[str]:
    """The arguments with dashes inside option names as underscores: both spellings work."""
    spelt: list[str] = []
    for index, argument in enumerate(arguments):
        if argument == "--":
            return [*spelt, *arguments[index:]]
        if argument.startswith("--"):
            name, equals, value = argument[2:].partition("=")
            spelt.append(f"--{name.replace('-', '_')}{equals}{value}")
        else:
            spelt.append(argument)
    return spelt


if __name__ == "__main__":
    sys.exit(main())
