"""The settings of a command: what files, environment and command line give, and what holds."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from harness.cli.layers import COMMAND, ENVIRONMENT, FOLDER, USER, Given, Held, fill, settled
from harness.cli.named_models import NamedModel, expanded, named_model, refuse_taken
from harness.cli.run import ONCE, data_of
from harness.cli.settings_file import HERE, SettingsFile, read_settings, shown, user_file
from harness.cli.settings_text import ENTRIES, NAMES_ARE_FREE, TABLES, refuse_secrets, words_of
from harness.errors import UsageError, did_you_mean

PREFIX = "HARNESS_"

SWITCHES = {"true": True, "on": True, "yes": True, "1": True,
            "false": False, "off": False, "no": False, "0": False}  # fmt: skip


class Settable:
    """The options of a run that settings may give, and the parser that reads their values."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.actions: dict[str, argparse.Action] = {}
        self.defaults: dict[str, Any] = {}
        for action in parser._actions:
            name = action.option_strings[-1].lstrip("-") if action.option_strings else ""
            if name and name not in ONCE and action.help != argparse.SUPPRESS:
                self.actions[name] = action
                self.defaults[name] = action.default
        self._parser = without_defaults(parser)

    @property
    def lists(self) -> dict[str, str]:
        """Options that are given several times, and their places in the parsed arguments."""
        return {
            name: action.dest
            for name, action in self.actions.items()
            if isinstance(action, argparse._AppendAction)
        }

    def is_switch(self, name: str) -> bool:
        """Whether an option has no value."""
        return self.actions[name].nargs == 0

    def read(self, name: str, words: Sequence[str]) -> Any:
        """The value that the command line would have of these words; UsageError as there."""
        parsed = self._parser.parse_args([f"--{name}={word}" for word in words])
        return getattr(parsed, self.actions[name].dest, [])


def settle(
    args: argparse.Namespace, explicit: argparse.Namespace, *, run_parser: argparse.ArgumentParser
) -> Held:
    """Fill the parsed arguments with all that holds; `explicit` has what the command line says."""
    settable = Settable(run_parser)
    layers: list[list[Given]] = []
    models: dict[str, NamedModel] = {}
    files: list[tuple[str, bool]] = []
    for path, source in ((user_file(), USER), (HERE, FOLDER)):
        file = read_settings(path)
        files.append((shown(path), file is not None))
        if file is not None:
            models.update(_models_of(file))
            layers.append(list(_of_file(file, source, settable)))
    layers.append(list(_of_environment(os.environ, settable)))
    layers.append(list(_of_command(explicit, settable)))
    held = Held(
        slots=settled(layers), models=models, files=tuple(files), unread=tuple(_unread(settable))
    )
    fill(args, held, lists=settable.lists)
    return _with_names(args, held) if models else held


def settled_args(words: Sequence[str]) -> argparse.Namespace:
    """What a run of these words would have of the command line, settings and defaults."""
    from harness.cli.main import parser_for

    args = parser_for([]).parse_args(words)
    explicit = without_defaults(parser_for([])).parse_args(words)
    settle(args, explicit, run_parser=parser_for([]))
    return args


def included(given: Sequence[Path]) -> Sequence[Path]:
    """The folders of tasks that a run would have: those that are given, else those of settings."""
    words = [f"--include_path={folder}" for folder in given]
    folders: Sequence[Path] = settled_args(words).include_path
    return folders


def meant_instead(variable: str, settable: Settable) -> str | None:
    """The variable of a setting that another variable, which is of none, must be a misspelling of.

    It has to be very near: plugins and models have variables of their own.
    """
    name = variable.removeprefix(PREFIX).lower()
    near = get_close_matches(name, settable.actions, 1, cutoff=0.8)
    return PREFIX + near[0].upper() if near and variable.startswith(PREFIX) else None


