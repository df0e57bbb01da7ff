"""Modules, functions and parameter lists stay small enough to be read in one go."""

import ast
from pathlib import Path

from builders.statements import statements

ROOT = Path(__file__).resolve().parents[2]
HELD = ("harness", "plugins", "benchmarks", "tests/contract", "tests/golden")

MOST_LINES_OF_A_FILE = 600
MOST_LINES_OF_A_FUNCTION = 80
MOST_PARAMETERS = 10

OF_THE_COMMAND = {"harness/api.py": "aevaluate"}
"""A function whose parameters are the command's options; test_python_options.py compares them."""


def offenders(source, name):
    """One line for everything in a file that is over its limit."""
    lines = len(source.splitlines())
    if lines > MOST_LINES_OF_A_FILE:
        yield f"{name}: {lines} lines, at most {MOST_LINES_OF_A_FILE}"
    for node in statements(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > MOST_LINES_OF_A_FUNCTION:
            yield (
                f"{name}:{node.lineno}: {node.name} has {length} lines, "
                f"at most {MOST_LINES_OF_A_FUNCTION}"
            )
        count = len(_parameters(node.args))
        if count > MOST_PARAMETERS and OF_THE_COMMAND.get(name) != node.name:
            yield (
                f"{name}:{node.lineno}: {node.name} takes {count} parameters, "
                f"at most {MOST_PARAMETERS}"
            )


def _parameters(arguments):
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    rest = [extra for extra in (arguments.vararg, arguments.kwarg) if extra]
    return [item.arg for item in [*named, *rest] if item.arg not in {"self", "cls"}]


def test_nothing_is_larger_than_it_may_be():
    found = [
        line
        for folder in HELD
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in offenders(path.read_text("utf-8"), str(path.relative_to(ROOT)))
    ]
    assert not found, "\n".join(found)


def test_what_is_too_long_is_found():
    assert list(offenders("x = 1\n" * 600, "a.py")) == []
    assert list(offenders("x = 1\n" * 601, "a.py")) == ["a.py: 601 lines, at most 600"]
    body = "    x = 1\n" * 80
    assert list(offenders("def f():\n" + body, "a.py")) == ["a.py:1: f has 81 lines, at most 80"]
    names = ", ".join(f"p{number}" for number in range(10))
    assert list(offenders(f"class A:\n    def f(self, {names}): ...", "a.py")) == []
    assert list(offenders(f"class A:\n    def f(self, {names}, *, q): ...", "a.py")) == [
        "a.py:2: f takes 11 parameters, at most 10"
    ]
