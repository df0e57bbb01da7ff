"""Options as a benchmark's own type, and what a benchmark has not that a task names."""

from typing import Annotated, Literal

import msgspec
import pytest

from harness.base.errors import TaskError
from harness.tasks.options import mismatches, typed_options


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    near: float = 1.0
    unit: Literal["km", "mile"] = "km"

    def __post_init__(self):
        if self.near < 0:
            raise ValueError("nothing is nearer than here")


class Options(msgspec.Struct, frozen=True):
    window: int = 20
    threshold: float = 0.5
    names: tuple[str, ...] = ()
    weights: Weights = Weights()
    order: Literal["newest", "oldest"] = "newest"
    most: Annotated[int, msgspec.Meta(ge=1)] | None = None
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    kinds: tuple[Literal["film", "book"], ...] = ()
    by_name: dict[str, int] = {}


class Nothing(msgspec.Struct, frozen=True):
    pass


@pytest.fixture
def task(catalogue):
    """Makes a task of lines of options; the first of them stands in line 4."""

    def make(*lines):
        text = "task: one\nextends: base\noptions:\n" + "".join(f"  {line}\n" for line in lines)
        return catalogue(one=text).select(["one"]).tasks[0]

    return make


def refused(task, options_type=Options):
    with pytest.raises(TaskError) as caught:
        typed_options(task, options_type)
    return caught.value


def test_what_the_task_is_silent_about_is_at_its_default(task):
    options = typed_options(task("threshold: 1e-5", "names: [a]", "weights: {near: 2}"), Options)
    assert options == Options(threshold=1e-5, names=("a",), weights=Weights(near=2.0))


def test_an_unknown_option_is_told_with_its_place_and_the_nearest_also_inside_another(task):
    error = refused(task("window: 1", "treshold: 2", "weights:", "  far: 2"))
    unknown = "unknown option `weights.far` of the benchmark 'films'"
    assert [(one.where, one.problem) for one in error.others] == [("one.yaml:7:5", unknown)]
    assert str(error).startswith(
        "one.yaml:5:3: unknown option `treshold` of the benchmark 'films'\n"
        "  expected: one of window, threshold, names, weights, order, most, share, kinds, by_name\n"
        "  to do:    did you mean 'threshold'?"
    )


@pytest.mark.parametrize(
    ("line", "where", "found", "expected"),
    [
        ("window: '3'", "4:11", '"3"', "a whole number"),
        ("window: 2.5", "4:11", "2.5", "a whole number"),
        ("names: [a, 2]", "4:14", "2", "text"),
        ("names: a", "4:10", '"a"', "a list of texts"),
        ("weights: {near: x}", "4:19", '"x"', "a number"),
        ("weights: {near: -1.0}", "4:12", '{"near": -1.0}', "nothing is nearer than here"),
        ("weights: 3", "4:12", "3", "keys and values, with near, unit"),
        ("order: newst", "4:10", '"newst"', "one of newest, oldest"),
        ("share: 2.0", "4:10", "2.0", "a number, above 0 and at most 1"),
        ("kinds: [film, boot]", "4:17", '"boot"', "one of book, film"),
        ("by_name: {a: x}", "4:16", '"x"', "a whole number"),
    ],
)
def test_an_ill_typed_option_is_told_with_its_place(task, line, where, found, expected):
    error = refused(task(line))
    assert (error.where, error.found, error.expected) == (f"one.yaml:{where}", found, expected)


def test_all_wrong_options_are_told_in_the_order_of_lines(task):
    error = refused(task("names: a", "windw: 1", "share: 2"))
    found = [one.where for one in (error, *error.others)]
    assert found == ["one.yaml:4:10", "one.yaml:5:3", "one.yaml:6:10"]


def test_a_benchmark_without_options_says_so(task):
    assert refused(task("window: 1"), Nothing).expected == "no options: this benchmark has none"


class Circle(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="circle"):
    radius: float = 1.0


class Square(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="square"):
    side: float = 1.0


class Point(msgspec.Struct, frozen=True, array_like=True):
    x: int = 0
    y: int = 0


class Drawn(msgspec.Struct, frozen=True):
    shape: Circle | Square = Circle()
    hole: Circle = Circle()
    at: Point = Point()
    corners: Literal[3, 4] = 4


def test_structs_with_a_tag_and_structs_as_lists_are_taken(task):
    given = task("shape: {type: square, side: 2}", "hole: {type: circle}", "at: [1, 2]")
    assert typed_options(given, Drawn) == Drawn(shape=Square(side=2.0), at=Point(1, 2))


@pytest.mark.parametrize(
    ("line", "problem", "expected"),
    [
        (
            "shape: {type: square, sides: 2}",
            "unknown option `shape.sides` of the benchmark 'films'",
            "one of type, side",
        ),
        ("shape: {type: square, side: x}", "the option `shape.side` is invalid", "a number"),
        ("hole: {type: square}", "the option `hole.type` is invalid", "one of circle"),
        ("corners: true", "the option `corners` is invalid", "one of 3, 4"),
    ],
)
def test_options_that_fit_none_of_their_structs_or_values_are_told(task, line, problem, expected):
    error = refused(task(line), Drawn)
    assert (error.problem, error.expected) == (problem, expected)


@pytest.fixture
def wrong(catalogue, site):
    """What a task of these lines names that its benchmark has not: place and problem."""

    def check(text):
        found = catalogue(one=f"task: one\nextends: base\n{text}")
        (task,) = found.select(["one"]).tasks
        errors = mismatches(task, site.plugins().benchmark("films"))
        return [(error.where, error.problem, error.hint) for error in errors]

    return check


def test_a_task_that_fits_has_no_mismatch(wrong):
    text = """
metrics: [hits, misses]
stages: {guess: {candidate: {}}, check: {judge: {}}}
roles: {judge: {same_as: candidate}, candidate: {}}
"""
    assert wrong(text) == []


COLUMNS = "columns: {user: {}, kind: {one_of: [liked], values: {up: like}}}"


@pytest.mark.parametrize(
    ("text", "where", "problem", "hint"),
    [
        ("metrics: [hits, mises]", "3:17", "the benchmark 'films' has no metric 'mises'",
         "did you mean 'misses'?"),
        ("stages: {gess: {}}", "3:10", "the benchmark 'films' has no stage 'gess'",
         "did you mean 'guess'?"),
        ("stages: {guess: {judge: {}}}", "3:18",
         "the stage 'guess' of the benchmark 'films' has no role 'judge'", None),
        ("roles: {juge: {}}", "3:9", "the benchmark 'films' has no role 'juge'",
         "did you mean 'judge'?"),
        ("roles: {judge: {same_as: nobody}}", "3:26", "the benchmark 'films' has no role 'nobody'",
         None),
        ("data: {known: [{table: sen, rows: 1}]}", "3:16",
         "a fact about the published data names no table 'sen' of the task",
         "did you mean 'seen'?"),
        ("data: {known: [{table: seen, column: usr}], tables: {seen: {columns: {user: {}}}}}",
         "3:16", "a fact about the published data names no column 'usr' of the task",
         "did you mean 'user'?"),
        ("data: {known: [{table: seen, values: 3}]}", "3:16",
         "a fact about the published data names no column for `values` of the task", None),
        ("data: {tables: {seen: {" + COLUMNS + "}}}", "3:76",
         "the values of column 'kind' stand for something that is none of its values",
         "did you mean 'liked'?"),
    ],
)  # fmt: skip
def test_what_benchmark_and_tables_have_not_is_told_with_its_place(
    wrong, text, where, problem, hint
):
    assert wrong(text) == [(f"one.yaml:{where}", problem, hint)]
