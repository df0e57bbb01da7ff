"""Describes the values of an option from its type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import inspect

LISTS = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)
"""The types that are given as lists."""

_MAPPINGS = (inspect.DictType, inspect.TypedDictType, inspect.DataclassType)


def type_at(kind: Any, path: Sequence[str | int]) -> inspect.Type | None:
    """The type at a path inside a type; None if it is open."""
    shape: inspect.Type | None = inspect.type_info(kind)
    for step in path:
        shape = _below(shape, step)
    return shape


def choices(shape: inspect.Type | None) -> list[str]:
    """The values of an enumerated type; empty for any other type."""
    shape = _bare(shape)
    if isinstance(shape, inspect.EnumType):
        return [str(one.value) for one in shape.cls]
    return [str(value) for value in shape.values] if isinstance(shape, inspect.LiteralType) else []


def keys(shape: inspect.Type | None) -> list[str]:
    """The names of a type's fields."""
    shape = _bare(shape)
    if isinstance(shape, inspect.UnionType):
        return [name for one in shape.types for name in keys(one)]
    return (
        [one.encode_name for one in shape.fields] if isinstance(shape, inspect.StructType) else []
    )


def in_words(shape: inspect.Type | None) -> str:
    """The valid values of a type: all of them if it is enumerated, or else kind and bounds."""
    shape = _bare(shape)
    if listed := choices(shape):
        return f"one of {', '.join(listed)}"
    match shape:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "a whole number" + _bounds(shape)
        case inspect.FloatType():
            return "a number" + _bounds(shape)
        case inspect.StrType():
            return "text" + _length(shape, "characters")
        case inspect.NoneType():
            return "null"
        case inspect.UnionType():
            return " or ".join(in_words(one) for one in shape.types)
        case inspect.StructType():
            return f"keys and values, with {', '.join(keys(shape))}"
        case inspect.TupleType():
            return f"a list of {len(shape.item_types)} values"
    if isinstance(shape, LISTS):
        return f"a list{_length(shape, 'values')}, each {in_words(shape.item_type)}"
    return "keys and values" if isinstance(shape, _MAPPINGS) else "a value of another type"


def _below(shape: inspect.Type | None, step: str | int) -> inspect.Type | None:
    shape = _bare(shape)
    if isinstance(shape, inspect.UnionType):
        found = (_below(one, step) for one in shape.types)
        return next((one for one in found if one is not None), None)
    if isinstance(shape, inspect.StructType):
        return next((field.type for field in shape.fields if field.encode_name == step), None)
    if isinstance(shape, LISTS):
        return shape.item_type
    if isinstance(shape, inspect.TupleType) and isinstance(step, int):
        return shape.item_types[step]
    return None


def _bare(shape: inspect.Type | None) -> inspect.Type | None:
    return shape.type if isinstance(shape, inspect.Metadata) else shape


def _bounds(shape: inspect.IntType | inspect.FloatType) -> str:
    limits = {"above": shape.gt, "at least": shape.ge, "below": shape.lt, "at most": shape.le}
    texts = [f"{word} {bound:g}" for word, bound in limits.items() if bound is not None]
    return f", {' and '.join(texts)}" if texts else ""


def _length(shape: Any, of: str) -> str:
    limits = {"at least": shape.min_length, "at most": shape.max_length}
    texts = [f"{word} {bound}" for word, bound in limits.items() if bound is not None]
    return f" of {' and '.join(texts)} {of}" if texts else ""