def without_defaults(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The parser changed so that what was not given is not in what it parses."""
    for action in parser._actions:
        action.default = argparse.SUPPRESS
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                without_defaults(below)
    return parser


def _unread(settable: Settable) -> Iterator[str]:
    known = {PREFIX + name.upper() for name in settable.actions}
    for variable in sorted(os.environ.keys() - known):
        if meant := meant_instead(variable, settable):
            yield f"{variable} is set and nothing reads it: did you mean {meant}?"


def _with_names(args: argparse.Namespace, held: Held) -> Held:
    """What holds, after every name of a model in the arguments became what it stands for."""
    from harness.plugin_manager import load_plugins

    plugins = load_plugins()
    refuse_taken(held.models, plugins)

    def meant(spec: str) -> str:
        return expanded(spec, held.models, plugins)

    roles = [text.partition("=") for text in args.role]
    specs = [args.model or "", args.judge or "", *(spec for _, _, spec in roles)]
    args.model, args.judge = args.model and meant(args.model), args.judge and meant(args.judge)
    args.role = [f"{name}{equals}{meant(spec)}" for name, equals, spec in roles]
    words = {word for spec in specs for word in spec.split(":")[:2]}
    return replace(held, named=[one.where for name, one in held.models.items() if name in words])


def _models_of(file: SettingsFile) -> Iterator[tuple[str, NamedModel]]:
    tables = file.values.get("models", {})
    if not isinstance(tables, Mapping):
        raise UsageError(
            "`models` is no table",
            where=file.where(["models"]),
            expected='[models.NAME] with kind = "openai" and its arguments',
        )
    for name, values in tables.items():
        where = file.where(["models", name])
        _refuse_secrets(values, where=where, free=False)
        yield name, named_model(name, values, where)


def _of_file(file: SettingsFile, source: str, settable: Settable) -> Iterator[Given]:
    for key, value in file.values.items():
        if key == "models":
            continue
        name, where = key.replace("-", "_"), file.where([key])
        _refuse_unknown(name, where, settable)
        _refuse_secrets(value, where=where, free=name in NAMES_ARE_FREE)
        if settable.is_switch(name):
            if not isinstance(value, bool):
                raise _unusable(name, where, value, "true or false")
            yield Given(option=name, value=value, source=source, where=where)
            continue
        if name in TABLES and isinstance(value, Mapping):
            yield Given(option=name, value=value, source=source, where=where)
            continue
        try:
            words = words_of(name, value)
        except ValueError as error:
            raise _unusable(name, where, value, str(error)) from error
        yield from _given(name, words, source=source, where=where, settable=settable)


def _of_environment(environment: Mapping[str, str], settable: Settable) -> Iterator[Given]:
    for name in settable.actions:
        where = PREFIX + name.upper()
        text = environment.get(where, "").strip()
        if not text:
            continue
        _refuse_secrets(text, where=where, free=name in NAMES_ARE_FREE)
        if settable.is_switch(name):
            if text.lower() not in SWITCHES:
                raise _unusable(name, where, text, "true or false")
            yield Given(option=name, value=SWITCHES[text.lower()], source=ENVIRONMENT, where=where)
            continue
        words = [line.strip() for line in text.splitlines() if line.strip()]
        yield from _given(name, words, source=ENVIRONMENT, where=where, settable=settable)


def _of_command(explicit: argparse.Namespace, settable: Settable) -> Iterator[Given]:
    said = vars(explicit)
    for name, action in settable.actions.items():
        if action.dest in said:
            yield from _entries(name, said[action.dest], source=COMMAND, where=f"--{name}")


def _given(
    name: str, words: Sequence[str], *, source: str, where: str, settable: Settable
) -> Iterator[Given]:
    if len(words) != 1 and name not in settable.lists:
        raise _unusable(name, where, ", ".join(words), "one value")
    try:
        value = settable.read(name, words)
    except UsageError as error:
        raise _unusable(name, where, ", ".join(words), _wanted(settable.actions[name])) from error
    yield from _entries(name, value, source=source, where=where)


def _entries(name: str, value: Any, *, source: str, where: str) -> Iterator[Given]:
    if name not in ENTRIES:
        yield Given(option=name, value=value, source=source, where=where)
        return
    for text in value:
        yield Given(
            option=name, value=[text], source=source, where=where, entry=_entry_of(name, text)
        )


def _entry_of(name: str, text: str) -> str:
    return data_of(text)[0] if name == "data" else text.partition("=")[0].strip()


def _refuse_unknown(name: str, where: str, settable: Settable) -> None:
    if name in settable.actions:
        return
    if name in ONCE:
        raise UsageError(
            f"{name!r} is for one command and cannot be a setting", where=where,
            expected=f"--{name} on the command line",
        )  # fmt: skip
    known = sorted([*settable.actions, "models"])
    raise UsageError(
        f"no setting {name!r}",
        where=where,
        expected=", ".join(known),
        hint=did_you_mean(name, known),
    )


def _refuse_secrets(value: Any, *, where: str, free: bool) -> None:
    try:
        refuse_secrets(value, names_are_free=free)
    except ValueError as error:
        raise UsageError(
            "a key, token or password stands in the settings",
            where=where,
            found=f"{error} = …" if str(error) else "a text that holds one",
            expected="api_key_env = the name of a variable that holds it, or api_key_file = the "
            "file that does",
            hint="take it out of there, and change it where others may have read it",
        ) from None


def _unusable(name: str, where: str, value: Any, expected: str) -> UsageError:
    return UsageError(
        f"the setting {name!r} cannot be used", where=where, found=str(value), expected=expected
    )


def _wanted(action: argparse.Action) -> str:
    named = {int: "a whole number", float: "a number", Path: "a path"}
    kind = action.type if isinstance(action.type, type) else None
    return named.get(kind, str(action.metavar or "text")) if kind else str(action.metavar)
