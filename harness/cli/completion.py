"""`harness completion SHELL`, and the completions that its script requests."""

from __future__ import annotations

import os
import sys
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)

from harness.base.errors import HarnessError
from harness.cli.candidates import CANDIDATES
from harness.cli.command import argument, command

VARIABLE = "_HARNESS_COMPLETE"
"""The variable with which the scripts request completions."""

_BREAKS = "=:"
"""The characters at which bash splits words."""


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
