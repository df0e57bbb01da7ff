"""Code that decides records says by its version that it changed, or old records answer for new."""

import importlib
import importlib.util
import sys

import pytest
from golden import stage_code as tool

from harness.testing.versions import code_of, normal, pin_problems, read_pins, runtime_tree


def test_every_version_is_pinned_to_its_code():
    now = tool.pins()
    assert {"parsing", "judges", "respondents", "stages of interests"} <= set(now)
    wrong = pin_problems(read_pins(tool.PINS), now, command=tool.COMMAND)
    assert not wrong, "\n".join(wrong)


def test_the_text_of_a_tree_is_the_same_under_every_python():
    assert normal(runtime_tree("def f(a): return a.b + 1").body) == (
        "[FunctionDef(name='f',args=arguments(args=[arg(arg='a')]),body=[Return(value=BinOp("
        "left=Attribute(value=Name(id='a'),attr='b'),op=Add(),right=Constant(value=1)))])]"
    )


FILES = {
    "__init__.py": "",
    "stages.py": """
from typing import TYPE_CHECKING
from . import words
from .reading import read

if TYPE_CHECKING:
    from pinned_example.unrelated import Unrelated

def work(item: "Unrelated"):
    return read(words.first(item))

def simple(item):
    from pinned_example.lazy.inner import answer
    return answer(item)
""",
    "reading.py": "import pinned_example.helping\n\ndef read(text):\n    return text\n",
    "helping.py": "A = 1\n",
    "words.py": "def first(data):\n    return data[0]\n",
    "lazy/__init__.py": "",
    "lazy/inner.py": "from ..deep import answer\n",
    "deep.py": "def answer(item):\n    return item\n",
    "unrelated.py": "class Unrelated:\n    pass\n",
}


@pytest.fixture
def pinned(tmp_path, monkeypatch):
    """The pin of `stages.work` in a package of these files, with some in place of others."""

    def pin(folder="site", **other):
        package = tmp_path / folder / "pinned_example"
        for name, text in {**FILES, **other}.items():
            file = package / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(package.parent))
            work = importlib.import_module("pinned_example.stages").work
            code = code_of(work, package="pinned_example")
        for name in [name for name in sys.modules if name.startswith("pinned_example")]:
            del sys.modules[name]
        return code

    return pin


@pytest.mark.parametrize(
    "name", ["stages.py", "words.py", "reading.py", "helping.py", "lazy/inner.py", "deep.py"]
)
def test_a_change_in_any_module_that_a_stages_module_imports_changes_its_pin(pinned, name):
    assert pinned(**{name: FILES[name] + "\nMORE = 1\n"}) != pinned()


def test_what_no_run_does_otherwise_changes_no_pin(pinned):
    assert pinned(**{"unrelated.py": "class Unrelated:\n    size = 3\n"}) == pinned()
    imported = FILES["stages.py"].replace("import Unrelated", "import Unrelated as Other")
    assert pinned(**{"stages.py": imported}) == pinned()
    dressed = (
        '"""Words."""\n\ndef first(\n    data,\n):\n    "Says."\n    # why\n    return data[0]\n'
    )
    assert pinned("elsewhere", **{"words.py": dressed}) == pinned()


OLD = {"b": {"s": {"version": 1, "code": "aa"}}}


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (OLD, OLD, []),
        (OLD, {"b": {"s": {"version": 1, "code": "bb"}}}, ["b/s changed and is still version 1"]),
        (OLD, {"b": {"s": {"version": 2, "code": "bb"}}}, ["b/s has a new version"]),
        ({}, OLD, ["b/s is not pinned"]),
        (OLD, {}, ["b/s is pinned and no longer there"]),
    ],
)
def test_changed_new_raised_and_removed_stages_are_told(before, now, told):
    assert [line.split(":")[0] for line in pin_problems(before, now, command="make pins")] == told
