"""An option that files and variables give as well, and how their values are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from harness.cli.command import Option
from harness.errors import HarnessError, UsageError

SWITCHES = {"true": True, "on": True, "yes": True, "1": True,
            "false": False, "off": False, "no": False, "0": False}  # fmt: skip

_DATA_OF_TASK = re.compile(r"(?P<task>[\w.-]+)=(?P<place>.*)")
"""What `--data` says of one task; a path with `=` in it is told apart by its first `/`."""


class Setting(Option):
    """An option of a run that the variable `envvar` and files of settings may give as well.

    `table` says what a table is in a file: "entries" of which each is given by name, the
    "arguments" of one text, or the "contents" of the file that the option names. `as_yaml` says
    that the command line reads values as YAML.
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

    def value_from_envvar(self, ctx: click.Context) -> None:
        """None: `settings_sources` reads the variable, to merge it with files by name."""
        return

    def from_file(self, value: Any, ctx: click.Context) -> Any:
        """A value of a file as the command line would give it; ValueError says what is expected."""
        if self.is_flag:
            if not isinstance(value, bool):
                raise ValueError("true or false")
            return value
        if self.table == "contents" and isinstance(value, Mapping):
            return value
        return self._read(self._words(value), ctx)

    def from_variable(self, text: str, ctx: click.Context) -> Any:
        """The text of a variable as the command line would give it; ValueError as for files."""
        if self.is_flag:
            if text.lower() not in SWITCHES:
                raise ValueError("true or false")
            return SWITCHES[text.lower()]
        return self._read([line.strip() for line in text.splitlines() if line.strip()], ctx)

    def entry(self, text: str) -> str | None:
        """The name of the entry that a value gives; None where all values are one setting."""
        if self.table != "entries":
            return None
        return data_of(text)[0] if self.name == "data" else text.partition("=")[0].strip()

    def _read(self, words: Sequence[str], ctx: click.Context) -> Any:
        if len(words) != 1 and not self.multiple:
            raise ValueError("one value")
        try:
            return self.type_cast_value(ctx, words if self.multiple else words[0])
        except click.BadParameter as error:
            named = {"integer": "a whole number", "float": "a number", "path": "a path"}
            raise ValueError(named.get(self.type.name, str(self.metavar))) from error

    def _words(self, value: Any) -> list[str]:
        if isinstance(value, Mapping) and self.table == "entries":
            # The place of all other data is given without a name.
            return [
                self._word(one)
                if (self.name, path) == ("data", "*")
                else f"{path}={self._word(one)}"
                for path, one in _paths(value, deep=self.name == "set")
            ]
        if isinstance(value, Mapping) and self.table == "arguments":
            return [arguments_text({key: self._word(one) for key, one in value.items()})]
        if isinstance(value, Mapping):
            raise ValueError("no table")
        values = value if isinstance(value, list) else [value]
        if any(isinstance(one, (list, Mapping)) for one in values):
            raise ValueError("text or a number, or a list of these")
        return [_plain(one) for one in values]

    def _word(self, value: Any) -> str:
        return json.dumps(_checked(value), ensure_ascii=False) if self.as_yaml else argument(value)


def data_of(text: str) -> tuple[str, str]:
    """The task that one `--data` speaks of, all others as `*`, and the place of its data."""
    from harness.pipeline.settings import ALL_OTHERS

    of_task = _DATA_OF_TASK.fullmatch(text)
    if of_task and not of_task["place"]:
        raise UsageError("no place to read from", found=text, expected="--data TASK=DIR")
    return (of_task["task"], of_task["place"]) if of_task else (ALL_OTHERS, text)


def arguments_text(args: Mapping[str, str]) -> str:
    """Arguments as `A=B,C=D`; ValueError for one that would be read as another."""
    from harness.pipeline.roles import parse_args

    text = ",".join(f"{name}={value}" for name, value in args.items())
    try:
        same = parse_args(text) == dict(args)
    except HarnessError:
        same = False
    if not same:
        raise ValueError("names, and values without `,name=` or blanks at their ends")
    return text


def argument(value: Any) -> str:
    """One argument of a model as text: lists and tables as JSON."""
    return json.dumps(value) if isinstance(value, (list, Mapping)) else _plain(value)


def _checked(value: Any) -> Any:
    if isinstance(value, list):
        return [_checked(one) for one in value]
    if isinstance(value, Mapping):
        return {name: _checked(one) for name, one in value.items()}
    if not isinstance(value, (bool, int, float, str)):
        raise ValueError("text, numbers, true, false, lists and tables of these")
    return value


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (int, float, str)):
        raise ValueError("text, a number, true or false")
    return str(value)


def _paths(table: Mapping[str, Any], *, deep: bool) -> Iterator[tuple[str, Any]]:
    """Entries of a table; with `deep`, those of tables inside by their dotted paths."""
    for name, value in table.items():
        if deep and isinstance(value, Mapping):
            yield from ((f"{name}.{path}", one) for path, one in _paths(value, deep=True))
        else:
            yield name, value
