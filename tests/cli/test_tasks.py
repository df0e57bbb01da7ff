"""`harness tasks`, as it is printed."""

import json
from textwrap import dedent

import pytest

FILES = {
    "books_made_up/plugin.py": "",
    "books_made_up/task_configs/one.yaml": """
        task: books_one
        version: 3
        benchmark: books
        description: Which book is next.
        tags: [paper]
        options: {shelf: new, weights: {near: 2.0}}
        data: {tables: {read: {}}}
        metrics: [right, wrong]
    """,
    "books_made_up/task_configs/two.yaml": "task: books_two\nextends: books_one\n",
    "books_made_up/task_configs/hidden.yaml": "task: books_hidden\nabstract: true\n",
    "books_made_up/task_configs/all.yaml": "group: books\ntasks: [books_one, books_two]\n",
}


@pytest.fixture
def books(site, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    site.install("book-benchmark", {"books": "books_made_up.plugin"}, FILES)
    return site


def test_what_there_is_fits_one_screen(printed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = printed("tasks").out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "`harness tasks NAME` describes one, `harness tasks --all` describes all"


def test_tags_globs_and_parts_of_names_choose_what_is_listed_and_groups_members(books, printed):
    listed = "tasks:\n  books_one  Which book is next.\n  books_two  Which book is next.\n"
    for pattern in ("tag:paper", "paper", "books_*", "books_"):
        assert printed("tasks", pattern).out == listed
    (books.folder / "books_made_up/task_configs/more.yaml").write_text(
        "task: books_of_others\nextends: books_one\n"
    )
    assert printed("tasks", "books").out == f"{listed}groups:\n  books  (books_one, books_two)\n"


BENCHMARK = """
    from harness import Benchmark, hookimpl

    @hookimpl
    def register_benchmarks(register):
        register("books", make)

    def make():
        {made}
"""


def test_the_paper_and_the_licence_of_a_benchmark_are_shown(books, printed):
    told = "metrics={}, description='Foresee what is read.', paper='X 1', licence='CC0'"
    made = "return Benchmark(name='books', version=1, load=None, score=None, stages=(), "
    file = books.folder / "books_made_up/plugin.py"
    file.write_text(dedent(BENCHMARK).format(made=f"{made}{told})"))
    said = printed("tasks", "books_two").out
    assert "\n  books  Foresee what is read; paper: X 1; licence: CC0\n" in said


def test_a_task_that_cannot_be_read_is_listed_with_what_is_wrong(books, printed):
    (books.folder / "books_made_up/task_configs/bad.yaml").write_text("task: bad\ntags: [x]\n")
    said = printed("tasks", "bad")
    assert said.out == "tasks:\n  bad\n"
    assert "bad.yaml" in said.err


def test_only_the_benchmarks_of_tasks_named_in_full_are_made(books, printed):
    file = books.folder / "books_made_up/plugin.py"
    file.write_text(dedent(BENCHMARK).format(made="1 / 0"))
    assert printed("tasks", "books_t", "books").err == ""
    said = printed("tasks", "books_two")
    assert said.out.startswith("task:\n  books_two, version 3  Which book is next.\n")
    assert "  weights.near  2.0\n" in said.out
    assert "ZeroDivisionError" in said.err


def test_broken_plugins_and_files_are_named_beside_the_list(books, printed):
    books.install(
        "bad",
        {"bad": "bad.plugin"},
        {"bad/plugin.py": "1 / 0", "bad/task_configs/torn.yaml": "tags: [a]] b"},
    )
    said = printed("tasks")
    assert "books_one" in said.out
    first, second, *_ = said.err.splitlines()
    assert first == (
        "harness: plugin 'bad' of bad could not be loaded: ZeroDivisionError: division by zero"
    )
    torn = f"{books.folder}/bad/task_configs/torn.yaml"
    assert second == f"harness: {torn}:1:10: the file is not valid YAML"


GRID = """
task: books_{level}_{n}
extends: books_one
matrix: {level: [easy, hard], n: [1, 2, 3, 4, 5, 6, 7]}
description: Which book is next, {level}.
tags: [paper, grid]
"""


def test_many_tasks_of_one_file_are_one_line_until_they_are_asked_for(books, printed):
    file = books.folder / "books_made_up/task_configs/grid.yaml"
    file.write_text(GRID)
    # How wide the columns are depends on what else is installed.
    said = " ".join(printed("tasks", "--all").out.split())
    assert " books_{level}_{n} 14 tasks: Which book is next, {level}. " in said
    assert "books_easy_1" not in said
    assert " grid books_{level}_{n} " in said
    assert " paper books_{level}_{n}, books_one, books_two" in said
    for pattern in ("books_e*", "grid", "books_{level}_{n}"):
        said = printed("tasks", pattern).out
        assert "  books_easy_1  Which book is next, easy.\n" in said, pattern
        assert "{n}" not in said
    listed = [one["name"] for one in json.loads(printed("tasks", "--json").out)["tasks"]]
    assert len([name for name in listed if name.startswith(("books_easy", "books_hard"))]) == 14
    file.write_text(GRID.replace("1, 2, 3, 4, 5, 6, 7", "1, 2"))
    assert "books_easy_1" in printed("tasks", "--all").out
