"""Who may import whom: read from the code itself, so that lazy imports inside functions count too.

Imports under `if TYPE_CHECKING:` are names for a reader and a type checker. They make no module
need another when it runs, so they may point anywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = sorted(path.name for path in (ROOT / "plugins").iterdir() if path.is_dir())

RANKS = (
    {"errors", "findings", "redaction", "outcomes", "hashing", "chance", "models", "parsing",
     "stats", "resources", "hookspecs", "plugin_manager"},
    {"calls", "judging", "prompting", "data", "tasks"},
    {"reporting", "results", "pipeline", "scaffold", "doctor"},
    {"cli", "api"},
)  # fmt: skip
"""The rooms of the house, those that know least first. A room imports its own rank or a lower."""

OUTSIDE = {"", "__main__", "testing"}
"""The public front, the command's start, tools for plugin authors: use any room, used by none."""

RANK_OF = {room: rank for rank, rooms in enumerate(RANKS) for room in rooms}


def imports(source: str, module: str, *, package: bool = False) -> Iterator[tuple[int, str]]:
    """Line and full name of every module that the source imports when it runs."""
    home = module.split(".") if package else module.split(".")[:-1]
    for node in _runtime_nodes(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = home[: len(home) - node.level + 1] if node.level else []
            named = [*base, *(node.module.split(".") if node.module else [])]
            yield from ((node.lineno, ".".join([*named, alias.name])) for alias in node.names)
        elif isinstance(node, ast.Call) and _is_import_call(node):
            yield node.lineno, ast.literal_eval(node.args[0])


def _runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and _names(child.test) == "TYPE_CHECKING":
            for statement in child.orelse:
                yield statement
                yield from _runtime_nodes(statement)
            continue
        yield child
        yield from _runtime_nodes(child)


def _names(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_import_call(node: ast.Call) -> bool:
    return (
        _names(node.func) in {"import_module", "__import__"}
        and bool(node.args)
        and isinstance(node.args[0], ast.Constant)
    )


def room_of(name: str) -> str | None:
    """The room of `harness` that a full name is in; "" is the front, None is no part of it."""
    parts = name.split(".")
    if parts[0] != "harness":
        return None
    if len(parts) > 1 and (parts[1] in RANK_OF or parts[1] in OUTSIDE or _is_module(parts[1])):
        return parts[1]
    return ""


def _is_module(room: str) -> bool:
    folder = ROOT / "harness"
    return (folder / room).is_dir() or (folder / f"{room}.py").is_file()


def modules(package: Path) -> Iterator[tuple[str, Path]]:
    """Full name and path of every Python file of a package."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports_of(package: Path) -> Iterator[tuple[str, str, str]]:
    """Where, importer and imported, for every import of a package."""
    for module, path in modules(package):
        is_package = path.name == "__init__.py"
        for line, name in imports(path.read_text("utf-8"), module, package=is_package):
            yield f"{path.relative_to(ROOT)}:{line}", module, name


def test_every_room_of_the_harness_has_its_place():
    rooms = {room_of(module) for module, _ in modules(ROOT / "harness")}
    unplaced = rooms - set(RANK_OF) - OUTSIDE
    assert not unplaced, f"give these rooms a rank in {Path(__file__).name}: {sorted(unplaced)}"


def test_no_room_imports_one_above_it():
    wrong = []
    for where, module, name in imports_of(ROOT / "harness"):
        importer, imported = room_of(module), room_of(name)
        if imported is None or imported == importer or importer in OUTSIDE:
            continue
        if imported in OUTSIDE or RANK_OF[imported] > RANK_OF[importer]:
            wrong.append(f"{where}: {importer or 'harness'} imports {imported or 'harness'}")
    assert not wrong, "\n".join(wrong)


def test_no_two_rooms_import_each_other():
    uses: dict[str, set[str]] = {}
    for _, module, name in imports_of(ROOT / "harness"):
        importer, imported = room_of(module), room_of(name)
        if imported is not None and imported != importer and importer not in OUTSIDE:
            uses.setdefault(importer, set()).add(imported)
    assert _cycle(uses) is None, " -> ".join(_cycle(uses) or ())


def _cycle(uses: dict[str, set[str]]) -> list[str] | None:
    free: set[str] = set()

    def visit(room: str, path: list[str]) -> list[str] | None:
        if room in path:
            return [*path[path.index(room) :], room]
        if room in free:
            return None
        for other in sorted(uses.get(room, ())):
            found = visit(other, [*path, room])
            if found:
                return found
        free.add(room)
        return None

    return next((found for room in sorted(uses) if (found := visit(room, []))), None)


def test_the_harness_imports_no_plugin():
    wrong = [
        f"{where}: imports {name}"
        for where, _, name in imports_of(ROOT / "harness")
        if name.split(".")[0] in {*PLUGINS, "plugins"}
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_imports_the_harness_and_no_other_plugin(plugin):
    wrong = [
        f"{where}: imports {name}"
        for where, _, name in imports_of(ROOT / "plugins" / plugin)
        if name.split(".")[0] in {*PLUGINS, "plugins"} - {plugin}
    ]
    assert not wrong, "\n".join(wrong)


def found(source: str, module: str = "harness.tasks.load", *, package: bool = False) -> list[str]:
    return [name for _, name in imports(source, module, package=package)]


def test_imports_inside_functions_are_seen():
    assert found("def late():\n    import harness.cli.main\n") == ["harness.cli.main"]


def test_relative_imports_are_named_in_full():
    assert found("from . import resolve") == ["harness.tasks.resolve"]
    assert found("from ..data import source") == ["harness.data.source"]
    assert found("from .load import x", "harness.tasks", package=True) == ["harness.tasks.load.x"]


def test_imports_by_name_are_seen():
    assert found('importlib.import_module("harness_models.openai")') == ["harness_models.openai"]


def test_imports_for_type_checkers_alone_do_not_count():
    source = "if TYPE_CHECKING:\n    import harness.cli\nelse:\n    import harness.data\n"
    assert found(source) == ["harness.data"]


def test_a_cycle_is_named():
    assert _cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert _cycle({"a": {"b", "c"}, "b": {"c"}}) is None
