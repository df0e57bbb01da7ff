"""`harness completion SHELL`, and the completions that its script requests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

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

VARIABLE = "_HARNESS_COMPLETE"
"""The variable with which the scripts request completions."""

_BREAKS = "=:"
"""The characters at which bash splits words."""


def candidates(kind: str, ctx: click.Context, incomplete: str) -> list[str]:
    """What completes a word of this kind, which an option or argument has as `candidates`."""
    from harness.registry import load_plugins

    before, names = "", list[str]()
    plugins = load_plugins()
    match kind:
        case "data_places" if incomplete:  # other places are files or folders
            names = ["sample", "build"]
        case "embedder_kinds" | "judge_kinds" | "model_kinds":
            names = [*getattr(plugins, kind.replace("_kinds", "s"))]
        case "executors":
            names = ["local", *plugins.executors]
        case "judges":
            names = [*plugins.judges, *plugins.models, *_named_models()]
        case "models":
            names = [*plugins.models, *_named_models()]
        case "plugin_names":
            names = [one.plugin for one in (*plugins.loaded, *plugins.broken)]
        case "prompts":
            from harness.pipeline.preparation import prompt_folders
            from harness.prompts import Templates

            names = [*Templates(prompt_folders(plugins)).everything()]
        case "roles":
            name, equals, spec = incomplete.partition("=")
            if equals:
                return [f"{name}={judge}" for judge in candidates("judges", ctx, spec)]
            names = ["judge="]
        case "runs":
            from harness.cli.runs import default_folder, kept_runs

            place = default_folder()
            files = sorted(place.glob("*/manifest.json"), reverse=True)
            labels = [manifest.label for _, manifest in kept_runs(place)]
            names = [*(str(file.parent) for file in files), *(["latest"] if files else []), *labels]
        case "tasks":
            from harness.cli.run_options import catalogue_with

            there = [folder for folder in ctx.params["include_path"] or () if folder.is_dir()]
            catalogue = catalogue_with(there)
            before = "".join(incomplete.rpartition(",")[:2])  # the names before, in a list
            names = [*catalogue.names, *catalogue.groups, *(f"tag:{tag}" for tag in catalogue.tags)]
    return [one for name in dict.fromkeys(names) if (one := before + name).startswith(incomplete)]


def _named_models() -> Iterator[str]:
    from harness.cli.settings import HERE, read_settings, user_file

    for file in filter(None, map(read_settings, (user_file(), HERE))):
        table = file.values.get("models")
        yield from table if isinstance(table, dict) else ()


class _Completions(ShellComplete):
    """Completions; options before a command are options of a run, and file names come last.

    Options are offered with underscores until a dash is typed.
    """

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


SHELLS: dict[str, type[ShellComplete]] = {
    "bash": _Bash,
    "zsh": type("_Zsh", (_Completions, ZshComplete), {}),
    "fish": type("_Fish", (_Completions, FishComplete), {}),
}


@command(
    "source <(harness completion bash)                  # in ~/.bashrc",
    'harness completion zsh > "${fpath[1]}/_harness"',
    "harness completion fish > ~/.config/fish/completions/harness.fish",
)
@argument("shell", metavar="bash|zsh|fish", type=click.Choice(list(SHELLS)), help="the shell")
def completion(shell: str) -> None:
    """Print the script with which a shell completes commands, options, tasks, models, judges and
    runs.
    """
    harness = click.get_current_context().find_root().command
    sys.stdout.write(SHELLS[shell](harness, {}, "harness", VARIABLE).source())


def complete(cli: click.Command) -> int:
    """Print the completions that a shell's script requests; return the exit code."""
    shell, _, _ = os.environ[VARIABLE].partition("_")
    print(SHELLS[shell](cli, {"obj": candidates}, "harness", VARIABLE).complete())
    return 0
