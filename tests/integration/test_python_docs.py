"""The examples of docs/python.md run as they stand, and print what stands below them."""

import ast
import asyncio
import contextlib
import inspect
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```\n(?P<printed>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)
RUN = re.compile(r"\d{8}T\d{6}-baseline-[0-9a-f]{8}")


def carried_out(code: str, names: dict[str, object]) -> str:
    """What the code prints, with `await` at the top as in a notebook."""
    compiled = compile(code, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        awaited = eval(compiled, names)
        if inspect.iscoroutine(awaited):
            asyncio.run(awaited)
    return printed.getvalue()


@pytest.mark.usefixtures("own_cache")
def test_the_examples_run_and_print_what_stands_below_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = list(BLOCK.finditer(PAGE.read_text("utf-8")))
    assert len(blocks) >= 8, "the pattern finds the examples"
    names: dict[str, object] = {}
    for block in blocks:
        printed = carried_out(block["code"], names)
        assert RUN.sub("RUN", printed) == RUN.sub("RUN", block["printed"] or ""), block["code"]
