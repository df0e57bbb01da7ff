"""Files that make a task of each combination of what their matrix lists."""

from pathlib import Path
from textwrap import dedent

import pytest

from harness.base.errors import TaskError
from harness.tasks.identity import content_hash
from harness.tasks.load import load_text
from harness.tasks.matrix import expand
from harness.tasks.options import typed_options
from harness.tasks.resolve import locate

GRID = """
    task: film_{window}_{by}
    extends: base
    description: Guess {by}, of the last {window}; {other} stays.
    tags: [grid, "{by}"]
    matrix:
      window: [5, 10]
      by: [near, far, any]
    options: {threshold: 0.1, names: ["{by}{by}", fixed]}
    data: {tables: {seen: {files: ["{by}/*.csv"]}}}
"""
MADE = [
    "film_5_near", "film_5_far", "film_5_any", "film_10_near", "film_10_far", "film_10_any",
]  # fmt: skip


def made(text):
    return expand(load_text(dedent(text).lstrip("\n"), file=Path("a.yaml")))


def refused(text):
    with pytest.raises(TaskError) as caught:
        made(text)
    return caught.value


def names(catalogue, *specs):
    return [task.name for task in catalogue.select(specs).tasks]


def test_every_combination_is_a_task_with_its_own_options_and_texts():
    assert [one.name for one in made(GRID)] == MADE
    one = made(GRID)[4]
    assert one.values == {
        "task": "film_10_far",
        "extends": "base",
        "description": "Guess far, of the last 10; {other} stays.",
        "tags": ["grid", "far"],
        "options": {"threshold": 0.1, "names": ["farfar", "fixed"], "window": 10, "by": "far"},
        "data": {"tables": {"seen": {"files": ["far/*.csv"]}}},
    }
    assert one.pattern == "film_{window}_{by}"
    one, other, *_ = made(GRID.replace('["{by}/*.csv"]', "[a.csv]"))
    assert one.values["data"] is other.values["data"]


def test_keys_and_files_without_a_matrix_are_left_as_they_are_and_values_keep_their_types():
    (one, _) = made("task: a_{b}\nmatrix: {b: [true, 0.5]}\nroles: {'{b}': {default: '{b}'}}")
    assert one.values == {
        "task": "a_true", "roles": {"{b}": {"default": "true"}}, "options": {"b": True},
    }  # fmt: skip
    (found,) = made("task: a_{b}\noptions: {say: '{b}'}")
    assert found.values == {"task": "a_{b}", "options": {"say": "{b}"}}


def test_a_made_task_is_the_same_as_one_written_out(catalogue):
    found = catalogue(
        grid="task: film_{window}\nextends: base\nmatrix: {window: [5, 10]}\n"
        "data: {tables: {seen: {files: ['{window}.csv']}}}",
        plain="task: plain\nextends: base\noptions: {window: 10}\n"
        "data: {tables: {seen: {files: [10.csv]}}}",
    )
    first, second, plain = found.select(["film_5", "film_10", "plain"]).tasks

    def content(task):
        return content_hash(task, template_hashes={}, stage_versions={})

    assert content(second) == content(plain) != content(first)
    assert second.file == first.file


@pytest.mark.parametrize(
    ("spec", "chosen"),
    [
        ("film_5_*", ["film_5_any", "film_5_far", "film_5_near"]),
        ("tag:far", ["film_10_far", "film_5_far"]),
        *((spec, MADE) for spec in ("film_{window}_{by}", "grid.yaml", "many", "family")),
    ],
)
def test_made_tasks_are_chosen_as_any(catalogue, spec, chosen):
    found = catalogue(
        grid=GRID,
        many="group: many\ntasks: [grid.yaml]",
        family="group: family\ntasks: ['film_{window}_{by}']",
    )
    assert names(found, spec) == chosen


