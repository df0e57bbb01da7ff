"""`harness tasks`, as it is printed."""

import json
from textwrap import dedent

import pytest

from harness.cli.main import main

FILES = {
    "books_made_up/plugin.py": "",
    "books_made_up/task_configs/one.yaml": """
        task: books_one
        version: 3
        benchmark: books
        description: Which book is next.
        tags: [paper]
        options: {shelf: new, weights: {near: 2.0}}
        roles:
          candidate: {sampling: {max_tokens: 9}}
          judge: {default: "fake:big"}
          reader: {same_as: candidate}
        data:
          sample: sample
          size: 1200
          sources: [{hub: {repo: acme/books}}]
          tables: {read: {}, written: {required: false}}
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


def test_a_group_is_shown_with_its_members_and_without_tags(books, printed):
    (books.folder / "books_made_up/task_configs/more.yaml").write_text(
        "task: books_of_others\nextends: books_one\n"
    )
    assert printed("tasks", "books").out == (
        "tasks:\n"
        "  books_one  Which book is next.\n"
        "  books_two  Which book is next.\n"
        "groups:\n"
        "  books  (books_one, books_two)\n"
    )


def test_what_there_is_fits_one_screen(printed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = printed("tasks").out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "`harness tasks NAME` describes one, `harness tasks --all` describes all"


def test_all_is_meant_without_names(books, printed):
    assert "--all cannot be combined with names" in printed("tasks", "--all", "books", code=2).err


@pytest.mark.parametrize("pattern", ["tag:paper", "paper", "books_*", "books_"])
def test_tags_globs_and_parts_of_names_choose_what_is_listed(books, printed, pattern):
    assert printed("tasks", pattern).out == (
        "tasks:\n  books_one  Which book is next.\n  books_two  Which book is next.\n"
    )


BENCHMARK = """
    from typing import Annotated, Literal

    import msgspec
    from msgspec import Meta

    from harness import Benchmark, Item, Metric, Stage, hookimpl

    class Weights(msgspec.Struct, frozen=True):
        near: Annotated[float, Meta(description="of books nearby")] = 1.0
        far: float = 0.5

    class Options(msgspec.Struct, frozen=True):
        shelf: Annotated[Literal["old", "new"], Meta(description="where it stands")] = "old"
        most: int | None = None
        weights: Weights = Weights()

    @hookimpl
    def register_benchmarks(register):
        register("books", make)

    def make():
        {made}
"""
STAGE = "Stage('s', item=Item, value=str, items=None, work=None, "
TOLD = f"""return Benchmark(
            name="books", version=1, load=None, score=None, options=Options,
            stages=(
                {STAGE}roles=("candidate", "reader"), judges=("judge",)),
                {STAGE}roles=("finder",), when=lambda data, options: True),
            ),
            metrics={{{{
                "right": Metric(description="share of books"),
                "wrong": Metric(description="books too many", higher_is_better=False),
            }}}},
            main=("wrong",),
            description="Foresee what is read.", {{more}}
        )"""
PAGE = """\
task:
  books_two, version 3  Which book is next.
about:
  file  {file}
  over  books_one
  tags  paper
benchmark:
  books  {about}
metrics, the main ones with *:
    right ↑  share of books
  * wrong ↓  books too many
options:
  shelf         new (default old); where it stands (new, old)
  most          null
  weights.near  2.0 (default 1.0); of books nearby
  weights.far   0.5
roles:
  candidate  --model; max_tokens 9
  reader     the candidate, or --role reader=SPEC
  judge      fake:big, or --judge SPEC
  finder     --role finder=SPEC; if data and options need it
data:
  hub     acme/books
  sample  --data sample
  size    1,200
  tables  read, written (optional)
"""


@pytest.mark.parametrize(
    ("more", "about"),
    [
        ("", "Foresee what is read"),
        ("paper='https://x.org/1',", "Foresee what is read; paper: https://x.org/1"),
        ("paper='X 1', licence='CC0'", "Foresee what is read; paper: X 1; licence: CC0"),
    ],
)
def test_a_task_named_in_full_is_shown_alone_with_all_that_it_is(
    books, capsys, monkeypatch, more, about
):
    monkeypatch.setenv("COLUMNS", "400")
    file = books.folder / "books_made_up/plugin.py"
    file.write_text(dedent(BENCHMARK).format(made=TOLD.format(more=more)))
    (books.folder / "books_made_up/task_configs/more.yaml").write_text(
        "task: books_two_more\nextends: books_one\n"
    )
    assert main(["tasks", "books_two"]) == 0
    task_file = books.folder / "books_made_up/task_configs/two.yaml"
    assert capsys.readouterr().out == PAGE.format(about=about, file=task_file)


def test_a_task_that_cannot_be_read_is_listed_with_what_is_wrong(books, printed):
    (books.folder / "books_made_up/task_configs/bad.yaml").write_text("task: bad\ntags: [x]\n")
    said = printed("tasks", "bad")
    assert said.out == "tasks:\n  bad\n"
    assert "bad.yaml" in said.err


def test_the_json_tells_of_the_benchmark_of_a_task_named_in_full(books, printed):
    file = books.folder / "books_made_up/plugin.py"
    file.write_text(dedent(BENCHMARK).format(made=TOLD.format(more="paper='X 1'")))
    assert json.loads(printed("tasks", "books_one", "books_two", "--json").out)["benchmarks"] == [
        {"name": "books", "description": "Foresee what is read.", "paper": "X 1", "licence": ""}
    ]


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


def test_many_tasks_of_one_file_are_one_line_until_they_are_asked_for(books, capsys):
    file = books.folder / "books_made_up/task_configs/grid.yaml"
    file.write_text(GRID)
    main(["tasks", "--all"])
    # How wide the columns are depends on what else is installed.
    said = " ".join(capsys.readouterr().out.split())
    assert " books_{level}_{n} 14 tasks: Which book is next, {level}. " in said
    assert "books_easy_1" not in said
    assert " grid books_{level}_{n} " in said
    assert " paper books_{level}_{n}, books_one, books_two" in said
    for pattern in ("books_e*", "grid", "books_{level}_{n}"):
        main(["tasks", pattern])
        said = capsys.readouterr().out
        assert "  books_easy_1  Which book is next, easy.\n" in said, pattern
        assert "{n}" not in said
    main(["tasks", "--json"])
    listed = [one["name"] for one in json.loads(capsys.readouterr().out)["tasks"]]
    assert len([name for name in listed if name.startswith(("books_easy", "books_hard"))]) == 14
    file.write_text(GRID.replace("1, 2, 3, 4, 5, 6, 7", "1, 2"))
    main(["tasks", "--all"])
    assert "books_easy_1" in capsys.readouterr().out
