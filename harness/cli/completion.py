"""`harness completion SHELL`, and the completions that its script requests."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)

from harness.base.errors import HarnessError
from harness.cli.command import argument, command

if TYPE_CHECKING:
    from harness.registry import Plugins

VARIABLE = "_HARNESS_COMPLETE"
"""The variable with which the scripts request completions."""

_BREAKS = "=:"
"""The characters at which bash splits words."""


def _completions(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    return lambda ctx, param, incomplete: _starting_with(incomplete, names())


def _starting_with(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def _plugins() -> Plugins:
    from harness.registry import load_plugins

    return load_plugins()


def _named_models() -> Iterable[str]:
    from harness.cli.settings import HERE, read_settings, user_file

    files = [read_settings(file) for file in (user_file(), HERE)]
    tables = [file.values.get("models") for file in files if file is not None]
    return [name for table in tables if isinstance(table, dict) for name in table]


def _runs() -> list[str]:
    from harness.cli.kept_runs import default_folder, kept_runs
    from harness.pipeline.specs import LATEST

    place = default_folder()
    found = sorted((str(file.parent) for file in place.glob("*/manifest.json")), reverse=True)
    labels = [manifest.label for _, manifest in kept_runs(place)]
    return [*found, *([LATEST] if found else []), *labels]


def _prompts() -> Iterable[str]:
    from harness.pipeline.preparation import prompt_folders
    from harness.prompts import Templates

    return Templates(prompt_folders(_plugins())).everything()


judges = _completions(lambda: [*_plugins().judges, *_plugins().models, *_named_models()])


def tasks(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Tasks, groups and tags for the last name of a list with commas."""
    from harness.cli.run_options import task_folders
    from harness.registry.task_catalogue import Catalogue

    there = [folder for folder in ctx.params["include_path"] or () if folder.is_dir()]
    catalogue = Catalogue(_plugins(), include_path=task_folders(there))
    before, comma, _last = incomplete.rpartition(",")
    names = [*catalogue.names, *catalogue.groups, *(f"tag:{tag}" for tag in catalogue.tags)]
    return _starting_with(incomplete, (f"{before}{comma}{name}" for name in names))


def roles(ctx: Any, param: Any, incomplete: str) -> list[str]:
    """`judge=`, or a judge or model for the role."""
    name, equals, spec = incomplete.partition("=")
    if not equals:
        return _starting_with(incomplete, ["judge="])
    return [f"{name}={judge}" for judge in judges(ctx, param, spec)]


def data_places(_ctx: Any, _param: Any, incomplete: str) -> list[str]:
    """`sample` or `build` if its first letters are typed; other places are files or folders."""
    return [name for name in ("sample", "build") if incomplete and name.startswith(incomplete)]


CANDIDATES: dict[str, Callable[[Any, Any, str], list[str]]] = {
    "data_places": data_places,
    "embedder_kinds": _completions(lambda: _plugins().embedders),
    "executors": _completions(lambda: ["local", *_plugins().executors]),
    "judge_kinds": _completions(lambda: _plugins().judges),
    "judges": judges,
    "model_kinds": _completions(lambda: _plugins().models),
    "models": _completions(lambda: [*_plugins().models, *_named_models()]),
    "plugin_names": _completions(
        lambda: [one.plugin for one in (*_plugins().loaded, *_plugins().broken)]
    ),
    "prompts": _completions(_prompts),
    "roles": roles,
    "runs": _completions(_runs),
    "tasks": tasks,
}
"""By name the completions that options and arguments refer to; only completion calls them."""


class _Completions(ShellComplete):
    """Completions; options before a command are options of a run, and file names come last.

    Options are offered with underscores until a dash is typed.
    """

    def __init__(
        self, cli: click.Command, ctx_args: dict[str, Any], prog_name: str, complete_var: str
    ) -> None:
        super().__init__(cli, {**ctx_args, "obj": CANDIDATES}, prog_name, complete_var)

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """The completions of the word that is being typed."""
        if (args or [incomplete])[0].startswith("-"):
            args = ["run", *args]
        name, equals, value = incomplete.partition("=")
        if not incomplete.startswith("--"):
            return self._found(args, incomplete) or [CompletionItem(incomplete, type="file")]
        if not equals:
            dashed = "-" in incomplete[2:]
            options = self._found(args, incomplete)
            return [one for one in options if dashed or "-" not in one.value[2:]]
        found = self._found(args, incomplete) or [CompletionItem(value, type="file")]
        for item in found:
            item.value = f"{name}={item.value}"
        return found

    def _found(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        # Nobody reads errors while pressing Tab; the command shows them when it runs.
        try:
            return super().get_completions(args, incomplete)
        except HarnessError:
            return []


class _Bash(_Completions, BashComplete):
    """Completions for bash: words are joined again, and completed from the last break on."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is being typed, and that word."""
        args, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in [*args, incomplete]:
            if words and word and (not word.strip(_BREAKS) or words[-1].endswith((*_BREAKS,))):
                words[-1] += word
            else:
                words.append(word)
        return words[:-1], words[-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """The completions after the last `=` or `:` of the word that is being typed."""
        known = max(map(incomplete.rfind, _BREAKS)) + 1
        found = super().get_completions(args, incomplete)
        for item in found:
            item.value = item.value[known:]
        return found


class _Zsh(_Completions, ZshComplete):
    """Completions for zsh."""


class _Fish(_Completions, FishComplete):
    """Completions for fish."""


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


@command(
    "source <(harness completion bash)                  # in ~/.bashrc",
    'harness completion zsh > "${fpath[1]}/_harness"',
    "harness completion fish > ~/.config/fish/completions/harness.fish",
)
@argument("shell", metavar="bash|zsh|fish", type=click.Choice(list(SHELLS)), help="the shell")
def completion(shell: str) -> int:
    """Print the script with which a shell completes commands, options, tasks, models, judges and
    runs.
    """
    harness = click.get_current_context().find_root().command
    sys.stdout.write(SHELLS[shell](harness, {}, "harness", VARIABLE).source())
    return 0


def complete(cli: click.Command) -> int:
    """Print the completions that a shell's script requests; return the exit code."""
    shell, _, _ = os.environ[VARIABLE].partition("_")
    print(SHELLS[shell](cli, {}, "harness", VARIABLE).complete())
    return 0
