"""Options that settings files and environment variables can also set, and how values are read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import click

from harness.base.errors import HarnessError, UsageError, did_you_mean
from harness.base.redaction import names_a_secret, safe_text, without_key_material
from harness.cli.command import Option

PREFIX = "HARNESS_"

SWITCHES = {"true": True, "on": True, "yes": True, "1": True,
            "false": False, "off": False, "no": False, "0": False}  # fmt: skip

DEEP = ("set", "columns", "values")
"""Options whose entries may be tables in tables."""

_DATA_OF_TASK = re.compile(r"(?P<task>[\w.*?!\[\]-]+)=(?P<place>.*)")
"""`--data` for a task, group or glob; a path with `=` does not match, because of its first `/`."""


class Setting(Option):
    """An option of a run that the variable `envvar` and settings files can also set.

    `table` is the meaning of a table in a settings file: named "entries", the "arguments" of one
    text (`A=B,C=D`), or the "contents" of the file that the option names. With `as_yaml`, the
    command line reads values as YAML.

        Setting(["--model_args"], envvar="HARNESS_MODEL_ARGS", table="arguments")
    """

    def __init__(
        self,
        param_decls: Sequence[str],
        *,
        table: str | None = None,
        as_yaml: bool = False,
        **attrs: Any,
    ) -> None:
        super().__init__(param_decls, **attrs)
        self.table = table
        self.as_yaml = as_yaml

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The value; arguments may be a JSON object."""
        if self.table == "arguments" and isinstance(value, str) and value.lstrip().startswith("{"):
            value = from_json(value, where=self.opts[0], as_yaml=self.as_yaml)
        return super().type_cast_value(ctx, value)

    def value_from_envvar(self, ctx: click.Context) -> None:
        """Return None: `settings_sources` reads the variable, to merge it with the files."""
        return

    def from_file(self, value: Any, where: str, ctx: click.Context) -> Any:
        """The value from a file in the form of the command line; UsageError if not valid."""
        check_no_secrets(value, where=where, names_are_free=self.table == "entries")
        if self.is_flag and isinstance(value, bool):
            return value
        if self.table == "contents" and isinstance(value, Mapping):
            return value
        try:
            return self._read([] if self.is_flag else self._words(value), ctx)
        except ValueError as error:
            found = str(value).lower() if isinstance(value, bool) else str(value)
            raise self._not_valid(where, found, error) from error

    def from_variable(self, text: str, where: str, ctx: click.Context) -> Any:
        """The value of a variable in the form of the command line; UsageError if not valid."""
        check_no_secrets(text, where=where, names_are_free=self.table == "entries")
        if self.is_flag and text.lower() in SWITCHES:
            return SWITCHES[text.lower()]
        words = [line.strip() for line in text.splitlines() if line.strip()]
        try:
            return self._read([] if self.is_flag else words, ctx)
        except ValueError as error:
            raise self._not_valid(where, ", ".join(words), error) from error

    def entry(self, text: str) -> str | None:
        """The name of the entry that a value sets; None if the option has no named entries."""
        if self.table != "entries":
            return None
        return data_of(text)[0] if self.name == "data" else text.partition("=")[0].strip()

    def _read(self, words: Sequence[str], ctx: click.Context) -> Any:
        if len(words) != 1 and not self.multiple:
            raise ValueError("true or false" if self.is_flag else "exactly one value")
        try:
            return self.type_cast_value(ctx, words if self.multiple else words[0])
        except click.BadParameter as error:
            named = {"integer": "a whole number", "float": "a number", "path": "a path"}
            raise ValueError(named.get(self.type.name, str(self.metavar))) from error

    def _not_valid(self, where: str, found: str, error: ValueError) -> UsageError:
        return UsageError(
            f"the setting {self.name!r} is not valid", where=where, found=found,
            expected=str(error),
        )  # fmt: skip

    def _words(self, value: Any) -> list[str]:
        if isinstance(value, Mapping) and self.table == "entries":
            # The data of all other tasks has no name on the command line.
            return [
                self._word(one)
                if (self.name, path) == ("data", "*")
                else f"{path}={self._word(one)}"
                for path, one in _paths(value, deep=self.name in DEEP)
            ]
        if isinstance(value, Mapping) and self.table == "arguments":
            return [arguments_text({key: self._word(one) for key, one in value.items()})]
        if isinstance(value, Mapping):
            raise ValueError("a value that is not a table")
        values = value if isinstance(value, list) else [value]
        if any(isinstance(one, (list, Mapping)) for one in values):
            raise ValueError("a text, a number, or a list of texts or numbers")
        return [_plain(one) for one in values]

    def _word(self, value: Any) -> str:
        return as_json(value) if self.as_yaml else argument(value)


