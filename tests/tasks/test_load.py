"""YAML as plain values, with places and without surprises."""

from pathlib import Path
from textwrap import dedent

import pytest

from harness.base.errors import TaskError
from harness.tasks.load import load_file, load_text, read_value


def loaded(text):
    return load_text(dedent(text).lstrip("\n"), file=Path("a.yaml"))


def refused(text):
    with pytest.raises(TaskError) as caught:
        loaded(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("-.5e+3", -500.0),
        ("0x1f", 31),
        ("017", 17),
        ("true", True),
        ("null", None),
        ("", None),
        ("no", "no"),
        ("12:30", "12:30"),
        ("2024-01-31", "2024-01-31"),
        ("1_000", "1_000"),
        ("!!str 1", "1"),
        ("[a, 1e-5]", ["a", 1e-5]),
    ],
)
def test_a_value_reads_as_it_looks(text, value):
    assert read_value(text) == value
    assert type(read_value(text)) is type(value)


def test_what_a_document_says_has_its_line_and_column():
    document = loaded(
        """
        task: one
        data:
          size: 3
        metrics: [a,
                  b]
        """
    )
    assert (document.name, document.is_group) == ("one", False)
    assert document.has(["metrics", 1])
    assert not any(map(document.has, (["metrics", 2], ["metrics", "a"], ["task", 0])))
    assert document.where(["data"], of_key=True) == "a.yaml:2:1"
    assert document.where(["data", "size"]) == "a.yaml:3:9"
    assert document.where(["data", "size"], of_key=True) == "a.yaml:3:3"
    assert document.where(["metrics", 1]) == "a.yaml:5:11"
    assert document.where(["data", "absent", "deeper"], of_key=True) == "a.yaml:2:1"
    assert document.where([]) == "a.yaml:1:1"


def test_merge_keys_yield_to_own_keys_and_earlier_ones_win():
    document = loaded(
        """
        one: &one {a: 1, b: 1, c: 1}
        two: &two {b: 2, c: 2, d: 2}
        both:
          c: 0
          <<: [*one, *two]
        single:
          <<: *two
        """
    )
    assert document.values["both"] == {"a": 1, "b": 1, "c": 0, "d": 2}
    assert document.values["single"] == {"b": 2, "c": 2, "d": 2}
    assert document.where(["both", "d"]) == "a.yaml:2:27"


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
TAG, INVALID = "tags are not allowed", "the value is invalid"
DEEP, LARGE = "the file is nested too deeply", "the file is too large"
# Aliases count as what they stand for: a0 has 19, and 9 times the one before and one more have
# a1 172, a2 1,549, a3 13,942, a4 125,479, a5 1,129,312 and a6 10,163,809.
TOO_MUCH = "more than 10,000,000 values and characters, with what aliases stand for"
REFUSED = {
    "a local tag": ("a:\n  - !local x", "a.yaml:2:5", TAG, "!local"),
    "a set": ("a: !!set {b}", "a.yaml:1:4", TAG, "!!set"),
    "no integer": ("a: !!int x", "a.yaml:1:4", INVALID, "x"),
    "no boolean": ("a: !!bool x", "a.yaml:1:4", INVALID, "x"),
    "no number": ("a: .nan", "a.yaml:1:4", INVALID, ".nan"),
    "infinite": ("a: 1e999", "a.yaml:1:4", INVALID, "1e999"),
    "an anchor in itself": ("a: &a [*a]", "a.yaml", DEEP, None),
    "an anchor merged into itself": ("a: &a {<<: *a}", "a.yaml", DEEP, None),
    "deep lists": ("a: " + "[" * 900 + "]" * 900, "a.yaml", DEEP, None),
    "deep mappings": ("a: " + "{a: " * 900 + "}" * 900, "a.yaml", DEEP, None),
    "aliases of values": (BOMB, "a.yaml:7:5", LARGE, TOO_MUCH),
    "aliases of characters": (
        'a: &a "' + "x" * 9_000_000 + '"\nb: [*a, *a]',
        "a.yaml:2:4",
        LARGE,
        TOO_MUCH,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_plain_value_is_refused_with_its_place(case):
    text, *told = REFUSED[case]
    error = refused(text)
    assert [error.where, error.problem, error.found] == told
    if case.startswith("deep"):
        with pytest.raises(TaskError, match="value: the file is nested too deeply"):
            read_value(text.removeprefix("a: "))


@pytest.mark.parametrize("text", ["a: [1", "a: 1\n---\nb: 2"])
def test_what_is_no_yaml_is_told_with_its_place(text):
    error = refused(text)
    assert (error.problem, error.where) == ("the file is not valid YAML", "a.yaml:2:1")
    assert error.expected == "one YAML document"


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbftask: a\n")
    assert load_file(file).values == {"task": "a"}


def test_merges_of_merges_take_no_time():
    document = loaded(
        "a0: &a0 {x: 1}\n"
        + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 40))
    )
    assert document.values["a39"] == {"x": 1}
    assert document.where(["a39", "x"]) == "a.yaml:1:13"


def test_an_error_repeats_no_more_than_a_part_of_a_long_key():
    key = "k" * 200_000
    assert len(str(refused(f'"{key}": 1\n"{key}": 2'))) < 10_000
