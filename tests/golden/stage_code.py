"""Which code decides what is recorded, as one hash for each version; run it to pin the hashes.

Stages, judges, respondents and the parsing ladder stand in keys by a version alone, so a version
must change with the code. Of a stage enter its `items` and `work`, the types of its items and
values, and from there on every function, class and constant that these name, as far as they stand
in the plugin's own package; of a judge its class, of a respondent its function, of the ladder its
whole room. Comments, docstrings and formatting do not enter, nor scores and loading that no stage
names, nor the rest of the harness.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, GenericAlias
from typing import Any, get_args, get_origin

PINS = Path(__file__).with_name("stage_versions.json")
DISTRIBUTION = "user-understanding-harness"

Pins = dict[str, dict[str, dict[str, Any]]]
Place = tuple[str, str]
"""A module and the name of something at its top level."""


def pins() -> Pins:
    """Version and code hash of all that keys hold by a version alone, in this project's plugins."""
    from harness.plugin_manager import load_plugins

    plugins = load_plugins()
    found: Pins = {"parsing": {"ladder": ladder_pin()}, "judges": {}, "respondents": {}}
    for name in _own(plugins.benchmarks):
        factory = plugins.benchmarks[name].factory
        found[f"stages of {name}"] = {
            stage.name: {"version": stage.version, "code": code_of_stage(stage, factory)}
            for stage in plugins.benchmark(name).stages
        }
    for name in _own(plugins.judges):
        registration = plugins.judges[name]
        judge = registration.factory(object() if registration.needs_model else None, {})
        found["judges"][name] = {"version": judge.version, "code": code_of(type(judge))}
    for key in _own(plugins.respondents):
        registration = plugins.respondents[key]
        code = code_of(registration.factory())
        found["respondents"]["/".join(key)] = {"version": registration.version, "code": code}
    return found


def _own(registry: Any) -> list[Any]:
    return [key for key in registry if registry[key].origin.distribution == DISTRIBUTION]


def ladder_pin() -> dict[str, Any]:
    """The version of the parsing ladder, and the hash of everything in its room."""
    import harness.parsing

    room = Path(harness.parsing.__file__).parent
    trees = [normal(ast.parse(path.read_text("utf-8")).body) for path in sorted(room.glob("*.py"))]
    return {"version": harness.parsing.LADDER_VERSION, "code": _hash("\n".join(trees))}


def code_of_stage(stage: Any, factory: Any) -> str:
    """The hash of all code that decides what the stage's records hold.

    A stage whose functions the harness made (`simple`) is pinned with everything its benchmark's
    factory names: which parts of that decide records cannot be told apart.
    """
    made_by_harness = stage.work.__module__.partition(".")[0] == "harness"
    parts = (stage.items, stage.work, stage.item, stage.value)
    return code_of(*parts, *([factory] if made_by_harness else []))


def code_of(*parts: Any) -> str:
    """The hash of some functions and types, with all that they name in their plugin."""
    roots = sorted({place for part in parts for place in _places(part)})
    if not roots:
        raise ValueError(f"no code can be found behind {parts}")
    reached = reach(roots)
    return _hash(
        "\n".join(
            f"{module}.{name} = {normal(node)}" for (module, name), node in sorted(reached.items())
        )
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _places(part: Any) -> Iterator[Place]:
    """Where a function or type stands; looks into partials and generic types."""
    if isinstance(part, functools.partial):
        for inner in (part.func, *part.args, *part.keywords.values()):
            yield from _places(inner)
    elif isinstance(part, GenericAlias) or get_origin(part) is not None:
        for inner in get_args(part):
            yield from _places(inner)
    elif isinstance(part, FunctionType | type) and tree_of(part.__module__) is not None:
        yield part.__module__, part.__qualname__.split(".")[0]


def reach(roots: list[Place]) -> dict[Place, ast.stmt]:
    """Every top-level definition that the roots name, directly or through one another."""
    reached: dict[Place, ast.stmt] = {}
    waiting = list(roots)
    while waiting:
        place = waiting.pop()
        node = definitions(place[0]).get(place[1])
        if place in reached or node is None:
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
    """What an import statement brings under a name: something in a module, or a module itself."""
    module, name = place
    if isinstance(node, ast.ImportFrom):
        home = module.split(".")
        base = home[: len(home) - node.level] if node.level else []
        source = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            if (alias.asname or alias.name) == name:
                if tree_of(f"{source}.{alias.name}") is not None:
                    yield f"{source}.{alias.name}", ""
                elif tree_of(source) is not None:
                    yield source, alias.name
    elif isinstance(node, ast.Import):
        for alias in node.names:
            if (alias.asname or alias.name) == name and tree_of(alias.name) is not None:
                yield alias.name, ""


@functools.cache
def definitions(module: str) -> dict[str, ast.stmt]:
    """The statement behind each name at the top level of a plugin's module."""
    found: dict[str, ast.stmt] = {}
    tree = tree_of(module)
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
def tree_of(module: str) -> ast.Module | None:
    """The syntax tree of a module that belongs to a plugin; None for any other module."""
    if module.partition(".")[0] in {"harness", *sys.stdlib_module_names}:
        return None
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    if spec is None or spec.origin is None or "site-packages" in Path(spec.origin).parts:
        return None
    if not spec.origin.endswith(".py"):
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


def complaints(before: Pins, now: Pins) -> list[str]:
    """What is wrong with the pinned versions, one line a version, each with what to do."""
    lines = []
    for owner, parts in sorted(now.items()):
        for part, pin in sorted(parts.items()):
            old = before.get(owner, {}).get(part)
            if old is None:
                lines.append(f"{owner}/{part} is not pinned: run `make pins`")
            elif old["version"] != pin["version"]:
                lines.append(f"{owner}/{part} has a new version: run `make pins`")
            elif old["code"] != pin["code"]:
                lines.append(
                    f"{owner}/{part} changed and is still version {pin['version']}: raise its "
                    "version, so that what the old code recorded is made again; where nothing "
                    "recorded can differ, keep the version. Then run `make pins`"
                )
    gone = [
        f"{owner}/{part} is pinned and no longer there: run `make pins`"
        for owner, parts in sorted(before.items())
        for part in sorted(parts)
        if part not in now.get(owner, {})
    ]
    return lines + gone


def read() -> Pins:
    """The pins as they were last written."""
    return json.loads(PINS.read_text("utf-8")) if PINS.is_file() else {}


def main() -> None:
    """Writes the pins and tells what they change: code under an unchanged version above all."""
    before, now = read(), pins()
    PINS.write_text(json.dumps(now, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    for line in complaints(before, now):
        print(line.replace("Then run `make pins`", "Pinned").replace("run `make pins`", "pinned"))


if __name__ == "__main__":
    main()