def data_of(text: str) -> tuple[str, str]:
    """The task of one `--data` value (`*` for all other tasks) and the place of its data."""
    from harness.pipeline.settings import ALL_OTHERS

    of_task = _DATA_OF_TASK.fullmatch(text)
    if of_task and not of_task["place"]:
        raise UsageError("--data names no place", found=text, expected="--data TASK=DIR")
    return (of_task["task"], of_task["place"]) if of_task else (ALL_OTHERS, text)


def arguments_text(args: Mapping[str, str]) -> str:
    """The arguments as `A=B,C=D`; ValueError if the text would not be read back as the same."""
    from harness.pipeline.settings import parse_args

    text = ",".join(f"{name}={value}" for name, value in args.items())
    try:
        same = parse_args(text) == dict(args)
    except HarnessError:
        same = False
    if not same:
        raise ValueError("values without `,name=` inside and without spaces at either end")
    return text


def from_json(text: str, *, where: str, as_yaml: bool) -> str:
    """The arguments in a JSON object as `A=B,C=D`; UsageError if the text is none."""
    try:
        given = json.loads(text)
        plain = {name: as_json(one) if as_yaml else argument(one) for name, one in given.items()}
        return arguments_text(plain)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{where} begins like a JSON object, and is none that can be used",
            found=str(error),
            expected='{"name": value, …}, or name=value,name=value',
        ) from error


def as_json(value: Any) -> str:
    """A value as JSON, which is YAML too; ValueError for values without a form on the command
    line."""
    return json.dumps(_checked(value), ensure_ascii=False)


def argument(value: Any) -> str:
    """One argument of a model as text: lists and tables as JSON."""
    return json.dumps(value) if isinstance(value, (list, Mapping)) else _plain(value)


def check_no_secrets(value: Any, *, where: str, names_are_free: bool = False) -> None:
    """Raise UsageError, without repeating the value, if a setting holds a key or a password."""
    found = _secret(value, names_are_free=names_are_free)
    if found is not None:
        raise UsageError(
            "the settings contain a key, token or password",
            where=where,
            found=found,
            expected="api_key_env with the name of a variable that holds the key, or api_key_file "
            "with the path of a file that holds it",
            hint="remove the key from the settings; replace it if others may have read it",
        )


def _secret(value: Any, *, names_are_free: bool) -> str | None:
    if isinstance(value, str):
        redacted = without_key_material(value) if names_are_free else safe_text(value)
        return None if redacted == value else "a text that contains one"
    entries = value if isinstance(value, Mapping) else {}
    for name in entries:
        if names_a_secret(name) and not names_are_free:
            return f"{name} = …"
    inside = entries.values() if entries else value if isinstance(value, list) else ()
    found = (_secret(one, names_are_free=names_are_free) for one in inside)
    return next((one for one in found if one is not None), None)


def _checked(value: Any) -> Any:
    if isinstance(value, list):
        return [_checked(one) for one in value]
    if isinstance(value, Mapping):
        return {name: _checked(one) for name, one in value.items()}
    if not isinstance(value, (bool, int, float, str)):
        raise ValueError("texts, numbers, true, false, or lists and tables of these")
    return value


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (int, float, str)):
        raise ValueError("a text, a number, true or false")
    return str(value)


def _paths(table: Mapping[str, Any], *, deep: bool) -> Iterator[tuple[str, Any]]:
    """The entries of a table; with `deep`, nested entries by their dotted paths."""
    for name, value in table.items():
        if deep and isinstance(value, Mapping):
            yield from ((f"{name}.{path}", one) for path, one in _paths(value, deep=True))
        else:
            yield name, value


def settings_of(command: click.Command) -> dict[str, Setting]:
    """The options of a command that settings can set, by name."""
    return {one.name: one for one in command.params if isinstance(one, Setting)}


def setting_named(
    name: str, where: str, command: click.Command, *, others: Collection[str] = ()
) -> Setting:
    """The option of a key in a settings file; UsageError if no setting has that name."""
    options = settings_of(command)
    if name in options:
        return options[name]
    if name in {one.name for one in command.params}:
        raise UsageError(
            f"{name!r} is an option of single commands and cannot be a setting", where=where,
            expected=f"--{name} on the command line",
        )  # fmt: skip
    known = sorted({*options, "models"} - {*others})
    raise UsageError(
        f"there is no setting {name!r}", where=where, expected=", ".join(known),
        hint=did_you_mean(name, known),
    )  # fmt: skip


def misspelt(options: Mapping[str, Setting]) -> dict[str, str]:
    """Misspelt variables, each with the variable of the setting that is meant.

    Only very similar names count: plugins and models have variables of their own.
    """
    found = {}
    for variable in sorted(name for name in os.environ if name.startswith(PREFIX)):
        name = variable.removeprefix(PREFIX).lower()
        near = get_close_matches(name, options, 1, cutoff=0.8)
        if near and near[0] != name:
            found[variable] = PREFIX + near[0].upper()
    return found
