"""What may stand at the cursor of a command that is being typed."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.plugin_manager import Plugins


def candidates(before: Sequence[str], current: str) -> list[str]:
    """The words that may stand in place of the one that is being typed; none for file names.

    `before` are the words between `harness` and that one.
    """
    try:
        found = list(_candidates(before, current))
    except HarnessError:
        # Nobody reads errors at a Tab; the command that is typed will tell them.
        found = []
    return [word for word in dict.fromkeys(found) if word.startswith(current)]


def split_line(line: str) -> list[str]:
    """The words of a command line after its first, without quotes; the last is being typed."""
    for closing in ("", '"', "'"):
        try:
            words = shlex.split(line + closing)
        except ValueError:
            continue
        ended = not closing and line[-1:].isspace()
        return [*words[1:], ""] if ended or len(words) < 2 else words[1:]
    return [""]


def _candidates(before: Sequence[str], current: str) -> Iterable[str]:
    from harness.cli.main import COMMANDS, with_underscores

    words = with_underscores([word for word in before if word != "run"])
    command = words[0] if words and not words[0].startswith("-") else ""
    if not before and not current.startswith("-"):
        return [*COMMANDS, *load().commands, "run"]
    parser = _parser(command)
    options = {name: action for action in parser._actions for name in action.option_strings
               if action.help != argparse.SUPPRESS} if parser else {}  # fmt: skip
    name, equals, _ = current.partition("=")
    if equals and name.startswith("--"):
        return [
            f"{name}={word}"
            for word in _values(_dest(options, name), current[len(name) + 1 :], words)
        ]
    last = options.get(words[-1]) if words else None
    if last is not None and last.nargs != 0:
        return last.choices or _values(last.dest, current, words)
    if current.startswith("-"):
        spelt = [name for name in options if name.startswith("--")]
        return [name.replace("_", "-") for name in spelt] if "-" in current[2:] else spelt
    return _words_of(command, words)


def _dest(options: dict[str, argparse.Action], name: str) -> str:
    action = options.get(f"--{name[2:].replace('-', '_')}")
    return action.dest if action is not None else ""


def _parser(command: str) -> argparse.ArgumentParser | None:
    """The parser of a command; None for one of a plugin, whose options are its tool's."""
    from harness.cli.main import COMMANDS, parser_for

    if command and command not in COMMANDS:
        return None
    parser = parser_for([command] if command else [])
    for action in parser._actions if command else ():
        if isinstance(action, argparse._SubParsersAction):
            below: argparse.ArgumentParser = action.choices[command]
            return below
    return parser


def _values(dest: str, current: str, words: Sequence[str]) -> Iterable[str]:
    """What an option may be given."""
    if dest == "tasks":
        listed, comma, _ = current.rpartition(",")
        return [f"{listed}{comma}{name}" for name in tasks(words)]
    if dest == "model":
        return [*load().models, *named_models()]
    if dest == "judge":
        return _judges()
    if dest == "role":
        name, equals, _ = current.partition("=")
        return [f"{name}={kind}" for kind in _judges()] if equals else ["judge="]
    if dest == "data":
        # Any other place is a file or a folder, which the shell knows.
        return ["sample"] if current else []
    return runs() if dest in ("resume", "run", "runs") else []


def _words_of(command: str, words: Sequence[str]) -> Iterable[str]:
    """What a command may be given that is no option."""
    known: dict[str, Callable[[], Iterable[str]]] = {
        "tasks": lambda: tasks(words),
        "validate": lambda: tasks(words),
        "show": runs,
        "score": runs,
        "export": runs,
        "replies": lambda: runs() if len(words) == 1 else (),
        "analyse": lambda: load().analyses if len(words) == 1 else runs(),
        "plugins": lambda: [one.entry_point for one in (*load().loaded, *load().broken)],
        "models": lambda: load().models,
        "judges": lambda: load().judges,
        "prompts": prompts,
        "completion": lambda: ("bash", "zsh", "fish"),
        "data": lambda: load().tools_of("data") if len(words) == 1 else (),
    }
    if command in known:
        return known[command]()
    return load().tools_of(command) if command and len(words) == 1 else ()


def load() -> Plugins:
    """The plugins."""
    from harness.plugin_manager import load_plugins

    return load_plugins()


def tasks(words: Sequence[str]) -> Iterable[str]:
    """Tasks, groups and tags, those of the folders that the words before include among them."""
    from harness.cli.settle import included
    from harness.tasks.catalogue import Catalogue

    option = "--include_path"
    folders = [after for word, after in pairwise(words) if word == option]
    folders += [word.partition("=")[2] for word in words if word.startswith(f"{option}=")]
    there = [path for path in map(Path, folders) if path.is_dir()]
    catalogue = Catalogue(load(), include_path=included(there))
    return [*catalogue.names, *catalogue.groups, *(f"tag:{tag}" for tag in catalogue.tags)]


def prompts() -> Iterable[str]:
    """The prompts that may be named."""
    from harness.pipeline.preparation import prompt_folders
    from harness.prompting import Templates

    return Templates(prompt_folders(load())).everything()


def runs() -> Iterable[str]:
    """The folders of runs that lie where runs usually go."""
    from harness.cli.kept_runs import usual_folder

    found = usual_folder().glob("*/manifest.json")
    return sorted((str(file.parent) for file in found), reverse=True)


def named_models() -> Iterable[str]:
    """Models that settings give a name."""
    from harness.cli.settings_file import HERE, read_settings, user_file

    files: Sequence[Path] = (user_file(), HERE)
    found = [read_settings(file) for file in files]
    tables = [file.values.get("models") for file in found if file is not None]
    return [name for table in tables if isinstance(table, dict) for name in table]


def _judges() -> list[str]:
    plugins = load()
    return [*plugins.judges, *plugins.models, *named_models()]
