"""YAML as plain values, with places and without surprises."""

from pathlib import Path
from textwrap import dedent

import pytest

from harness.base.errors import TaskError
from harness.tasks.load import load_file, load_text, read_value

FILE = Path("a.yaml")


def loaded(text):
    return load_text(dedent(text).lstrip("\n"), file=FILE)


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
    document = loaded("task: one\nmetrics: [a]")
    assert (document.name, document.is_group) == ("one", False)
    assert document.has(["metrics", 0])
    assert not document.has(["metrics", 1])
    assert not document.has(["metrics", "a"])
    assert not document.has(["task", 0])
    document = loaded(
        """
        task: one
        data:
          size: 3
        metrics: [a,
                  b]
        """
    )
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


@pytest.mark.parametrize(
    ("text", "where", "found"),
    [
        ("a:\n  - !local x", "a.yaml:2:5", "!local"),
        ("a: !!set {b}", "a.yaml:1:4", "!!set"),
        ("a: !!int x", "a.yaml:1:4", "x"),
        ("a: !!bool x", "a.yaml:1:4", "x"),
        ("a: .nan", "a.yaml:1:4", ".nan"),
        ("a: 1e999", "a.yaml:1:4", "1e999"),
    ],
)  # fmt: skip
def test_what_is_no_plain_value_is_refused(text, where, found):
    error = refused(text)
    assert (error.where, error.found) == (where, found)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: [1", "a.yaml:2:1"),
        ("a: 1\n---\nb: 2", "a.yaml:2:1"),
    ],
)
def test_what_is_no_yaml_is_told_with_its_place(text, where):
    error = refused(text)
    assert (error.problem, error.where) == ("the file is not valid YAML", where)
    assert error.expected == "one YAML document"


def test_an_anchor_that_holds_itself_is_refused():
    assert refused("a: &a [*a]").problem == "the file is nested too deeply"
    assert refused("a: &a {<<: *a}").problem == "the file is nested too deeply"


@pytest.mark.parametrize("opening", ["[", "{a: "])
def test_deep_nesting_is_an_error_with_the_file(opening):
    text = opening * 900 + ("]" if opening == "[" else "}") * 900
    assert refused(f"a: {text}").where == "a.yaml"
    with pytest.raises(TaskError, match="value: the file is nested too deeply"):
        read_value(text)


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbftask: a\n")
    assert load_file(file).values == {"task": "a"}


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 40)
)


@pytest.mark.parametrize(
    "text", [BOMB, 'a: &a "' + "x" * 900_000 + '"\nb: [*a, *a]'], ids=["values", "characters"]
)
def test_aliases_count_as_what_they_stand_for(text):
    error = refused(text)
    assert error.problem == "the file is too large"
    assert error.found.startswith("more than 1,000,000 values and characters")


def test_merges_of_merges_take_no_time():
    document = loaded(MERGES)
    assert document.values["a39"] == {"x": 1}
    assert document.where(["a39", "x"]) == "a.yaml:1:13"


def test_an_error_repeats_no_more_than_a_part_of_a_long_key():
    key = "k" * 200_000
    assert len(str(refused(f'"{key}": 1\n"{key}": 2'))) < 10_000
