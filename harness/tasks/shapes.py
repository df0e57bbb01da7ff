"""What typed values take, in words, and what in a value does not fit its type.

One walker for all that people write: task files, suites, and options of benchmarks and tools. Types
are those of `msgspec.inspect`, bounds and descriptions those of `msgspec.Meta`, with what
`harness.contracts.task.key` adds to it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec import inspect

LISTS = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)
"""The types of lists of any length."""

PLAIN: dict[type[inspect.Type], tuple[Any, str]] = {
    inspect.StrType: (str, "text"),
    inspect.IntType: (int, "a whole number"),
    inspect.FloatType: ((int, float), "a number"),
    inspect.BoolType: (bool, "true or false"),
    inspect.NoneType: (type(None), "null"),
    inspect.DictType: (dict, "keys and values"),
    inspect.TypedDictType: (dict, "keys and values"),
    inspect.StructType: (dict, "keys and values"),
    inspect.DataclassType: (dict, "keys and values"),
    inspect.TupleType: ((list, tuple), "a list"),
    **dict.fromkeys(LISTS, ((list, tuple), "a list")),
}
"""What a file holds for each type, and its words; values of other types are left to msgspec."""

PLURALS = {
    "text": "texts",
    "text that is not empty": "texts that are not empty",
    "a whole number": "whole numbers",
    "a number": "numbers",
}

LIMITS = {
    "gt": ("above", operator.gt),
    "ge": ("at least", operator.ge),
    "lt": ("below", operator.lt),
    "le": ("at most", operator.le),
}


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """One thing in a value that does not fit its type; `known` are the valid words, if listed."""

    kind: Literal["invalid", "unknown", "missing"]
    path: tuple[str | int, ...]
    found: Any = None
    expected: str = ""
    known: Sequence[str] = ()


def bare(shape: inspect.Type) -> inspect.Type:
    """A type without its description, with the bounds that files alone must keep."""
    if not isinstance(shape, inspect.Metadata):
        # A struct that is written as a list is left to msgspec.
        is_list = isinstance(shape, inspect.StructType) and shape.array_like
        return inspect.AnyType() if is_list else shape
    extra = shape.extra or {}
    if "keys" in extra:
        return inspect.type_info(extra["keys"])
    if isinstance(shape.type, inspect.UnionType) and extra:
        return inspect.UnionType(tuple(_bounded(bare(one), extra) for one in shape.type.types))
    return _bounded(bare(shape.type), extra)


def _bounded(shape: inspect.Type, extra: Mapping[str, Any]) -> inspect.Type:
    bounds = {name: extra[name] for name in shape.__struct_fields__ if name in extra}
    return msgspec.structs.replace(shape, **bounds)


def choices(shape: inspect.Type) -> list[str]:
    """The values of an enumerated type; empty for any other type."""
    return [*map(str, _values(bare(shape)))]


def keys(shape: inspect.Type) -> dict[str, inspect.Field] | None:
    """The fixed keys of a type, as written; None if it has none."""
    shape = bare(shape)
    if isinstance(shape, inspect.TypedDictType):
        fields = {one.encode_name: one for one in shape.fields}
        return {name: fields[name] for name in shape.cls.__annotations__}
    if isinstance(shape, inspect.StructType):
        fields = {one.encode_name: one for one in shape.fields}
        if (tag := shape.tag_field) is not None:
            only = inspect.LiteralType((shape.tag,))
            fields = {tag: inspect.Field(tag, tag, only, required=False), **fields}
        return fields
    if isinstance(shape, inspect.DictType) and (names := choices(shape.key_type)):
        return {name: inspect.Field(name, name, shape.value_type, required=False) for name in names}
    return None


def in_words(shape: inspect.Type) -> str:
    """The valid values of a type: all of them if it is enumerated, or else kind and bounds."""
    shape = bare(shape)
    if isinstance(shape, inspect.UnionType):
        words = [*map(in_words, shape.types)]
        return (", or " if any("," in one for one in words) else " or ").join(words)
    if listed := choices(shape):
        return f"one of {', '.join(listed)}"
    if type(shape) not in PLAIN:
        return "a value of another type"
    text = PLAIN[type(shape)][1]
    if isinstance(shape, inspect.TupleType):
        return f"{text} of {len(shape.item_types)} values"
    if isinstance(shape, inspect.StructType):
        return f"{text}, with {', '.join(keys(shape) or ())}"
    limits = [
        f"{word} {bound:g}"
        for name, (word, _) in LIMITS.items()
        if (bound := getattr(shape, name, None)) is not None
    ]
    text += f", {' and '.join(limits)}" if limits else ""
    least, most = (getattr(shape, name, None) for name in ("min_length", "max_length"))
    bounds = (("at least", least), ("at most", most))
    lengths = " and ".join(f"{word} {many}" for word, many in bounds if many is not None)
    item = shape.item_type if isinstance(shape, LISTS) else None
    each = in_words(item) if item else ""
    if plural := PLURALS.get(each):
        lengths = "one or more" if (least, most) == (1, None) else lengths
        return f"a list of {lengths} {plural}" if lengths else f"a list of {plural}"
    if (least, most) == (1, None):
        text += ", at least one" if isinstance(shape, inspect.DictType) else " that is not empty"
    elif lengths:
        text += f" of {lengths} {'characters' if isinstance(shape, inspect.StrType) else 'values'}"
    return f"{text}, each {each}" if item and keys(item) is None else text


def misfits(
    shape: inspect.Type, value: Any, path: tuple[str | int, ...] = (), about: str = ""
) -> Iterator[Misfit]:
    """All that does not fit in a value and in the values inside; `about` is what it means."""
    extra: Mapping[str, Any] = {}
    form = ""
    if isinstance(shape, inspect.Metadata):
        form = (shape.extra_json_schema or {}).get("description", "")
        extra, shape, about = shape.extra or {}, bare(shape), form or about
    about = about or _first_line(shape)
    alternatives = shape.types if isinstance(shape, inspect.UnionType) else (shape,)
    fitting = [one for one in alternatives if _takes(bare(one), value)]
    wrong = [*_violations(shape, extra, value, form)] if fitting else [in_words(shape)]
    for wanted in wrong:
        yield Misfit(
            kind="invalid",
            path=path,
            found=value,
            expected=f"{wanted} ({about})" if about and about != wanted else wanted,
            known=choices(shape),
        )
    if len(alternatives) > 1 and fitting:
        if len(fitting) > 1 and isinstance(value, dict):
            # Several structs differ by their tags; a tag of none of them is left to msgspec.
            fitting = [
                one
                for one in fitting
                if isinstance(struct := bare(one), inspect.StructType)
                and value.get(struct.tag_field) == struct.tag
            ]
        for one in fitting[:1]:
            yield from misfits(one, value, path, about)
    elif fitting:
        yield from _misfits_inside(shape, value, path)


def _misfits_inside(
    shape: inspect.Type, value: Any, path: tuple[str | int, ...]
) -> Iterator[Misfit]:
    if isinstance(shape, (*LISTS, inspect.TupleType)):
        for index, one in enumerate(value):
            if isinstance(shape, LISTS):
                yield from misfits(shape.item_type, one, (*path, index))
            elif index < len(shape.item_types):
                yield from misfits(shape.item_types[index], one, (*path, index))
    elif (fields := keys(shape)) is not None:
        free = isinstance(shape, inspect.StructType) and not shape.forbid_unknown_fields
        for key, one in value.items():
            if key in fields:
                yield from misfits(fields[key].type, one, (*path, key))
            elif not (free and path):
                yield Misfit(kind="unknown", path=(*path, key), known=[*fields])
        for key, field in fields.items():
            if field.required and key not in value:
                about = _first_line(field.type)
                expected = f"`{key}`" + (f": {about}" if about else "")
                yield Misfit(kind="missing", path=(*path, key), expected=expected)
    elif isinstance(shape, inspect.DictType):
        for key, one in value.items():
            yield from misfits(shape.value_type, one, (*path, key))


def _first_line(shape: inspect.Type) -> str:
    """The description of a type, or else the first line of what a struct says of itself."""
    if isinstance(shape, inspect.Metadata):
        described = (shape.extra_json_schema or {}).get("description")
        return str(described) if described else _first_line(shape.type)
    of_people = isinstance(shape, inspect.StructType) and shape.cls.__doc__
    return of_people.splitlines()[0] if of_people else ""


def _values(shape: inspect.Type) -> Sequence[Any]:
    if isinstance(shape, inspect.EnumType):
        return [one.value for one in shape.cls]
    return shape.values if isinstance(shape, inspect.LiteralType) else ()


def _takes(shape: inspect.Type, value: Any) -> bool:
    """Whether a value is of the kind that a type has in a file, whatever its bounds."""
    if listed := _values(shape):
        return any(one == value and type(one) is type(value) for one in listed)
    kind, _ = PLAIN.get(type(shape), (object, ""))
    is_bool = isinstance(value, bool) and kind is not object
    return isinstance(value, kind) and is_bool == isinstance(shape, inspect.BoolType)


def _violations(
    shape: inspect.Type, extra: Mapping[str, Any], value: Any, form: str
) -> Iterator[str]:
    """What is expected of a value of the right kind that is out of bounds."""
    limits = ((getattr(shape, name, None), holds) for name, (_, holds) in LIMITS.items())
    least, most = (getattr(shape, name, None) for name in ("min_length", "max_length"))
    if (
        any(bound is not None and not holds(value, bound) for bound, holds in limits)
        or (least is not None and len(value) < least)
        or (most is not None and len(value) > most)
        or (isinstance(shape, inspect.TupleType) and len(value) != len(shape.item_types))
    ):
        yield in_words(shape)
    pattern = getattr(shape, "pattern", None)
    if pattern is not None and not re.search(pattern, value):
        yield form or f"text of the form {pattern}"
    if extra.get("one_key") and len(value) != 1:
        yield f"exactly one of {', '.join(keys(shape) or ())}"
    unique = extra.get("unique") and isinstance(value, list)
    if unique and len({*map(msgspec.json.encode, value)}) < len(value):
        yield "a list without duplicates"
