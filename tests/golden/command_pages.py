"""The page of all commands and options, docs/commands.md; `make commands` writes it.

A test compares the page with the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from harness.cli.command import RARE_TOO
from harness.cli.main import COMMANDS, OVERVIEW, harness

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"
WIDTH = 100

HEAD = f"""\
# All commands and options

What `--help` prints for each command, and `--help_all` for `run`, written by `make commands`.
Commands of plugins are in the plugins' pages.

```
{OVERVIEW}```
"""


def page_text() -> str:
    """The content that the page must have."""
    parts = [f"\n## harness {name}\n\n```\n{text}\n```\n" for name, text in _helps()]
    return HEAD + "".join(parts)


def _helps() -> Iterator[tuple[str, str]]:
    """Each command with its help, in the order of their names."""
    for name in sorted(COMMANDS):
        command = harness.get_command(click.Context(harness), name)
        assert command is not None
        yield name, _help(name, command)
        if name == "list":
            assert isinstance(command, click.Group)
            yield from ((f"list {kind}", _help(f"list {kind}", command.commands[kind]))
                        for kind in sorted(command.commands))  # fmt: skip


def _help(name: str, command: click.Command) -> str:
    settings = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    context = click.Context(command, info_name=f"harness {name}", **settings)
    context.meta[RARE_TOO] = name == "run"
    return command.get_help(context).strip()


if __name__ == "__main__":
    PAGE.write_text(page_text(), "utf-8")
