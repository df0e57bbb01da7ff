"""What the house weighs, by room and plugin: `make weight`, or this script.

A room is a folder of `harness/`; its own files are the room `harness`. Lines are those of Python
and of templates, SQL, style sheets and scripts. What third parties have does not count.
`tests/weight.toml` has the most lines of each room and plugin and of the tests, which
`tests/contract/test_weight.py` holds.
"""

from __future__ import annotations

import ast
import operator
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOREIGN = ROOT / "tests" / "third_party"
TEXTS = {".css", ".html", ".j2", ".js", ".sql", ".tmpl"}
SMALL = 8
"""A function of fewer lines that is used in one place is a helper with one caller."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Weight:
    files: int = 0
    lines: int = 0
    statements: int = 0
    functions: int = 0
    classes: int = 0
    one_caller: int = 0
    texts: int = 0
    """The lines that are not Python."""

    def __add__(self, other: Weight) -> Weight:
        return Weight(*map(operator.add, astuple(self), astuple(other)))


def room_of(path: Path) -> str:
    """The room, plugin or `tests` to which a file belongs."""
    top, *inner = path.relative_to(ROOT).parts
    return top if top == "tests" or len(inner) == 1 else f"{top}/{inner[0]}"


def files() -> Iterator[Path]:
    for folder in ("harness", "plugins", "tests"):
        for path in sorted((ROOT / folder).rglob("*")):
            if FOREIGN in path.parents:
                continue
            if path.suffix == ".py" or (path.suffix in TEXTS and folder != "tests"):
                yield path


def weigh(module: ast.Module, used: Mapping[str, int]) -> Weight:
    """What a module weighs but for its lines; `used` counts the places that use a public name."""
    own = uses(module)
    weight = Weight(files=1)
    for node in ast.walk(module):
        weight.statements += isinstance(node, ast.stmt)
        weight.classes += isinstance(node, ast.ClassDef)
        if isinstance(node, Function):
            weight.functions += 1
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            plain = not node.decorator_list and not node.name.startswith("__")
            callers = own[node.name] if node.name.startswith("_") else used.get(node.name)
            weight.one_caller += plain and length < SMALL and callers == 1
    return weight


def uses(module: ast.Module) -> Counter[str]:
    """How often a module uses each name; an import is no use."""
    nodes = ast.walk(module)
    return Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in nodes
        if isinstance(node, ast.Name | ast.Attribute)
    )


def weights() -> dict[str, Weight]:
    """The weight of each room, of each plugin and of the tests."""
    found: dict[str, Weight] = {}
    sources = {path: path.read_text("utf-8") for path in files()}
    modules = {path: ast.parse(text) for path, text in sources.items() if path.suffix == ".py"}
    used: Counter[str] = Counter()
    for path, module in modules.items():
        if room_of(path) != "tests":
            used.update(uses(module))
    for path, text in sources.items():
        lines = len(text.splitlines())
        one = weigh(modules[path], used) if path in modules else Weight(texts=lines)
        one.lines = lines
        found[room_of(path)] = found.get(room_of(path), Weight()) + one
    return found


def bounds() -> dict[str, int]:
    """The most lines of each room, of each plugin and of the tests."""
    return tomllib.loads((ROOT / "tests" / "weight.toml").read_text("utf-8"))


def main() -> None:
    found, most = weights(), bounds()
    for top in ("harness", "plugins"):
        of_top = (weight for name, weight in found.items() if name.split("/")[0] == top)
        found |= {f"all of {top}": sum(of_top, Weight())}
    names = [field.name for field in fields(Weight)]
    sys.stdout.write("".join(f"{name.replace('_', ' '):>12}" for name in ["most", *names]) + "\n")
    for name, weight in sorted(found.items()):
        cells = [most.get(name, "–"), *astuple(weight)]
        sys.stdout.write("".join(f"{cell:>12}" for cell in cells) + f"  {name}\n")


if __name__ == "__main__":
    main()
