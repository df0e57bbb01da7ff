"""What is said of task files that cannot be used, word for word."""

from pathlib import Path

import msgspec
import pytest

from harness.errors import HarnessError
from harness.tasks.catalogue import Catalogue
from harness.tasks.changes import apply_changes, parse_change
from harness.tasks.load import load_file
from harness.tasks.options import typed_options

FILES = {
    b"task: a\n? [1]\n: b\n": """\
a.yaml:2:3: a key that is not text
  found:    a list
  expected: text""",
    b"task: a\n1: b\n": """\
a.yaml:2:1: a key that is not text
  found:    1
  expected: text
  to do:    put quotes around it""",
    b"": """\
a.yaml: not a task or group
  found:    nothing
  expected: keys and values, the first `task: NAME` or `group: NAME`""",
    b"- a\n": """\
a.yaml: not a task or group
  found:    a list
  expected: keys and values, the first `task: NAME` or `group: NAME`""",
    b"task: a\nversion: !!python/name:os.system 1\n": """\
a.yaml:2:10: a tag that is not allowed here
  found:    !!python/name:os.system
  expected: plain values, without tags""",
    b"task: a\nname: \xff\n": """\
a.yaml:2: not text
  found:    b'\\xff'
  expected: UTF-8""",
    b"task: a\noptions:\n  <<: 3\n": """\
a.yaml:3:7: `<<` merges something that has no keys
  found:    a single value
  expected: an alias of a mapping, or a list of them""",
    b"task: a\nversion: 1\nversion: 2\n": """\
a.yaml:3:1: the key 'version' stands twice
  expected: one; the first is in line 2""",
}

CATALOGUES = {
    "a base": (
        {"bare": "task: bare\nextends: base\nabstract: true", "heir": "task: heir\nextends: bare"},
        "bare",
        """\
bare.yaml:3:1: 'bare' is a base that others extend
  expected: a task that can be run
  to do:    it is the base of heir""",
    ),
    "a circle of groups": (
        {"one": "group: one\ntasks: [two]", "two": "group: two\ntasks: [one]"},
        "one",
        """\
two.yaml:2:8: groups hold each other in a circle
  found:    one -> two -> one""",
    ),
    "a circle of tasks": (
        {"one": "task: one\nextends: two", "two": "task: two\nextends: one"},
        "one",
        """\
two.yaml:2:10: tasks extend each other in a circle
  found:    one -> two -> one""",
    ),
    "task and group": (
        {"both": "task: both\ngroup: both"},
        "both.yaml",
        """\
both.yaml:2:1: a file is either a task or a group
  found:    both `task` and `group`
  expected: one of them""",
    ),
    "an option twice": (
        {"m": "task: m_{window}\nextends: base\noptions: {window: 3}\nmatrix: {window: [1, 2]}"},
        "m.yaml",
        """\
m.yaml:3:11: the option `window` is given twice
  found:    `options.window` and `matrix.window`
  expected: one of them""",
    ),
    "too many": (
        {
            "m": "task: m_{window}_{threshold}\nextends: base\nmatrix:\n"
            f"  window: {list(range(101))}\n  threshold: {list(range(100))}\n"
        },
        "m.yaml",
        """\
m.yaml:3:1: `matrix` makes too many tasks
  found:    10,100 combinations
  expected: 5,000 at most""",
    ),
    "one name for all": (
        {"m": "task: m\nextends: base\nmatrix: {window: [1, 2]}"},
        "m.yaml",
        """\
m.yaml:1:7: several tasks of the matrix would have the same name
  found:    m
  expected: a name that holds {window}""",
    ),
    "one name for two": (
        {"m": "task: m_{b}{c}\nextends: base\nmatrix: {b: [x, xy], c: [yz, z]}"},
        "m.yaml",
        """\
m.yaml:1:7: two tasks of the matrix have the same name
  found:    m_xyz
  expected: something between the {…}, so that every combination has its own""",
    ),
    "a value twice": (
        {"m": "task: m_{window}\nextends: base\nmatrix: {window: [1, '1']}"},
        "m.yaml",
        """\
m.yaml:3:22: `matrix.window` lists a value twice
  found:    "1"
  expected: each value once""",
    ),
    "a key that is no option": (
        {"m": "task: m\nextends: base\nmatrix: {b c: [1]}"},
        "m.yaml",
        """\
m.yaml:3:10: a key of `matrix` that is no option
  found:    b c
  expected: the name of an option: letters, digits and _""",
    ),
    "a place that is no key": (
        {"m": "task: m_{windw}\nextends: base\nmatrix: {window: [1]}"},
        "m.yaml",
        """\
m.yaml:1:7: `task` holds {windw}, which is no key of the matrix
  found:    m_{windw}
  expected: one of {window}
  to do:    did you mean 'window'?""",
    ),
}


