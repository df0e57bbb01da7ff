"""`--columns` and `--values`: paths, the tasks that they reach, and what is refused."""

import pytest

from harness.base.errors import UsageError
from harness.tasks.own_columns import own_columns_of, with_own_columns

TWO = {
    "one": """
        task: one
        extends: base
        data:
          tables:
            seen:
              columns:
                user: {}
                kind: {one_of: [liked, skipped], values: {up: liked}}
            films: {columns: {user: {}, film.id: {}}}
    """,
    "two": "task: two\nextends: base\ndata: {tables: {seen: {columns: {kind: {}, film.id: {}}}}}",
}


@pytest.fixture
def tasks(catalogue):
    return catalogue(**TWO).select(["one", "two"]).tasks


def column(task, table, name):
    return task.data.tables[table].columns[name]


def test_a_path_reaches_every_task_that_has_the_column(tasks):
    columns = {"seen.user": "customer_id", "film.id": "nr", "kind": "action"}
    one, two = with_own_columns(tasks, columns, {"kind.view": "skipped", "seen.kind.a.b": "liked"})
    assert column(one, "seen", "user").called == "customer_id"
    assert column(one, "films", "user").called is None
    found = [column(*of).called for of in ((one, "films", "film.id"), (two, "seen", "film.id"))]
    assert found == ["nr", "nr"]
    assert [column(task, "seen", "kind").called for task in (one, two)] == ["action", "action"]
    assert column(one, "seen", "kind").values == {"up": "liked", "view": "skipped", "a.b": "liked"}
    assert column(two, "seen", "kind").values == {"view": "skipped", "a.b": "liked"}
    assert tasks[0].data.tables["seen"].columns["kind"].values == {"up": "liked"}


def test_a_path_may_name_its_task(tasks):
    one, two = with_own_columns(tasks, {"two:kind": "action"}, {"one:seen.kind.x:y": "liked"})
    assert [column(task, "seen", "kind").called for task in (one, two)] == [None, "action"]
    assert column(one, "seen", "kind").values == {"up": "liked", "x:y": "liked"}
    assert column(two, "seen", "kind").values == {}
    given = {"two:kind": "action", "film.id": "nr"}, {"one:seen.kind.x:y": "liked"}
    found = own_columns_of(one, *given)
    assert found == ("--columns film.id=nr", "--values one:seen.kind.x:y=liked")
    assert own_columns_of(two, *given) == ("--columns two:kind=action", "--columns film.id=nr")


@pytest.mark.parametrize(
    ("given", "problem", "expected", "hint"),
    [
        (({"seen.usr": "x"}, {}), "no chosen task has the column that 'seen.usr' names",
         "TABLE.COLUMN=NAME with one of: seen.user, seen.kind, films.user, films.film.id, "
         "seen.film.id", "did you mean 'seen.user'?"),
        (({}, {"knd.view": "x"}), "no chosen task has the column that 'knd.view' names",
         "TABLE.COLUMN.VALUE=MEANING with one of: seen.user, seen.kind, films.user, "
         "films.film.id, seen.film.id", None),
        (({}, {"kind": "x"}), "'kind' names a column and no value of it",
         "TABLE.COLUMN.VALUE=MEANING",
         "put a value of your data behind it: --values kind.VALUE=MEANING"),
        (({"user": "x"}, {}), "several tables of task 'one' have the column 'user'",
         "the table too, as seen.user", None),
        (({}, {"seen.kind.view": "skiped"}), "no value of column 'kind' is 'skiped'",
         "one of: liked, skipped", "did you mean 'skipped'?"),
    ],
)  # fmt: skip
def test_what_no_column_has_is_refused(tasks, given, problem, expected, hint):
    with pytest.raises(UsageError) as caught:
        with_own_columns(tasks, *given)
    error = caught.value
    assert (error.problem, error.expected, error.hint) == (problem, expected, hint)
