"""Metrics, stages and roles that a benchmark has, and those that it has not."""

import pytest

from harness.tasks.options import mismatches


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
