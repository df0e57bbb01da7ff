"""What is said of task files that cannot be used, word for word."""

from functools import partial
from pathlib import Path

import msgspec
import pytest
from inline_snapshot import snapshot

from harness.base.errors import TaskError, UsageError
from harness.registry.task_catalogue import Catalogue
from harness.tasks.changes import apply_changes, parse_change
from harness.tasks.load import load_file, read_value
from harness.tasks.options import typed_options

FILES = {
    b"task: a\n? [1]\n: b\n": ("a.yaml:2:3", "a list", snapshot("""\
keys must be text
expected: a key that is text""")),
    b"task: a\n1: b\n": ("a.yaml:2:1", "1", snapshot("""\
keys must be text
expected: a key that is text
to do: put quotes around it""")),
    b"": ("a.yaml", "nothing", snapshot("""\
the file defines no task or group
expected: keys and values, the first `task: NAME` or `group: NAME`""")),
    b"task: a\nversion: !!python/name:os.system 1\n": ("a.yaml:2:10", "!!python/name:os.system",
        snapshot("""\
tags are not allowed
expected: plain values without tags""")),
    b"task: a\nname: \xff\n": ("a.yaml:2", "b'\\xff'", snapshot("""\
the file is not text
expected: text in UTF-8""")),
    b"task: a\noptions:\n  <<: 3\n": ("a.yaml:3:7", "a single value", snapshot("""\
`<<` can only merge mappings
expected: an alias of a mapping, or a list of them""")),
    b"task: a\nversion: 1\nversion: 2\n": ("a.yaml:3:1", None, snapshot("""\
the key 'version' is given twice
expected: each key once; the first is in line 2""")),
}  # fmt: skip

CATALOGUES = {
    "a base": (
        {"bare": "task: bare\nextends: base\nabstract: true", "heir": "task: heir\nextends: bare"}, "bare",
        "bare.yaml:3:1", None, snapshot("""\
'bare' is abstract and cannot be run
expected: a task that can be run
to do: these tasks extend it: heir""")),
    "a circle of groups": (
        {"one": "group: one\ntasks: [two]", "two": "group: two\ntasks: [one]"}, "one",
        "two.yaml:2:8", "one -> two -> one", snapshot('groups contain each other in a circle')),
    "task and group": (
        {"both": "task: both\ngroup: both"}, "both.yaml",
        "both.yaml:2:1", "both `task` and `group`", snapshot("""\
a file is either a task or a group
expected: either `task` or `group`""")),
    "an option twice": (
        {"m": "task: m_{window}\nextends: base\noptions: {window: 3}\nmatrix: {window: [1, 2]}"}, "m.yaml",
        "m.yaml:3:11", "`options.window` and `matrix.window`", snapshot("""\
the option `window` is given twice
expected: the option either in `options` or in `matrix`""")),
    "one name for all": (
        {"m": "task: m\nextends: base\nmatrix: {window: [1, 2]}"}, "m.yaml", "m.yaml:1:7", "m",
        snapshot("""\
several tasks of the matrix would have the same name
expected: a name that contains {window}""")),
    "one name for two": (
        {"m": "task: m_{b}{c}\nextends: base\nmatrix: {b: [x, xy], c: [yz, z]}"}, "m.yaml",
        "m.yaml:1:7", "m_xyz", snapshot("""\
two tasks of the matrix have the same name
expected: text between the {…} that gives every combination its own name""")),
    "a value twice": (
        {"m": "task: m_{window}\nextends: base\nmatrix: {window: [1, '1']}"}, "m.yaml",
        "m.yaml:3:22", '"1"', snapshot("""\
`matrix.window` lists a value twice
expected: each value once""")),
    "a key that is no option": (
        {"m": "task: m\nextends: base\nmatrix: {b c: [1]}"}, "m.yaml", "m.yaml:3:10", "b c",
        snapshot("""\
a key of `matrix` is not the name of an option
expected: the name of an option: letters, digits and _""")),
    "a place that is no key": (
        {"m": "task: m_{windw}\nextends: base\nmatrix: {window: [1]}"}, "m.yaml",
        "m.yaml:1:7", "m_{windw}", snapshot("""\
`task` contains {windw}, which is not a key of the matrix
expected: one of {window}
to do: did you mean 'window'?""")),
}  # fmt: skip


@pytest.mark.parametrize("content", FILES)
def test_files(content, tmp_path, monkeypatch, raised):
    monkeypatch.chdir(tmp_path)
    file = Path("a.yaml")
    file.write_bytes(content)
    where, found, wording = FILES[content]
    assert raised(TaskError, load_file, file, where=where, found=found) == wording


@pytest.mark.parametrize("case", CATALOGUES)
def test_catalogues(case, catalogue, raised):
    files, names, where, found, wording = CATALOGUES[case]
    select = catalogue(**files).select
    assert raised(TaskError, select, [names], where=where, found=found) == wording


def test_two_files_of_one_name(catalogue, raised):
    select = catalogue().select
    Path("other").mkdir()
    Path("other/base.yaml").write_text(Path("base.yaml").read_text())
    names = ["base.yaml", "other/base.yaml"]
    where, found = "other/base.yaml:1:1", "other/base.yaml and base.yaml"
    assert raised(TaskError, select, names, where=where, found=found) == snapshot("""\
two different files define 'base'
expected: only one of the two files in --tasks""")


def test_a_change_whose_value_cannot_be_read(raised):
    where = "--set window"
    assert raised(UsageError, parse_change, "window=[1", where=where, found="[1") == snapshot("""\
the value is not valid YAML
expected: a YAML value: 3, 1e-5, true, [a, b], {a: 1}, text
to do: put quotes around text that YAML would read otherwise""")


CHANGES = {
    ("data.sources", "[{hub: {}}]"): (TaskError, "--set data.sources", None, snapshot("""\
`data.sources[0].hub.repo` is missing
expected: `repo`: Owner and name, as OWNER/NAME.""")),
    ("options", "3"): (UsageError, "--set options", "3", snapshot("""\
the options must be keys and values
expected: options by name: {window: 10}""")),
}  # fmt: skip


@pytest.mark.parametrize(("path", "value"), CHANGES)
def test_changes(path, value, catalogue, site, raised):
    tasks = catalogue().select(["base"]).tasks
    change = partial(
        apply_changes, tasks, {path: read_value(value)}, benchmark=site.plugins().benchmark
    )
    kind, where, found, wording = CHANGES[path, value]
    assert raised(kind, change, where=where, found=found) == wording


class Range(msgspec.Struct, frozen=True):
    low: int = 0
    high: int = 9

    def __post_init__(self):
        if self.low > self.high:
            raise ValueError("low is above high")


def test_options_that_cannot_go_together(catalogue, raised):
    found = catalogue(one="task: one\nextends: base\noptions:\n  low: 10")
    (task,) = found.select(["one"]).tasks
    assert raised(TaskError, typed_options, task, Range, where="one.yaml:4:3") == snapshot("""\
the options are invalid
expected: low is above high""")


def test_a_folder_without_task_files(site, monkeypatch, tmp_path, raised):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    for name in ("empty", "none"):
        include = partial(Catalogue, site.plugins(), include_path=[Path(name)])
        assert raised(TaskError, include, found=name) == snapshot("""\
--include_path: no task files in this folder
expected: a folder with files ending in .yaml or .yml""")
