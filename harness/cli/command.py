"""Commands and options on click, and what all commands print in one way."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import click
from click.core import ParameterSource

from harness.base.errors import HarnessError, UsageError, did_you_mean
from harness.reporting.text import clean_text

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


PATH = click.Path(path_type=Path)
RARE_TOO = "rare options too"
"""Where a context says that its help has the rare options too."""

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


FORMER = {
    "batch": "`--model openai --model_args …,batch=true` asks in batches",
    "config": "`harness doctor --settings` shows the settings and where they come from",
    "embedders": "`harness list embedders` lists the kinds of embedder",
    "judges": "`harness list judges` lists the kinds of judge",
    "leaderboard": "`harness report RUN… --rank` writes a page of ranks",
    "ls": "`harness tasks` lists the tasks",
    "models": "`harness list models` lists the kinds of model",
    "plugins": "`harness list plugins` lists the plugins",
    "prompts": "`harness list prompts` lists the prompts",
    "replies": "`harness run --answers FILE` reads the answers",
    "requests": "`harness run --write_requests DIR` writes requests to files",
    "--check_servers": "`harness doctor --model KIND` asks each server",
    "--fresh": "`--reuse none` reuses no answers of other runs",
    "--no_offline": "`--download` fetches data, also above 1 GB",
    "--no_store": "`--reuse run` neither reads nor writes a store",
    "--print_server_command": "`harness doctor --model KIND` prints the command of its server",
    "--rescore_only": "`harness score RUN` scores a run again",
    "--run_storage": "`--output_path DIR` names a folder that all nodes share",
    "--strict_plugins": "`harness list plugins --strict_plugins` fails if a plugin is broken",
    "report --max_size": "`--samples N` says how many samples of each task the page shows",
    **dict.fromkeys(
        (f"score --{name}" for name in ("compare", "export_oracle", "force", "oracle", "output")),
        "`harness compare RUN…` compares runs, and takes the options of comparisons",
    ),
    "validate --tasks": "`harness validate NAME…` names the tasks without an option",
}
"""Commands and options that are spelled otherwise now, each with the new spelling."""


class Option(click.Option):
    """An option whose name may have dashes for underscores; help shows the underscores.

    `section` is the heading of the option in help, which has `rare` ones only with `--help_all`.
    `candidates` is the kind of words with which a shell completes its value.

        Option(["--task"], metavar="NAME", help="this task only", candidates="tasks")
    """

    def __init__(
        self,
        param_decls: Sequence[str],
        *,
        section: str = "Options",
        rare: bool = False,
        candidates: str = "",
        **attrs: Any,
    ) -> None:
        super().__init__(param_decls, shell_complete=_completer(candidates), **attrs)
        self.opts = _both_spellings(self.opts)
        self.secondary_opts = _both_spellings(self.secondary_opts)
        self.section = section
        self.rare = rare

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The first spelling with the name of the value, and the help text."""
        if self.hidden or (self.rare and not ctx.meta.get(RARE_TOO)):
            return None
        opposite = [one for one in self.secondary_opts[:1] if not one.startswith("--no_")]
        value = "" if self.is_flag else f" {self.make_metavar(ctx)}"
        return " | ".join([self.opts[0], *opposite]) + value, self.help or ""

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """The value and its source; click's error if the next word is another option."""
        value, source = super().consume_value(ctx, opts)
        if source is ParameterSource.COMMANDLINE and not self.is_flag:
            for word in value if self.multiple else [value]:
                if word.startswith("--"):
                    name = self.opts[0]
                    raise click.BadOptionUsage(name, f"Option {name!r} requires an argument.", ctx)
        return value, source


