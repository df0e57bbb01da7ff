"""The fields of a struct as options of a command: `--min_users 3` for `min_users: int`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from msgspec import inspect
from msgspec.structs import FieldInfo

from harness.base.errors import PluginError, UsageError, did_you_mean
from harness.cli.command import Option
from harness.tasks.shapes import LISTS, choices, in_words

S = TypeVar("S", bound=msgspec.Struct)

PREFIX = "option_"
"""The prefix of these options among the parameters of a command."""

_NOT_A_WORD = (
    *LISTS,
    inspect.TupleType,
    inspect.DictType,
    inspect.StructType,
    inspect.TypedDictType,
    inspect.DataclassType,
    inspect.NamedTupleType,
)
"""Types that no single word on a command line can give."""


def options_of(kind: type[msgspec.Struct], *, own: Sequence[click.Parameter] = ()) -> list[Option]:
    """An option for each field of a struct, under the field's encoded name.

    A list is given by repetition, a bool as a flag. Descriptions come from `msgspec.Meta`.
    PluginError for a field of a type that no word can give, or with the name of an option in
    `own`, the other options of the command.

        params = [*own, *options_of(tool.options, own=own)]
    """
    options: list[Option] = []
    for field, shape, text in fields_of(kind):
        inner = _inner(shape)
        path = isinstance(inner, inspect.CustomType) and inner.cls is Path
        if isinstance(inner, _NOT_A_WORD) or (isinstance(inner, inspect.CustomType) and not path):
            raise PluginError(
                f"the field {field.name!r} of {kind.__name__} cannot be an option",
                found=f"the type {field.type}",
                expected="a bool, int, float, str, Path, Literal or Enum, or a list of one of "
                "these",
            )
        options += _options(field, shape, text)
    taken = {name for param in own for name in param.opts} | {"--help"}
    for option in options:
        if not taken.isdisjoint(option.opts):
            raise PluginError(
                f"the field {str(option.name).removeprefix(PREFIX)!r} of {kind.__name__} has the "
                "name of an option of the command itself",
                expected="a field with a name that no option of the command has",
            )
    return options


def struct_from(given: Mapping[str, Any], kind: type[S]) -> S:
    """The struct with the values of a command; UsageError names the option that is wrong."""
    values = {}
    for field, shape, _ in fields_of(kind):
        value = given[PREFIX + field.name]
        if value is not None and value != ():
            values[field.name] = _converted(field, shape, value)
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise UsageError("these options cannot be combined", found=str(error)) from error


def fields_of(kind: type[msgspec.Struct]) -> Iterator[tuple[FieldInfo, inspect.Type, str]]:
    """Each field with its type (without None, if it is optional) and its description."""
    for field in msgspec.structs.fields(kind):
        shape = inspect.type_info(field.type)
        help_text = ""
        if isinstance(shape, inspect.Metadata):
            help_text = (shape.extra_json_schema or {}).get("description", "")
            shape = shape.type
        if isinstance(shape, inspect.UnionType):
            others = [one for one in shape.types if not isinstance(one, inspect.NoneType)]
            shape = others[0] if len(others) == 1 else shape
        yield field, shape, help_text


def _options(field: FieldInfo, shape: inspect.Type, text: str) -> Iterator[Option]:
    name, dest = _option(field), PREFIX + field.name
    make = partial(Option, section="Its own options")
    if isinstance(shape, inspect.BoolType):
        switch = partial(make, is_flag=True, default=None)
        if field.default is not True:
            yield switch([f"--{name}", dest], flag_value=True, help=text)
        if field.default is not False:
            opposite = text if field.default is True else "the opposite"
            yield switch([f"--no_{name}", dest], flag_value=False, help=opposite)
        return
    several = isinstance(shape, LISTS)
    parts = [text, "may be given again" if several else "", _default(field)]
    inner = _inner(shape)
    plain = {inspect.CustomType: "FILE", inspect.IntType: "N", inspect.FloatType: "X"}
    yield make(
        [f"--{name}", dest],
        metavar="|".join(choices(inner)) or plain.get(type(inner), "TEXT"),
        multiple=several,
        required=field.required,
        help="; ".join(part for part in parts if part),
    )


def _converted(field: FieldInfo, shape: inspect.Type, given: Any) -> Any:
    try:
        # Path is the only accepted type that msgspec cannot convert.
        value = msgspec.convert(
            _numbers(given) if isinstance(_inner(shape), inspect.FloatType) else given,
            field.type, strict=False, dec_hook=lambda kind, value: kind(value),
        )  # fmt: skip
        for one in value if isinstance(value, (list, tuple, set, frozenset)) else (value,):
            if isinstance(one, float) and not math.isfinite(one):
                raise ValueError("a finite number")
    except ValueError as error:
        words = given if isinstance(given, tuple) else (given,)
        known = choices(_inner(shape))
        wrong = [one for one in words if one not in known]
        raise UsageError(
            f"the value of --{_option(field)} is not valid",
            found=", ".join(map(str, words)),
            expected=in_words(_inner(shape))
            if isinstance(error, msgspec.ValidationError)
            else str(error),
            hint=did_you_mean(str(wrong[0]), known) if wrong else None,
        ) from error
    return value


def _numbers(given: Any) -> Any:
    """The texts as numbers, such as `.5`; a text that is none stays."""
    if isinstance(given, tuple):
        return tuple(map(_numbers, given))
    try:
        return float(given)
    except ValueError:
        return given


def _inner(shape: inspect.Type) -> inspect.Type:
    inner: inspect.Type = shape.item_type if isinstance(shape, LISTS) else shape
    return inner.type if isinstance(inner, inspect.Metadata) else inner


def _option(field: FieldInfo) -> str:
    return field.encode_name.replace("-", "_")


def _default(field: FieldInfo) -> str:
    if field.required or field.default in (None, "", (), msgspec.NODEFAULT):
        return ""
    value = field.default
    values = value if isinstance(value, tuple) else (value,)
    return f"default: {', '.join(str(getattr(one, 'value', one)) for one in values)}"
