"""Code that decides records says by its version that it changed, or old records answer for new."""

from __future__ import annotations

import ast

import pytest
from golden import stage_code as tool

from harness.testing.code import normal, reach
from harness.testing.versions import complaints, read_pins


def test_every_version_is_pinned_to_its_code():
    now = tool.pins()
    assert {"parsing", "judges", "respondents", "stages of interests"} <= set(now)
    wrong = complaints(read_pins(tool.PINS), now, command=tool.COMMAND)
    assert not wrong, "\n".join(wrong)


def test_formatting_comments_and_docstrings_change_nothing():
    plain = "def f(a):\n    return a+1"
    dressed = 'def f(\n    a,\n):\n    "Says."\n    # why\n    return a + 1\n'
    assert normal(ast.parse(plain).body) == normal(ast.parse(dressed).body)
    assert normal(ast.parse(plain).body) != normal(ast.parse("def f(a): return a+2").body)


def test_the_text_of_a_tree_is_the_same_under_every_python():
    assert normal(ast.parse("def f(a): return a.b + 1").body) == (
        "[FunctionDef(name='f',args=arguments(args=[arg(arg='a')]),body=[Return(value=BinOp("
        "left=Attribute(value=Name(id='a'),attr='b'),op=Add(),right=Constant(value=1)))])]"
    )


STAGES = """
import msgspec
import pinned_example.words
from . import words
from .reading import read_answer as reader

LIMIT = 3

class Question(msgspec.Struct):
    text: str

def items(upstreams, data, options):
    yield Question(text=words.first(data)[:LIMIT] + pinned_example.words.middle(data))

async def work(item, desk):
    return await desk.ask("candidate", item.text, read=reader)

def score(records, options):
    return unrelated()
"""
READING = "def read_answer(text):\n    return helper(text)\ndef helper(text):\n    return text\n"
WORDS = """
def first(data):
    return data[0]
def middle(data):
    return data[1]
def last(data):
    return data[-1]
"""


@pytest.fixture
def reached(tmp_path, monkeypatch):
    """What is reached from `items` and `work` of a small package, written as `module.name`."""
    package = tmp_path / "pinned_example"
    package.mkdir()
    (package / "__init__.py").touch()
    for name, source in {"stages": STAGES, "reading": READING, "words": WORDS}.items():
        (package / f"{name}.py").write_text(source, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    roots = [("pinned_example.stages", "items"), ("pinned_example.stages", "work")]
    return {f"{module.split('.')[-1]}.{name}" for module, name in reach(roots)}


def test_what_a_stage_names_decides_its_records_and_nothing_else(reached):
    assert reached == {
        "stages.items", "stages.work", "stages.Question", "stages.LIMIT",
        "words.first", "words.middle", "reading.read_answer", "reading.helper",
    }  # fmt: skip


OLD = {"b": {"s": {"version": 1, "code": "aa"}}}


def test_changed_code_under_the_same_version_is_told_with_what_to_do():
    [line] = complaints(OLD, {"b": {"s": {"version": 1, "code": "bb"}}}, command="make pins")
    assert line.startswith("b/s changed and is still version 1: raise its version")
    assert line.endswith("run `make pins`")


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (OLD, OLD, []),
        (OLD, {"b": {"s": {"version": 2, "code": "bb"}}}, ["b/s has a new version"]),
        ({}, OLD, ["b/s is not pinned"]),
        (OLD, {}, ["b/s is pinned and no longer there"]),
    ],
)
def test_new_raised_and_removed_stages_are_told(before, now, told):
    assert [line.split(":")[0] for line in complaints(before, now, command="make pins")] == told
