import ast
import functools
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = sorted(path.name for path in (ROOT / "plugins").iterdir() if path.is_dir())

ORDER = (
    "testing", "cli", "reporting", "pipeline", "parsing prompts registry", "analysis", "comparison",
    "scoring",
    "data", "runs", "tasks", "calls", "contracts", "base",
)  # fmt: skip
"""The rooms of `harness`. A room imports only rooms to the right of it."""

RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms.split()}
FRONT = {"harness", "harness.__main__", "harness.api"}
"""What users import: it uses every room, and no room but `testing` uses it."""

SHARED_STEMS = {"__init__"}
"""File names that several rooms have; those of `contracts` and `cli` are free."""


def modules(*packages):
    found = {}
    for package in packages:
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package.parent).with_suffix("").parts
            found[".".join(part for part in parts if part != "__init__")] = path
    return found


HARNESS = modules(ROOT / "harness")
ALL = HARNESS | modules(*(ROOT / "plugins" / name for name in PLUGINS))


def statements(node):
    """A module or statement and all statements inside it, without a look into expressions."""
    yield node
    for block in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(node, block, ()):
            yield from statements(inner)


def imported(source, known=ALL):
    """The modules among the known ones that a source imports anywhere."""
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert not node.level, "relative imports are not used"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module


@functools.cache
def imported_by(path):
    """The modules of the harness and its plugins that a file imports."""
    return frozenset(each for each in imported(path.read_text("utf-8")) if each in ALL)


def arrows(packages):
    """Each module with the modules of the harness and its plugins that it imports."""
    return {name: imported_by(path) - {name} for name, path in packages.items()}


def room_of(module):
    return module.split(".")[1]


def test_every_module_is_in_a_room_and_its_file_name_occurs_once():
    assert {room_of(name) for name in HARNESS.keys() - FRONT} == set(RANK)
    places = defaultdict(list)
    for name, path in HARNESS.items():
        if name not in FRONT and room_of(name) not in {"contracts", "cli"}:
            places[path.stem].append(name)
    assert {stem: names for stem, names in places.items() if len(names) > 1}.keys() <= SHARED_STEMS


def test_a_room_imports_only_rooms_to_the_right_of_it():
    wrong = [
        f"{module} imports {other}"
        for module, others in arrows(HARNESS).items()
        if module not in FRONT
        for other in others
        if (other in FRONT and room_of(module) != "testing")
        or (
            other not in FRONT
            and room_of(other) != room_of(module)
            and RANK[room_of(other)] <= RANK[room_of(module)]
        )
    ]
    assert wrong == []


def test_no_modules_import_each_other_in_a_circle_which_would_be_named():
    assert circle(arrows(ALL)) == []
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def circle(graph):
    """A circle of imports; empty if there is none."""
    left = {node: set(others) for node, others in graph.items()}
    while free := [node for node, others in left.items() if not others & left.keys()]:
        for node in free:
            del left[node]
    path: list[str] = []
    while left and (not path or path[-1] not in path[:-1]):
        path.append(min(left[path[-1]] & left.keys()) if path else min(left))
    return path[path.index(path[-1]) :] if path else []


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_plugin_imports_no_other_plugin(plugin):
    found = arrows({name: path for name, path in ALL.items() if name.split(".")[0] == plugin})
    others = {other for each in found.values() for other in each}
    assert {other.split(".")[0] for other in others} <= {"harness", plugin}


def test_the_harness_imports_no_plugin():
    others = {other for each in arrows(HARNESS).values() for other in each}
    assert {other.split(".")[0] for other in others} == {"harness"}


def test_imports_inside_functions_and_for_types_are_seen():
    known = {"harness.cli.main", "harness.data"}
    late, for_types = "def late():\n    import harness.cli.main\n", "from harness import data\n"
    source = f"{late}if TYPE_CHECKING:\n    {for_types}"
    assert list(imported(source, known)) == ["harness.cli.main", "harness.data"]