def said(call):
    with pytest.raises(HarnessError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("content", FILES)
def test_files(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_bytes(content)
    assert said(lambda: load_file(Path("a.yaml"))) == FILES[content]


def test_what_is_no_yaml(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("task: [a\n")
    # What was found is told in the words of the library that reads YAML.
    first, found, expected = said(lambda: load_file(Path("a.yaml"))).splitlines()
    assert (first, expected) == ("a.yaml:2:1: not YAML", "  expected: one document")
    assert found.endswith("while parsing a flow sequence")


def test_a_file_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said(lambda: load_file(Path("a.yaml"))) == (
        "a.yaml: cannot be read\n  found:    No such file or directory"
    )


@pytest.mark.parametrize("case", CATALOGUES)
def test_catalogues(case, catalogue):
    files, names, text = CATALOGUES[case]
    found = catalogue(**files)
    assert said(lambda: found.select([names])) == text


def test_two_files_of_one_name(catalogue):
    found = catalogue()
    Path("other").mkdir()
    Path("other/base.yaml").write_text(Path("base.yaml").read_text())
    assert (
        said(lambda: found.select(["base.yaml", "other/base.yaml"]))
        == """\
other/base.yaml:1:1: two different files are called 'base'
  found:    other/base.yaml and base.yaml
  expected: one of them"""
    )


def test_a_change_whose_value_cannot_be_read():
    assert (
        said(lambda: parse_change("window=[1"))
        == """\
--set window: the value cannot be read
  found:    [1
  expected: a value as YAML has it: 3, 1e-5, true, [a, b], {a: 1}, text
  to do:    quotes make any value text"""
    )


CHANGES = {
    ("data.hub.config", "c"): """\
--set data.hub.config: 'data' of the task 'base' cannot be changed so
  found:    'c'
  expected: Object missing required field `repo` - at `$.hub`""",
    ("options", 3): """\
--set options: options are keys and values
  found:    3
  expected: options by name: {window: 10}""",
    ("windw", 3): """\
--set windw: no chosen task has 'windw'
  expected: one of the options extra, names, threshold, weights, window, \
or a path in data, roles, stages, interval, least_scored, metrics
  to do:    did you mean 'window'?""",
}


@pytest.mark.parametrize(("path", "value"), CHANGES)
def test_changes(path, value, catalogue, site):
    tasks = catalogue().select(["base"]).tasks
    benchmark = site.plugins().benchmark
    assert (
        said(lambda: apply_changes(tasks, {path: value}, benchmark=benchmark))
        == CHANGES[path, value]
    )


class Range(msgspec.Struct, frozen=True):
    low: int = 0
    high: int = 9

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


def test_options_that_cannot_go_together(catalogue):
    found = catalogue(one="task: one\nextends: base\noptions:\n  low: 10")
    (task,) = found.select(["one"]).tasks
    assert (
        said(lambda: typed_options(task, Range))
        == """\
one.yaml:4:3: the options cannot be used
  expected: low is above high"""
    )


def test_a_folder_without_task_files(catalogue, site, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    plugins = site.plugins()
    for name in ("empty", "none"):
        assert (
            said(lambda name=name: Catalogue(plugins, include_path=[Path(name)]))
            == f"""\
--include_path names no folder of task files
  found:    {name}
  expected: a folder with files that end in .yaml or .yml"""
        )
