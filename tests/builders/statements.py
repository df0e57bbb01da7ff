"""The statements of a source, without a look into expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """A module or statement, and all statements inside it, in their order."""
    yield node
    for block in BLOCKS:
        for inner in getattr(node, block, ()):
            yield from statements(inner)
