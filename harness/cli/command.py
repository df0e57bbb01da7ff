"""The commands and options of `harness` on click: both spellings, sections in help, our errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from harness.base.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

PATH = click.Path(path_type=Path)
STRICT_PLUGINS = "do nothing where a plugin is broken, a hook misspelt or a name given twice"
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Option(click.Option):
    """An option whose name may have dashes for underscores; help shows the underscores.

    `section` is the heading in help that the option stands under; `candidates` names what a shell
    may complete it with, as a function of `harness.cli.candidates`.
    """

    def __init__(
        self,
        param_decls: Sequence[str],
        *,
        section: str = "Options",
        candidates: str = "",
        **attrs: Any,
    ) -> None:
        super().__init__(param_decls, shell_complete=_completer(candidates), **attrs)
        self.opts, self.secondary_opts = _both(self.opts), _both(self.secondary_opts)
        self.section = section

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The first spelling with the value's name, and the help."""
        if self.hidden:
            return None
        value = "" if self.is_flag else f" {self.make_metavar(ctx)}"
        return self.opts[0] + value, self.help or ""

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        """The value; click's error where the next option stands in its place."""
        value, source = super().consume_value(ctx, opts)
        if source is ParameterSource.COMMANDLINE and not self.is_flag:
            for word in value if self.multiple else [value]:
                if word.startswith("--"):
                    name = self.opts[0]
                    raise click.BadOptionUsage(name, f"Option {name!r} requires an argument.", ctx)
        return value, source


class Argument(click.Argument):
    """An argument whose name stands plain in help, with brackets and dots in the usage alone.

    `candidates` is that of an `Option`.
    """

    def __init__(self, param_decls: Sequence[str], *, candidates: str = "", **attrs: Any) -> None:
        super().__init__(param_decls, shell_complete=_completer(candidates), **attrs)

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The name as a part of the usage."""
        name = self.human_readable_name + ("…" if self.nargs == -1 else "")
        return [name if self.required else f"[{name}]"]


argument = partial(click.argument, cls=Argument)
option = partial(click.option, cls=Option)
json_option = option("--json", is_flag=True, help="as one JSON document")


class Command(click.Command):
    """A command with `--strict_plugins`, and help in sections.

    With `reports_plugins` the command itself says what is wrong with plugins, and is given the
    option; for all others the plugins are checked first.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        options_metavar: str = "[OPTION…]",
        reports_plugins: bool = False,
        **attrs: Any,
    ) -> None:
        super().__init__(name, context_settings=CONTEXT, options_metavar=options_metavar, **attrs)
        self.reports_plugins = reports_plugins
        if all(param.name != "strict_plugins" for param in self.params):
            self.params.append(Option(["--strict_plugins"], is_flag=True, help=STRICT_PLUGINS))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line; every error of click's is given its context."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """The option for help, whose sentence is written as all others are."""
        found = super().get_help_option(ctx)
        if found is not None:
            found.help = "show this help message and exit"
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under the headings of their sections."""
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

    def invoke(self, ctx: click.Context) -> Any:
        """Check the plugins where that was asked, then do what the command does."""
        if not self.reports_plugins and ctx.params.pop("strict_plugins"):
            from harness.registry import load_plugins

            load_plugins().refuse_problems()
        return super().invoke(ctx)


class CommandGroup(Command, click.Group):
    """Commands below a command; without one of them its own callback runs."""

    def __init__(self, name: str | None = None, **attrs: Any) -> None:
        super().__init__(name, invoke_without_command=True, **attrs)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names of the commands; the commands themselves are not loaded for it."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [*map(CompletionItem, names), *click.Command.shell_complete(self, ctx, incomplete)]


def command(*examples: str, cls: type[Command] = Command, **attrs: Any) -> Callable[..., Command]:
    """The decorator of a command; its docstring is its help, the examples end that.

    `@command("harness show", "harness show RUN")`
    """
    return click.command(cls=cls, epilog=epilog(*examples), **attrs)


def epilog(*examples: str) -> str:
    """Examples as the end of help."""
    return "\n".join(["examples:", *(f"  {line}" for line in examples)])


def usage_error(error: click.UsageError) -> UsageError:
    """Click's error as ours: the option that is wrong, and the nearest where there is none."""
    ctx = error.ctx
    hint = f"`{ctx.command_path} --help` lists what there is" if ctx else None
    message, where = error.message.rstrip("."), None
    problem = message[:1].lower() + message[1:]
    if isinstance(error, click.NoSuchOption):
        params = ctx.command.get_params(ctx) if ctx else ()
        options = [name for one in params for name in (one.opts[:1] + one.secondary_opts[:1])]
        problem = f"no option {error.option_name!r}"
        hint = did_you_mean(error.option_name, options) or hint
    elif isinstance(error, click.MissingParameter) and error.param is not None:
        problem = f"{_name(error.param)} is missing"
    elif isinstance(error, click.BadParameter) and error.param is not None:
        where = _name(error.param)
    return UsageError(problem, where=where, hint=hint)


def _name(param: click.Parameter) -> str:
    return param.opts[0] if isinstance(param, click.Option) else param.human_readable_name


def _completer(candidates: str) -> Callable[..., Any] | None:
    """What completes a parameter with these candidates, by the functions in the root context."""
    if not candidates:
        return None

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
        return ctx.find_root().obj[candidates](ctx, param, incomplete)

    return complete


def _both(names: Sequence[str]) -> list[str]:
    """Names of an option with underscores, then with dashes."""
    return [*dict.fromkeys([*names, *(name.replace("_", "-") for name in names)])]
