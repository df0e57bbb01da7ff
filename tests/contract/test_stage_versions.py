import importlib
import sys
from functools import partial

import pytest
from golden import stage_code as tool

from harness.testing.versions import code_of, pin_problems, read_pins


def test_every_version_is_pinned_to_its_code():
    now = tool.pins()
    assert {"parsing", "judges", "respondents", "stages of interests"} <= set(now)
    wrong = pin_problems(read_pins(tool.PINS), now, command=tool.COMMAND)
    assert not wrong, "\n".join(wrong)


FILES = {
    "__init__.py": "",
    "stages.py": "from .words import Word\n\ndef work(item): ...\n",
    "words.py": "class Word: ...\n",
    "other.py": "",
}


@pytest.fixture
def pinned(tmp_path, monkeypatch):
    """The pin of a stage in a package of these files, with some in place of others."""

    def pin(folder="site", **other):
        package = tmp_path / folder / "pinned_example"
        package.mkdir(parents=True, exist_ok=True)
        for name, text in {**FILES, **other}.items():
            (package / name).write_text(text, "utf-8")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(package.parent))
            stages = importlib.import_module("pinned_example.stages")
            parts = partial(stages.work, 1), tuple[stages.Word, str]
            code = code_of(*parts, package="pinned_example")
        for name in [name for name in sys.modules if name.startswith("pinned_example")]:
            del sys.modules[name]
        return code

    return pin


def test_a_change_in_a_module_of_a_stages_functions_or_types_changes_its_pin(pinned):
    assert pinned("elsewhere") == pinned()
    assert pinned(**{"other.py": "A = 1\n"}) == pinned()
    for name in ("stages.py", "words.py"):
        assert pinned(**{name: FILES[name] + "# why\n"}) != pinned()


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
