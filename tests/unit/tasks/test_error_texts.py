"""What is said of task files that cannot be used, word for word."""

from pathlib import Path

import pytest

from harness.errors import HarnessError
from harness.tasks.changes import parse_change
from harness.tasks.load import load_file

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
