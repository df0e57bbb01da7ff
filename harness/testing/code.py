"""The code behind a function or type as one hash: what a declared version stands for.

From a function on enters every function, class and constant that it names, directly or through one
another, as far as they stand in its own top-level package. Comments, docstrings and formatting do
not enter.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, GenericAlias
from typing import Any, get_args, get_origin

from harness.errors import PluginError
from harness.resources import top_level

Place = tuple[str, str]
"""A module and the name of something at its top level."""


def code_of(*parts: Any, package: str) -> str:
    """The hash of some functions and types of a package, with all that they name in it.

    PluginError where the code of one cannot be found: its pin would never change.
    """
    roots = sorted({place for part in parts for place in _places(part, package)})
    lost = [f"{module}: {name}" for module, name in roots if name not in definitions(module)]
    if lost or not roots:
        raise PluginError(
            f"no code of {package} can be found to pin",
            found=", ".join(lost) or ", ".join(map(repr, parts)),
            expected="functions and classes with `def` and `class` at the top level of a module",
        )
    reached = reach(roots)
    return hash_of(
        f"{module}.{name} = {normal(node)}" for (module, name), node in sorted(reached.items())
    )


def hash_of(texts: Iterator[str] | list[str]) -> str:
    """One hash for some texts in their order."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:32]


def _places(part: Any, package: str) -> Iterator[Place]:
    """Where a function or type stands; looks into partials and generic types."""
    if isinstance(part, functools.partial):
        for inner in (part.func, *part.args, *part.keywords.values()):
            yield from _places(inner, package)
    elif isinstance(part, GenericAlias) or get_origin(part) is not None:
        for inner in get_args(part):
            yield from _places(inner, package)
    elif isinstance(part, FunctionType | type) and top_level(part.__module__) == package:
        yield part.__module__, part.__qualname__.split(".")[0]


def reach(roots: list[Place]) -> dict[Place, ast.stmt]:
    """Every top-level definition that the roots name in their package, through one another too."""
    packages = {top_level(module) for module, _ in roots}
    reached: dict[Place, ast.stmt] = {}
    waiting = list(roots)
    while waiting:
        place = waiting.pop()
        if place in reached or top_level(place[0]) not in packages:
            continue
        node = definitions(place[0]).get(place[1])
        if node is None:
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            waiting.extend(_imported(node, place))
            continue
        reached[place] = node
        waiting.extend(_named(node, place[0]))
    return reached


def _named(node: ast.AST, module: str) -> Iterator[Place]:
    local = definitions(module)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id in local:
            yield module, inner.id
        elif isinstance(inner, ast.Attribute):
            holder = ast.unparse(inner.value)
            statement = local.get(holder)
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for target, _ in _imported(statement, (module, holder)):
                    yield target, inner.attr
        elif isinstance(inner, ast.ImportFrom | ast.Import):
            for alias in inner.names:
                yield from _imported(inner, (module, alias.asname or alias.name))


def _imported(node: ast.stmt, place: Place) -> Iterator[Place]:
    """What an import brings under a name from the same package: something in a module, or one."""
    module, name = place
    package = top_level(module)
    if isinstance(node, ast.ImportFrom):
        home = module.split(".")
        base = home[: len(home) - node.level] if node.level else []
        source = ".".join([*base, *([node.module] if node.module else [])])
        if top_level(source) != package:
            return
        for alias in node.names:
            if (alias.asname or alias.name) == name:
                is_module = _tree_of(f"{source}.{alias.name}") is not None
                yield (f"{source}.{alias.name}", "") if is_module else (source, alias.name)
    elif isinstance(node, ast.Import):
        for alias in node.names:
            if (alias.asname or alias.name) == name and top_level(alias.name) == package:
                yield alias.name, ""


@functools.cache
def definitions(module: str) -> dict[str, ast.stmt]:
    """The statement behind each name at the top level of a module."""
    found: dict[str, ast.stmt] = {}
    tree = _tree_of(module)
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.update({alias.asname or alias.name: node for alias in node.names})
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                names = (n.id for n in ast.walk(target) if isinstance(n, ast.Name))
                found.update(dict.fromkeys(names, node))
    return found


@functools.cache
def _tree_of(module: str) -> ast.Module | None:
    """The syntax tree of a module; None where it is no Python file."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return ast.parse(Path(spec.origin).read_text("utf-8"))


def normal(node: Any) -> str:
    """A syntax tree as text: no positions, no docstrings, the same under every Python version."""
    if isinstance(node, list):
        return "[" + ",".join(normal(inner) for inner in node) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = []
    for field, value in ast.iter_fields(node):
        if field in {"type_comment", "kind", "ctx"} or value is None or value == []:
            continue
        held = _without_docstring(node, value) if field == "body" else value
        parts.append(f"{field}={normal(held)}")
    return f"{type(node).__name__}({','.join(parts)})"


def _without_docstring(node: ast.AST, body: Any) -> Any:
    holders = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    if isinstance(node, holders) and ast.get_docstring(node, clean=False) is not None:
        return body[1:]
    return body
