import json
from textwrap import dedent

import pytest

from harness.cli.main import main

LISTED = {
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
def listed(site, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    site.install("book-benchmark", {"books": "books_made_up.plugin"}, LISTED)
    return site


def test_what_there_is_fits_one_screen(printed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = printed("tasks").out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert lines[-1] == "`harness tasks NAME` describes one, `harness tasks --all` describes all"


def test_tags_globs_and_parts_of_names_choose_what_is_listed_and_groups_members(listed, printed):
    said = "tasks:\n  books_one  Which book is next.\n  books_two  Which book is next.\n"
    for pattern in ("tag:paper", "paper", "books_*", "books_"):
        assert printed("tasks", pattern).out == said
    (listed.folder / "books_made_up/task_configs/more.yaml").write_text(
        "task: books_of_others\nextends: books_one\n"
    )
    assert printed("tasks", "books").out == f"{said}groups:\n  books  (books_one, books_two)\n"


BENCHMARK = """
    from harness import Benchmark, hookimpl

    @hookimpl
    def register_benchmarks(register):
        register("books", make)

    def make():
        {made}
"""


def test_the_paper_and_the_licence_of_a_benchmark_are_shown(listed, printed):
    told = "metrics={}, description='Foresee what is read.', paper='X 1', licence='CC0'"
    made = "return Benchmark(name='books', version=1, load=None, score=None, stages=(), "
    file = listed.folder / "books_made_up/plugin.py"
    file.write_text(dedent(BENCHMARK).format(made=f"{made}{told})"))
    said = printed("tasks", "books_two").out
    assert "\n  books  Foresee what is read; paper: X 1; licence: CC0\n" in said


def test_a_task_that_cannot_be_read_is_listed_with_what_is_wrong(listed, printed):
    (listed.folder / "books_made_up/task_configs/bad.yaml").write_text("task: bad\ntags: [x]\n")
    said = printed("tasks", "bad")
    assert said.out == "tasks:\n  bad\n"
    assert "bad.yaml" in said.err


def test_only_the_benchmarks_of_tasks_named_in_full_are_made(listed, printed):
    file = listed.folder / "books_made_up/plugin.py"
    file.write_text(dedent(BENCHMARK).format(made="1 / 0"))
    assert printed("tasks", "books_t", "books").err == ""
    said = printed("tasks", "books_two")
    assert said.out.startswith("task:\n  books_two, version 3  Which book is next.\n")
    assert "  weights.near  2.0\n" in said.out
    assert "ZeroDivisionError" in said.err


def test_broken_plugins_and_files_are_named_beside_the_list(listed, printed):
    files = {"bad/plugin.py": "1 / 0", "bad/task_configs/torn.yaml": "tags: [a]] b"}
    listed.install("bad", {"bad": "bad.plugin"}, files)
    said = printed("tasks")
    assert "books_one" in said.out
    first, second, *_ = said.err.splitlines()
    assert first == (
        "harness: plugin 'bad' of bad could not be loaded: ZeroDivisionError: division by zero"
    )
    torn = f"{listed.folder}/bad/task_configs/torn.yaml"
    assert second == f"harness: {torn}:1:10: the file is not valid YAML"


GRID = """
task: books_{level}_{n}
extends: books_one
matrix: {level: [easy, hard], n: [1, 2, 3, 4, 5, 6, 7]}
description: Which book is next, {level}.
tags: [paper, grid]
"""


def test_many_tasks_of_one_file_are_one_line_until_they_are_asked_for(listed, printed):
    file = listed.folder / "books_made_up/task_configs/grid.yaml"
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
    names = [one["name"] for one in json.loads(printed("tasks", "--json").out)["tasks"]]
    assert len([name for name in names if name.startswith(("books_easy", "books_hard"))]) == 14
    file.write_text(GRID.replace("1, 2, 3, 4, 5, 6, 7", "1, 2"))
    assert "books_easy_1" in printed("tasks", "--all").out


PLUGIN = """
    from harness import (
        Benchmark, Item, Metric, Parsed, Select, Selected, Stage, TextReader, hookimpl,
    )
    import msgspec

    class Options(msgspec.Struct):
        window: int = 20

    class Reader(Item, frozen=True, kw_only=True):
        history: str

    def load(dataset, options):
        return dataset.choose(row["user"] for _, row in dataset.table("read").rows())

    def readers(upstreams, data, options):
        for user in data:
            yield Reader(id=user, user=user, history="Emma")

    async def guess(item, desk):
        given = {"history": item.history}
        answer = await desk.ask("candidate", "guess", given, read=TextReader())
        return answer.value if isinstance(answer, Parsed) else answer

    def checks(upstreams, data, options):
        return [item for item, _ in upstreams["guess"].values()]

    async def check(item, desk):
        verdict = await desk.judge(Select(prompt="check", subject="x", options=("y",)))
        return str(verdict.chosen) if isinstance(verdict, Selected) else verdict

    @hookimpl
    def register_benchmarks(register):
        register("books", lambda: Benchmark(
            name="books", version=1, load=load, score=None, options=Options,
            stages=(
                Stage("guess", item=Reader, value=str, items=readers, work=guess,
                      roles=("candidate",)),
                Stage("check", item=Reader, value=str, items=checks, work=check,
                      judges=("judge",), after=("guess",)),
            ),
            metrics={"hits": Metric(description="")},
        ))

    @hookimpl
    def register_respondents(register):
        register("books", "guess", "candidate", lambda: lambda variables, random: "A guess")
"""

FILES = {
    "books_made_up/plugin.py": PLUGIN,
    "books_made_up/task_configs/one.yaml": """\
        task: one
        version: 1
        benchmark: books
        metrics: [hits]
        data:
          sample: sample
          tables:
            read:
              files: ["*.csv"]
              columns:
                user: {}
                stars: {type: integer}
    """,
    "books_made_up/prompts/books/guess.candidate.j2": "Guess: {{ history }}",
    "books_made_up/prompts/books/check.judge.j2": "Check {{ subject }}.",
    "books_made_up/sample/read.csv": "user,stars\nada,5\n",
}


@pytest.fixture
def books(site, monkeypatch):
    """A sound plugin; the folder of its package is the current one."""
    site.install("book-benchmark", {"books": "books_made_up.plugin"}, FILES)
    monkeypatch.chdir(site.folder / "books_made_up")
    return site.folder / "books_made_up"


@pytest.fixture
def validated(books, capsys):
    """Runs the command: the exit code, the verdicts, and the first line of every error."""

    def validate(*targets):
        code = main(["validate", *targets])
        said = capsys.readouterr()
        lines = [line for line in said.err.splitlines() if line.startswith("harness: ")]
        return code, said.out.splitlines(), [line.removeprefix("harness: ") for line in lines]

    return validate


def test_each_file_is_checked_once(books, validated):
    add(books, "all", "group: all\ntasks: [one]")
    assert validated("all", "one", "task_configs/one.yaml")[1] == [
        "all: ok (task_configs/all.yaml)",
        "one: ok (task_configs/one.yaml)",
    ]


def add(folder, name, text):
    (folder / f"task_configs/{name}.yaml").write_text(text)


def test_everything_wrong_with_a_task_is_told_at_once(books, validated):
    add(
        books,
        "bad",
        "task: bad\nextends: one\nmetrics: [hitz]\noptions: {windw: 1}\n"
        "stages: {gess: {}}\nroles: {juge: {}}\ndata: {sample: elsewhere}\n",
    )
    code, verdicts, errors = validated("bad")
    file = "task_configs/bad.yaml"
    assert code == 2
    assert verdicts == [f"bad: 5 wrong ({file})"]
    assert errors == [
        f"{file}:3:11: the benchmark 'books' has no metric 'hitz'",
        f"{file}:4:11: unknown option `windw` of the benchmark 'books'",
        f"{file}:5:10: the benchmark 'books' has no stage 'gess'",
        f"{file}:6:9: the benchmark 'books' has no role 'juge'",
        f"{file}:7:16: {books}/elsewhere: the bundled sample of task 'bad' is not installed",
    ]


def test_a_misspelt_hook_of_the_benchmarks_plugin_is_told(books, printed):
    with (books / "plugin.py").open("a") as file:
        file.write("\n@hookimpl\ndef register_metrix(register):\n    pass\n")
    said = printed("validate", "one", code=2)
    assert said.out.splitlines() == ["one: 1 wrong (task_configs/one.yaml)"]
    assert "register_metrix" in said.err


def test_a_run_tells_all_that_does_not_fit_the_benchmark(books, printed):
    add(books, "bad", "task: bad\nextends: one\noptions: {window: x}\nmetrics: [hitz]\n")
    said = printed("--model", "baseline", "--tasks", "bad", "--data", "sample", code=2).err
    file = "task_configs/bad.yaml"
    assert f"harness: {file}:3:19: the option `window` is invalid\n" in said
    assert f"\n{file}:4:11: the benchmark 'books' has no metric 'hitz'\n" in said


def test_a_prompt_that_is_not_there_is_told(books, validated):
    (books / "prompts/books/check.judge.j2").unlink()
    code, _, errors = validated("one")
    assert code == 2
    assert errors == ["benchmark books: the stage 'check' has no prompt for the role 'judge'"]


def test_a_bad_row_of_the_sample_is_told(books, validated):
    (books / "sample/read.csv").write_text("user,stars\nada,many\n")
    code, _, (error,) = validated("one")
    assert code == 2
    assert error.startswith(f"task_configs/one.yaml:6:11: {books}/sample/read.csv")


OWN = {
    "files": "data: {tables: {read: {files: [mine.csv]}}}",
    "columns": "data: {tables: {read: {columns: {pages: {type: integer}}}}}",
    "another sample too": "data: {sample: sample, tables: {read: {files: [mine.csv]}}}",
}


@pytest.mark.parametrize("what", OWN)
def test_an_inherited_sample_need_not_fit_the_data_of_a_task(what, books, validated):
    add(books, "mine", f"task: mine\nextends: one\n{OWN[what]}\n")
    code, verdicts, errors = validated("mine")
    if what == "another sample too":
        assert (code, len(errors)) == (2, 1)
        return
    assert (code, errors) == (0, [])
    assert verdicts[0] == "mine: ok (task_configs/mine.yaml)"
    assert verdicts[1].startswith("  not rehearsed: its base's sample does not fit its data: ")


def test_a_rehearsal_on_an_inherited_sample_may_lack_data(books, validated):
    text = (books / "plugin.py").read_text()
    (books / "plugin.py").write_text(text.replace("row in dataset", "row in [] and dataset"))
    add(books, "mine", "task: mine\nextends: one\ndata: {folder: mine}\n")
    (books / "task_configs/mine").mkdir()
    (books / "task_configs/mine/read.csv").write_text("user,stars\nada,5\n")
    assert validated("one")[0] == 2
    code, verdicts, errors = validated("mine")
    assert (code, errors) == (0, [])
    assert "leaves no users to choose from" in verdicts[1]
    (books / "task_configs/mine/read.csv").write_text("user,stars\nada,many\n")
    assert validated("mine")[0] == 2


def test_every_task_of_a_matrix_is_checked_and_what_they_share_told_once(books, validated):
    add(books, "grid", "task: g_{window}\nextends: one\nmetrics: [hitz]\nmatrix: {window: [1, x]}")
    file = "task_configs/grid.yaml"
    assert validated(file) == (
        2,
        [f"g_1: 1 wrong ({file})", f"g_x: 2 wrong ({file})"],
        [
            f"{file}:3:11: the benchmark 'books' has no metric 'hitz'",
            f"{file}:4:22: the option `window` is invalid",
        ],
    )


def test_a_group_is_checked_with_its_members(books, validated):
    add(books, "bad", "task: bad\nextends: one\nversion: 0")
    add(books, "all", "group: all\ntasks: [one, bad]")
    add(books, "lost", "group: lost\ntasks: [one, twoo]")
    code, verdicts, errors = validated("all", "lost")
    assert code == 2
    found = [line.partition(" (")[0] for line in verdicts]
    assert found == ["all: ok", "one: ok", "bad: 1 wrong", "lost: 1 wrong"]
    assert errors == [
        "task_configs/bad.yaml:3:10: `version` is invalid",
        "task_configs/lost.yaml:2:14: no task, group or tag is called 'twoo'",
    ]


def test_what_is_not_there_does_not_keep_the_rest_from_being_checked(validated):
    code, verdicts, errors = validated("nothing_at_all", "one")
    assert code == 2
    assert verdicts == ["one: ok (task_configs/one.yaml)"]
    assert errors == ["no task, group or tag is called 'nothing_at_all'"]


REHEARSED = {
    "a variable that nobody gives": (
        ("prompts/books/guess.candidate.j2", "{{ history }}", "{{ histories }}"),
        "one/guess: a prompt of this stage cannot be rendered",
        "needs the variable 'histories', which was not given",
    ),
    "a judge's variable that nobody gives": (
        ("prompts/books/check.judge.j2", "{{ subject }}", "{{ object }}"),
        "one/check: a prompt of this stage cannot be rendered",
        "needs the variable 'object', which was not given",
    ),
    "a prompt that only the code names": (
        ("plugin.py", '"candidate", "guess"', '"candidate", "gues"'),
        "one/guess: a prompt of this stage cannot be rendered",
        "stage 'guess' has no prompt 'gues' for the role 'candidate'",
    ),
    "a prompt that only the stage names": (
        ("plugin.py", 'roles=("candidate",)', 'roles=("candidate",), prompts=("guess", "again")'),
        "benchmark books: the stage 'guess' names a prompt that does not exist",
        "prompts/books/again.candidate.j2",
    ),
    "records of a stage that is not in after": (
        ("plugin.py", ', after=("guess",)', ""),
        "stage 'check' reads the records of a stage that is not in its `after`",
        "write after=('guess',) in the Stage",
    ),
    "a stage whose code breaks": (
        ("plugin.py", '{"history": item.history}', '{"history": item.histories}'),
        "one/guess: the code of this stage breaks for every item of the rehearsal",
        "AttributeError: 'Reader' object has no attribute 'histories', at ",
    ),
    "data that cannot be loaded": (
        ("plugin.py", "return dataset.choose(", "return 1 / 0, dataset.choose("),
        "task one, sample data: sample: the benchmark 'books' cannot load its data",
        "ZeroDivisionError: division by zero",
    ),
}


@pytest.mark.parametrize("what", REHEARSED)
def test_what_is_wrong_in_the_code_of_a_benchmark_is_found(what, books, printed):
    (name, old, new), problem, part = REHEARSED[what]
    text = (books / name).read_text()
    assert text.count(old) == 1
    (books / name).write_text(text.replace(old, new))
    said = printed("validate", "one", code=2)
    assert said.out == "one: 1 wrong (task_configs/one.yaml)\n"
    assert said.err.startswith(f"harness: {problem}\n")
    assert part in said.err


def test_a_task_whose_roles_no_baseline_suits_is_not_rehearsed(books, printed):
    text = (books / "plugin.py").read_text()
    suits = """
def suits(data, options, identities):
    from harness.base.errors import UsageError
    raise UsageError(f"{identities['candidate'].kind} is no candidate")
"""
    (books / "plugin.py").write_text(
        suits + text.replace("score=None,", "score=None, suits=suits,")
    )
    assert printed("validate", "one").out == (
        "one: ok (task_configs/one.yaml)\n"
        "  not rehearsed: no baseline suits its roles: baseline is no candidate\n"
    )


def test_tasks_that_ask_the_same_share_a_rehearsal(books, validated, monkeypatch):
    from harness.pipeline import forecast

    rehearse, rehearsed = forecast.rehearse, []

    def noted(settings, plugins, prepared):
        rehearsed.append(settings.tasks)
        return rehearse(settings, plugins, prepared)

    monkeypatch.setattr(forecast, "rehearse", noted)
    add(books, "wide", "task: wide\nextends: one\noptions: {window: 30}")
    assert validated("one", "wide")[0] == 0
    assert rehearsed == [("one",)]