def test_made_tasks_are_extended_and_extend_each_other(catalogue):
    found = catalogue(
        level="task: level_{level}\nextends: base\nabstract: true\n"
        "matrix: {level: [low, high]}\noptions: {names: ['{level}'], extra: {low: 1}}",
        film="task: film_{level}_{window}\nextends: level_{level}\n"
        "matrix: {level: [low, high], window: [1, 2]}",
        heir="task: heir\nextends: [film_low_1, film_high_2]\noptions: {threshold: 0.9}",
    )
    (task,) = found.select(["film_high_1"]).tasks
    assert task.options == {"names": ["high"], "extra": {"low": 1}, "level": "high", "window": 1}
    (heir,) = found.select(["heir"]).tasks
    told = [base.name for base in heir.bases]
    assert told == ["base", "level_low", "film_low_1", "level_high", "film_high_2"]
    assert heir.options["window"] == 2
    assert "level_low" not in found.names


@pytest.mark.parametrize("reference", ["grid.yaml", "film_{window}_{by}"])
def test_a_file_of_many_tasks_is_no_base(catalogue, reference):
    found = catalogue(grid=GRID, heir=f"task: heir\nextends: '{reference}'")
    with pytest.raises(TaskError) as caught:
        found.select(["heir"])
    error = caught.value
    assert error.problem == f"'{reference}' names 6 tasks, but a base must be one task"
    assert (error.where, error.expected) == (
        "heir.yaml:2:10", "the name of one of them, such as 'film_5_near'",
    )  # fmt: skip


def test_a_value_that_no_option_takes_is_told_with_its_place(catalogue):
    found = catalogue(
        grid="task: film_{window}\nextends: base\nmatrix: {window: [1, many]}",
        heir="task: heir\nextends: film_many",
    )
    from harness.registry import load_plugins

    options = load_plugins().benchmark("films").options
    for task in found.select(["film_many", "heir"]).tasks:
        with pytest.raises(TaskError) as caught:
            typed_options(task, options)
        assert (caught.value.where, caught.value.found) == ("grid.yaml:3:22", '"many"')


def test_a_text_with_a_place_in_it_is_found_in_the_file(catalogue):
    found = catalogue(
        grid="task: film_{window}\nextends: base\nmatrix: {window: [1, 2]}\ndescription: w {window}"
    )
    (task,) = found.select(["film_2"]).tasks
    assert locate(task, ["description"], value="w 2") == "grid.yaml:4:14"
    assert locate(task, ["description"], value="w 3") == "--set, task film_2"


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        ("task: 3\nmatrix: {b: [1, 2]}", "1:7", "`task` is invalid"),
        ("task: a_{b}\nmatrix: {}", "2:9", "`matrix` is invalid"),
        ("task: a_{b}\nmatrix: {b: []}", "2:13", "`matrix.b` is invalid"),
        ("task: a_{b}\nmatrix: {b: [1, [2]]}", "2:17", "`matrix.b[1]` is invalid"),
        ("task: a_{b}\nmatrix: {b: [null]}", "2:14", "`matrix.b[0]` is invalid"),
    ],
)
def test_a_matrix_that_cannot_be_is_told_with_its_place(text, where, problem):
    error = refused(text)
    assert error.where == f"a.yaml:{where}"
    assert problem in error.problem


def test_a_matrix_of_too_many_is_refused_before_it_is_made():
    axes = ", ".join(f"{letter}: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]" for letter in "abcdefgh")
    name = "_".join(f"{{{letter}}}" for letter in "abcdefgh")
    error = refused(f"task: '{name}'\nmatrix: {{{axes}}}")
    assert (error.where, error.found) == ("a.yaml:2:1", "100,000,000 combinations")
    assert (error.problem, error.expected) == ("`matrix` makes too many tasks", "5,000 at most")


def test_a_made_name_must_be_one(catalogue):
    found = catalogue(grid="task: film_{threshold}\nextends: base\nmatrix: {threshold: [0.5, 1]}")
    with pytest.raises(TaskError) as caught:
        found.select(["film_0.5"])
    assert (caught.value.where, caught.value.found) == ("grid.yaml:1:7", '"film_0.5"')
    assert names(found, "film_1") == ["film_1"]
