"""Loads YAML files as plain values, with the line and column of each.

Scalars follow YAML 1.2 where 1.1 surprises: `no` and `12:30` are text, `1e-5` is a number. Imported
only where task files are read, so it imports yaml at its top.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from harness.base.errors import TaskError

TAG = "tag:yaml.org,2002:"

LARGEST = 10_000_000
"""The most values and characters of a file, with each alias counted as what it stands for."""

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _CoreLoader(_Base):  # type: ignore[misc]
    """The C parser with the scalars of YAML 1.2 and the merge key."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 - the parent's own protocol


for _kind, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
):
    _CoreLoader.add_implicit_resolver(TAG + _kind, re.compile(rf"^(?:{_pattern})$"), _first)


@dataclass(frozen=True, kw_only=True, eq=False)
class Document:
    """A YAML file, or one task of its matrix: the values with their places in the file.

    For a task of a matrix, `written` holds the values as written in the file, and `moved` the
    paths of values that are elsewhere in the file.
    """

    file: Path
    values: dict[str, Any]
    root: Any
    written: Mapping[str, Any] | None = None
    moved: Mapping[tuple[str | int, ...], tuple[str | int, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the task or group; the file's name if it defines none."""
        name = self.values.get("task", self.values.get("group"))
        return name if isinstance(name, str) else self.file.name

    @property
    def key(self) -> tuple[Path, str]:
        """The file and the name in it, unique among all documents."""
        return self.file, self.name

    @property
    def pattern(self) -> str | None:
        """The name of a task of a matrix as written in the file, with its {…}."""
        return None if self.written is None else str(self.written["task"])

    @property
    def is_group(self) -> bool:
        """Whether the file describes a group."""
        return "group" in self.values

    def has(self, path: Sequence[str | int]) -> bool:
        """Whether the file itself has a value at a path."""
        return value_at(self.values, path, missing=_NOTHING) is not _NOTHING

    def where(self, path: Sequence[str | int], *, of_key: bool = False) -> str:
        """`file:line:column` of the value or key at a path, or of the nearest one above it."""
        node = key = self.root
        moved = self.moved.get(tuple(path))
        if moved is not None:
            path = moved[:-1] if of_key else moved
        for part in path:
            if isinstance(part, str) and isinstance(node, yaml.MappingNode):
                pair = _members(node, self.file).get(part)
                if pair is None:
                    break
                key, node = pair
            elif isinstance(part, int) and isinstance(node, yaml.SequenceNode):
                if part >= len(node.value):
                    break
                key = node = node.value[part]
            else:
                break
        return _place(self.file, (key if of_key else node).start_mark)


_NOTHING = object()


def value_at(values: Any, path: Sequence[str | int], *, missing: Any = None) -> Any:
    """The value at a path of keys and indexes; `missing` if there is none."""
    for part in path:
        if isinstance(values, str):
            return missing
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            return missing
    return values


def load_file(file: Path, *, what: str = "task or group") -> Document:
    """The document in a YAML file; TaskError with a line if it cannot be read.

    `what` says what the file should define.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise TaskError(
            "the file cannot be read", where=shown(file), found=str(error.strerror)
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise TaskError(
            "the file is not text",
            where=f"{shown(file)}:{line}",
            found=repr(data[error.start : error.end]),
            expected="text in UTF-8",
        ) from error
    return load_text(text, file=file, what=what)


@lru_cache(maxsize=1024)
def load_text(text: str, *, file: Path, what: str = "task or group") -> Document:
    """The document in a text, which nobody changes; `file` is for places and relative paths.

    It is kept, as each run of a suite or a notebook reads all task files.
    """
    root = _compose(text, file)
    values = _built(root, file)
    if not isinstance(values, dict):
        raise TaskError(
            f"the file defines no {what}",
            where=shown(file),
            found="nothing" if root is None else _KINDS[type(root)],
            expected="keys and values, the first `task: NAME` or `group: NAME`"
            if what == "task or group"
            else "keys and values",
        )
    return Document(file=file, values=values, root=root)


def read_value(text: str) -> Any:
    """The YAML value in a text: `3`, `1e-5`, `[a, b]`, `{a: 1}`, or the text itself."""
    file = Path("value")
    root = _compose(text, file)
    if root is not None and not isinstance(root, yaml.ScalarNode) and not root.flow_style:
        return text
    return _built(root, file)


def shown(file: Path) -> str:
    """A path for people: relative to the working directory if it is below that."""
    try:
        return str(file.relative_to(Path.cwd()))
    except ValueError:
        return str(file)


def _built(root: Any, file: Path) -> Any:
    built: dict[int, tuple[Any, int]] = {}

    def build(node: Any) -> tuple[Any, int]:
        """The value of a node and its size; an anchor's value is shared by all its aliases."""
        if id(node) not in built:
            value, size = make(node)
            if size >= LARGEST:
                raise TaskError(
                    "the file is too large",
                    where=_place(file, node.start_mark),
                    found=f"more than {LARGEST:,} values and characters, "
                    "with what aliases stand for",
                    expected="a task, and its data in files of their own",
                )
            built[id(node)] = value, size + 1
        return built[id(node)]

    def make(node: Any) -> tuple[Any, int]:
        kind = node.tag.removeprefix(TAG)
        if isinstance(node, yaml.MappingNode) and kind == "map":
            values = {name: build(value) for name, (_, value) in _members(node, file).items()}
            size = sum(len(name) + size for name, (_, size) in values.items())
            return {name: value for name, (value, _) in values.items()}, size
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            entries = [build(one) for one in node.value]
            return [value for value, _ in entries], sum(size for _, size in entries)
        if not isinstance(node, yaml.ScalarNode) or kind not in _SCALARS:
            raise TaskError(
                "tags are not allowed",
                where=_place(file, node.start_mark),
                found=node.tag.replace(TAG, "!!"),
                expected="plain values without tags",
            )
        try:
            value = _SCALARS[kind](node.value)
            if isinstance(value, float) and not math.isfinite(value):
                kind = "finite number"
                raise ValueError(kind)
        except (ValueError, KeyError) as error:
            raise TaskError(
                "the value is invalid",
                where=_place(file, node.start_mark),
                found=node.value[:80],
                expected=f"a valid {kind}",
            ) from error
        return value, len(node.value)

    try:
        return None if root is None else build(root)[0]
    except RecursionError:
        raise TaskError(
            "the file is nested too deeply",
            where=shown(file),
            hint="check whether an anchor contains its own alias",
        ) from None


_SCALARS: dict[str, Any] = {
    "str": str,
    "int": lambda text: int(text, 0 if text[:2] in ("0o", "0x") else 10),
    "float": lambda text: float(text.replace(".inf", "inf").replace(".nan", "nan")),
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "null": lambda text: {"": None, "~": None, "null": None}[text.lower()],
}
_KINDS = {
    yaml.MappingNode: "keys and values",
    yaml.SequenceNode: "a list",
    yaml.ScalarNode: "a single value",
}


def _members(node: Any, file: Path) -> dict[str, tuple[Any, Any]]:
    """Key and value nodes by key; own keys override merged ones, earlier merged ones later.

    The node keeps them: a mapping may be merged into many others.
    """
    own: dict[str, tuple[Any, Any]] = getattr(node, "members", {})
    if own:
        return own
    merged: dict[str, tuple[Any, Any]] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag not in (f"{TAG}str", f"{TAG}merge"):
            scalar = isinstance(key, yaml.ScalarNode)
            raise TaskError(
                "keys must be text",
                where=_place(file, key.start_mark),
                found=str(key.value)[:80] if scalar else _KINDS[type(key)],
                expected="a key that is text",
                hint="put quotes around it" if scalar else None,
            )
        name = str(key.value)
        if name in own:
            raise TaskError(
                f"the key {name!r} is given twice",
                where=_place(file, key.start_mark),
                expected=f"each key once; the first is in line {own[name][0].start_mark.line + 1}",
            )
        own[name] = key, value
        if key.tag == f"{TAG}merge":
            for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(source, yaml.MappingNode):
                    raise TaskError(
                        "`<<` can only merge mappings",
                        where=_place(file, source.start_mark),
                        found=_KINDS[type(source)],
                        expected="an alias of a mapping, or a list of them",
                    )
                merged = {**_members(source, file), **merged}
    if merged or any(key.tag == f"{TAG}merge" for key, _ in own.values()):
        own = {name: pair for name, pair in own.items() if pair[0].tag != f"{TAG}merge"}
    node.members = {**merged, **own}
    return {**merged, **own}


def _compose(text: str, file: Path) -> Any:
    """The node tree of the one document in a text; None if it is empty."""
    try:
        loader = _CoreLoader(text)
        try:
            return loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        parts = [part for part in (error.problem, error.context) if part]
        raise TaskError(
            "the file is not valid YAML",
            where=shown(file) if mark is None else _place(file, mark),
            found=", ".join(parts),
            expected="one YAML document",
        ) from error
    except yaml.YAMLError as error:
        raise TaskError(
            "the file is not valid YAML", where=shown(file), found=str(error)
        ) from error


def _place(file: Path, mark: Any) -> str:
    return f"{shown(file)}:{mark.line + 1}:{mark.column + 1}"