class Argument(click.Argument):
    """An argument whose name is plain in help, with brackets and dots in the usage only.

    `candidates` means the same as for an `Option`.
    """

    def __init__(self, param_decls: Sequence[str], *, candidates: str = "", **attrs: Any) -> None:
        super().__init__(param_decls, shell_complete=_completer(candidates), **attrs)

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The name as it appears in the usage line."""
        name = self.human_readable_name + ("…" if self.nargs == -1 else "")
        return [name if self.required else f"[{name}]"]


argument = partial(click.argument, cls=Argument)
option = partial(click.option, cls=Option)
json_option = option("--json", is_flag=True, help="as one JSON document")


class Command(click.Command):
    """A command with help in sections."""

    def __init__(
        self,
        name: str | None = None,
        *,
        options_metavar: str = "[OPTION…]",
        **attrs: Any,
    ) -> None:
        super().__init__(name, context_settings=CONTEXT, options_metavar=options_metavar, **attrs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; every error of click has its context."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The option for help, with a text in the style of the other options."""
        found = super().get_help_option(ctx)
        if found is not None:
            found.help = "show this help message and exit"
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                section = param.section if isinstance(param, Option) else "Options"
                sections.setdefault(section, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are, so that they can be copied."""
        formatter.write(f"\n{self.epilog}\n" if self.epilog else "")


class CommandGroup(Command, click.Group):
    """A command with subcommands; without a subcommand its own callback runs."""

    def __init__(self, name: str | None = None, **attrs: Any) -> None:
        super().__init__(name, invoke_without_command=True, **attrs)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The completions for a subcommand, found without importing the subcommands."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [*map(CompletionItem, names), *click.Command.shell_complete(self, ctx, incomplete)]


def command(*examples: str, cls: type[Command] = Command, **attrs: Any) -> Callable[..., Command]:
    """The decorator that makes a function a command; its help is the docstring and the examples.

    `@command("harness show", "harness show RUN")`
    """
    return click.command(cls=cls, epilog=epilog(*examples), **attrs)


def epilog(*examples: str) -> str:
    """The examples as the last section of help."""
    return "\n".join(["examples:", *(f"  {line}" for line in examples)])


def usage_error(error: click.UsageError) -> UsageError:
    """The error of click as a UsageError: which option is wrong, and the nearest known name."""
    ctx = error.ctx
    hint = f"`{ctx.command_path} --help` lists the options" if ctx else None
    message, where, expected = error.message.rstrip("."), None, None
    problem = message[:1].lower() + message[1:]
    if isinstance(error, click.NoSuchOption):
        params = ctx.command.get_params(ctx) if ctx else ()
        options = [name for one in params for name in (one.opts[:1] + one.secondary_opts[:1])]
        problem = f"no option {error.option_name!r}"
        spelled = f"--{error.option_name.lstrip('-').replace('-', '_')}"
        of_command = f"{ctx.command.name} {spelled}" if ctx else ""
        now = FORMER.get(of_command) or FORMER.get(spelled)
        hint = now or did_you_mean(error.option_name, options) or hint
    elif isinstance(error, click.NoSuchCommand) and ctx is not None:
        known = ctx.command.list_commands(ctx) if isinstance(ctx.command, click.Group) else []
        expected = f"one of {', '.join(known)}"
        hint = did_you_mean(error.command_name, known) or hint
    elif isinstance(error, click.MissingParameter) and error.param is not None:
        problem = f"{_name(error.param)} is missing"
        if _name(error.param) == "RUN":
            hint = "`harness runs` lists the runs"
        if isinstance(error.param.type, click.Choice):
            expected = _choices(error.param.type)
        elif isinstance(error.param, click.Option) and error.param.metavar and error.param.help:
            expected = f"{_name(error.param)} {error.param.metavar}: {error.param.help}"
    elif isinstance(error, click.BadParameter) and error.param is not None:
        where = _name(error.param)
        given = re.match(r"'(.*?)' is not one of '", error.message)
        if given and isinstance(kind := error.param.type, click.Choice):
            problem, expected = f"no value {given[1]!r}", _choices(kind)
            hint = did_you_mean(given[1], map(str, kind.choices)) or hint
    return UsageError(problem, where=where, expected=expected, hint=hint)


def _choices(kind: click.Choice[Any]) -> str:
    return f"one of {', '.join(map(str, kind.choices))}"


def _name(param: click.Parameter) -> str:
    return param.opts[0] if isinstance(param, click.Option) else param.human_readable_name


def _completer(kind: str) -> Callable[..., Any] | None:
    """The completer of the words of a kind, which the root context knows while a shell asks."""
    if not kind:
        return None
    return lambda ctx, _, incomplete: ctx.find_root().obj(kind, ctx, incomplete)


def _both_spellings(names: Sequence[str]) -> list[str]:
    return [*dict.fromkeys([*names, *(name.replace("_", "-") for name in names)])]


Row = tuple[str, str]
"""A name and its text."""


class Forgiving:
    """A stream for messages; once it cannot be written, what follows is dropped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, or drop it."""
        try:
            self._stream.write(text)
        except OSError:
            to_nowhere(self._stream)
        return len(text)

    def flush(self) -> None:
        """Write what is held back, or drop it."""
        try:
            self._stream.flush()
        except OSError:
            to_nowhere(self._stream)


def prepare_streams() -> None:
    """Make standard output and error fit for printing any text, and for being closed or full.

    A closed output is replaced by one that cannot be written: nobody gets what it is given. Closed
    messages are dropped, as a run does not end because its messages cannot be written. Characters
    that the locale lacks are written as escapes.
    """
    for name, mode in (("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, mode), "w", encoding="utf-8"))
        elif stream is getattr(sys, f"__{name}__") and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="backslashreplace")
    if sys.stderr is sys.__stderr__:
        sys.stderr = cast(TextIO, Forgiving(cast(TextIO, sys.stderr)))


def to_nowhere(stream: TextIO) -> None:
    """Drop all that a stream holds and will be given; Python would print an error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_error(*errors: object) -> None:
    """Print errors on standard error, without control codes that a server may have sent."""
    for error in errors:
        print(clean_text(f"harness: {error}", lines=True), file=sys.stderr)


@contextmanager
def errors_to(take: Callable[[HarnessError], object]) -> Iterator[None]:
    """Give the error that ends the block to a function, in place of raising it.

    with errors_to(print_error):
        plugins.benchmark(name)
    """
    try:
        yield
    except HarnessError as error:
        take(error)


@contextmanager
def paged() -> Iterator[None]:
    """Show what the block prints page by page, if it is longer than the terminal it goes to."""
    if not sys.stdout.isatty():
        yield
        return
    held, errors = _Screen(), list[HarnessError]()
    with redirect_stdout(held), errors_to(errors.append):
        yield
    text, screen = held.getvalue(), shutil.get_terminal_size()
    rows = sum(1 + len(click.unstyle(line)) // screen.columns for line in text.splitlines())
    if rows < screen.lines:
        sys.stdout.write(text)
    else:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which is for the pager
        try:
            click.echo_via_pager(text.removesuffix("\n"))
        except (OSError, ValueError):  # PAGER is no command
            sys.stdout.write(text)
        finally:
            signal.signal(signal.SIGINT, before)
    for error in errors:
        raise error


class _Screen(io.StringIO):
    """Holds what goes to a terminal, and looks like one."""

    def isatty(self) -> bool:
        return True


def print_json(value: Any) -> None:
    """Print a value as a JSON document in ASCII, so that no model's text controls the terminal."""
    import msgspec

    json.dump(msgspec.to_builtins(value), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_sections(sections: Iterable[tuple[str, Sequence[Row]]]) -> None:
    """Print rows under their titles; a title without rows is left out."""
    for title, rows in sections:
        if rows:
            print(f"{title}:")
            print_rows(rows)


def print_rows(rows: Sequence[Row]) -> None:
    """Print two columns, the second wrapped to the width of the terminal."""
    width = shutil.get_terminal_size((100, 24)).columns
    formatter = click.HelpFormatter(indent_increment=2, width=width)
    formatter.indent()
    formatter.write_dl([(clean_text(name), clean_text(text)) for name, text in rows], col_max=width)
    sys.stdout.write(formatter.getvalue())
