"""`harness completion SHELL`, and the answers to the script that it prints."""

from __future__ import annotations

import os
import sys

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)

from harness.cli.command import argument, command
from harness.errors import HarnessError

VARIABLE = "_HARNESS_COMPLETE"
"""The variable by which the scripts ask for completions."""

_BREAKS = "=:"
"""What bash takes words apart at."""


class _Completions(ShellComplete):
    """Completions that know options before a command as those of a run.

    Options are offered with underscores until a dash is typed.
    """

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """What may stand in place of the word that is being typed."""
        if (args or [incomplete])[0].startswith("-"):
            args = ["run", *args]
        name, equals, _ = incomplete.partition("=")
        before = f"{name}=" if equals and name.startswith("--") else ""
        dashed = "-" in incomplete[2:]
        found = []
        for item in super().get_completions(args, incomplete):
            if dashed or before or not item.value.startswith("--") or "-" not in item.value[2:]:
                item.value = before + item.value
                found.append(item)
        return found


class _Bash(_Completions, BashComplete):
    """Completions for bash, whose words are put together again and answered from the last break."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is being typed, and that word."""
        args, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in [*args, incomplete]:
            if words and word and (not word.strip(_BREAKS) or words[-1][-1] in _BREAKS):
                words[-1] += word
            else:
                words.append(word)
        return words[:-1], words[-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """What may stand after the last `=` or `:` of the word that is being typed."""
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
    """Print the script by which a shell completes commands, options, tasks, models, judges and
    runs.
    """
    from harness.cli.main import harness

    sys.stdout.write(SHELLS[shell](harness, {}, "harness", VARIABLE).source())
    return 0


def complete(cli: click.Command) -> int:
    """Answer a shell's script; the exit code."""
    shell, _, _ = os.environ[VARIABLE].partition("_")
    # Nobody reads errors at a Tab; the command that is typed will show them.
    try:
        print(SHELLS[shell](cli, {}, "harness", VARIABLE).complete())
    except (HarnessError, click.ClickException, KeyError):
        return 1
    return 0
