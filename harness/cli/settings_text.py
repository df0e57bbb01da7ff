"""Values of settings as the words that the command line would have for them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from harness.errors import UsageError
from harness.pipeline.roles import parse_args
from harness.redaction import names_a_secret, safe_text, without_key_material

ENTRIES = frozenset({"role", "data", "set"})
"""Options that a table gives entry by entry, `NAME=VALUE` each."""

ARGUMENTS = frozenset({"model_args", "gen_kwargs", "max_failures"})
"""Options that a table gives as one text, `A=B,C=D`."""

TABLES = frozenset({"prices"})
"""Options that name a file on the command line; settings may hold the file's table itself."""

AS_YAML = frozenset({"set", "gen_kwargs"})
"""Options whose values the command line reads as YAML."""

NAMES_ARE_FREE = frozenset({"role", "data", "set"})
"""Options whose names are of tasks and benchmarks: one that is called a key may hold none."""


def words_of(name: str, value: Any) -> list[str]:
    """What would follow `--NAME` on the command line, a word for each time it were given."""
    if isinstance(value, Mapping):
        if name in ENTRIES:
            # The place of all other data is given without a name.
            return [
                _word(name, one) if (name, path) == ("data", "*") else f"{path}={_word(name, one)}"
                for path, one in _paths(value, deep=name == "set")
            ]
        if name in ARGUMENTS:
            return [arguments_text({key: _word(name, one) for key, one in value.items()})]
        raise ValueError("no table")
    values = value if isinstance(value, list) else [value]
    if any(isinstance(one, (list, Mapping)) for one in values):
        raise ValueError("text or a number, or a list of these")
    return [_plain(one) for one in values]


def arguments_text(args: Mapping[str, str]) -> str:
    """Arguments as `A=B,C=D`; ValueError for one that would be read as another."""
    text = ",".join(f"{name}={value}" for name, value in args.items())
    try:
        same = parse_args(text) == dict(args)
    except UsageError:
        same = False
    if not same:
        raise ValueError("names, and values without `,name=` or blanks at their ends")
    return text


def argument(value: Any) -> str:
    """One argument of a model as text: lists and tables as JSON."""
    return json.dumps(value) if isinstance(value, (list, Mapping)) else _plain(value)


def refuse_secrets(value: Any, *, names_are_free: bool = False) -> None:
    """Raise ValueError, which repeats none of it, for a value that holds a key or a password."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            if names_a_secret(name) and not names_are_free:
                raise ValueError(name)
            refuse_secrets(one, names_are_free=names_are_free)
    elif isinstance(value, list):
        for one in value:
            refuse_secrets(one, names_are_free=names_are_free)
    elif isinstance(value, str):
        seen = without_key_material(value) if names_are_free else safe_text(value)
        if seen != value:
            raise ValueError("")


def _word(option: str, value: Any) -> str:
    if option in AS_YAML:
        return json.dumps(_checked(value), ensure_ascii=False)
    return argument(value)


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
