from pathlib import Path

import pytest
from builders.report_pages import ReportPage
from builders.runs import keep_task, make_metric, make_summary, make_task
from builders.stages import make_benchmark, make_stage

import harness
from harness.base.errors import UsageError
from harness.contracts.benchmark import Metric
from harness.contracts.records import Score
from harness.reporting.html.compared_runs import compared_runs
from harness.reporting.html.rank_page import rank_page
from harness.reporting.html.reported_run import reported_run
from harness.runs.manifest import Session
from harness.runs.run_folder import RunFolder


@pytest.fixture
def run(tmp_path):
    """A finished run, where each person's value is the one given and some noise."""

    def of(name, value, *, task="t", why=(), seed=0, people=20, folder=""):
        scores = [
            Score(id=f"u{n}", user=f"u{n}", values={"good": value + n % 7 / 10})
            for n in range(people)
        ]
        summary = make_summary(
            task, comparable=not why, not_comparable_because=why, seed=seed,
            metrics={"good": make_metric(value + 0.3, n=people)},
        )  # fmt: skip
        finished = keep_task(
            tmp_path / (folder or name), make_task(task, metrics=("good",)), scores=scores,
            entry={"data": {"fingerprint": "f"}}, benchmark=make_benchmark(
    make_stage("ask", roles=("candidate",)), metrics={"good": Metric(description="how good")}
), summary=summary,
            run_id=name, name=name, model=f"openai:{name}", seed=seed,
            sessions=(Session(started="2026-01-01T00:00:00Z"),),
        )  # fmt: skip
        place = RunFolder(tmp_path / (folder or name))
        return reported_run(place, finished.manifest, [finished], label=name)

    return of


def page_of(*runs):
    return ReportPage(rank_page(runs))


def ranks(page):
    """By section the first two cells of each row of its first table."""
    sections = dict.fromkeys(table.section for table in page.tables)
    return [
        [row[:2] for row in page.of(section)[0].rows]
        for section in sections
        if section.startswith("ranks-")
    ]


def test_ranks_are_intervals_of_paired_differences(run):
    # With the same noise for each person, 0.6 is better than 0.5 for all 20: p = 2/2^20.
    page = page_of(run("a", 0.5), run("b", 0.6), run("c", 0.5))
    assert ranks(page) == [[["b", "1"], ["a", "2–3"], ["c", "2–3"]]]
    assert page.of("ranks-1")[-1].rows[0][:2] == ["a − b", "-0.100"]
    # Of four people one in 16 exchanges is as large: no order.
    few = page_of(*(run(name, 0.5 + at / 10, people=4) for at, name in enumerate("xyz")))
    assert [rank for _, rank in ranks(few)[0]] == ["1–3", "1–3", "1–3"]


def test_runs_that_cannot_stand_together_are_apart_with_why(run):
    page = page_of(run("a", 0.5), run("b", 0.6), run("c", 0.6, seed=1), run("d", 0.5, task="u"))
    assert ranks(page) == [[["b", "1"], ["a", "2"]], [["c", "alone"]], [["d", "alone"]]]
    assert "Apart from the runs before: seed 1 against 0" in page.texts["ranks-2"]
    (everything,) = page.of("all")
    assert everything.head == ["task", "a", "b", "c", "d"]
    assert everything.rows == [
        ["t: good ↑", "2 (0.785)", "1 (0.885)", "—", "—"],
        ["t: good ↑, apart: c", "—", "—", "alone (0.885)", "—"],
        ["u: good ↑", "—", "—", "—", "alone (0.785)"],
    ]
    assert "no order over all tasks" in page.texts["all"]


def test_a_base_that_cannot_be_compared_leaves_the_others_compared_with_the_best(run):
    runs = [run("a", 0.5), run("b", 0.6), run("c", 0.7), run("old", 0.4)]
    unlike = run("unlike", 0.4, seed=1)

    def pairs(*more, base):
        (one,) = compared_runs([*runs, *more], bases=[base]).document.comparisons
        return [(each.first, each.second) for each in one.differences]

    assert pairs(base="old") == [("a", "old"), ("b", "old"), ("c", "old")]
    assert pairs(unlike, base="unlike") == [("a", "c"), ("b", "c"), ("old", "c")]


def test_of_many_runs_the_table_over_all_tasks_names_the_first_three(run):
    runs = [run(f"r{n}", n / 10) for n in range(7)]
    page = page_of(*runs, run("other", 0.5, task="u"))
    first_three = "r6 1 (0.885), r5 2 (0.785), r4 3 (0.685)"
    assert page.of("all")[0].rows[0] == ["t: good ↑", "7", first_three]


def test_a_stamp_copies_and_repeats_are_named(run):
    page = page_of(
        run("a", 0.5, why=("own data",)), run("a", 0.5, folder="copy"), run("a2", 0.5, task="t@2")
    )
    assert ranks(page) == [[["a", "alone"]]]
    assert "NOT COMPARABLE with published results: own data" in page.texts["ranks-1"]
    assert "t: 1 left out as a copy of another run here" in page.texts["left-out"]
    assert "Of the repeats of a2 the first one is ranked." in page.texts["left-out"]


def test_the_command_writes_the_page_and_escapes_it(tmp_path, monkeypatch, printed, exits):
    monkeypatch.chdir(tmp_path)
    folder = harness.evaluate(
        "interests", model="baseline", judge="lexical", data="sample", limit=4, name="one",
        output_path=tmp_path, reuse="run", quiet=True,
    ).folder  # fmt: skip
    title = "<script>alert(1)</script>\u202e"
    said = printed("report", str(folder), "--rank", "--title", title, "-o", "ranks.html")
    assert said.out.startswith("ranks.html")
    text = Path("ranks.html").read_text()
    assert "<script>alert" not in text and "\u202e" not in text
    page = ReportPage(text)
    assert page.of("ranks-1")[0].rows[0][:2] == ["one", "alone"]
    assert "script" not in [name for name, _ in page.elements]
    for more in ("--by history", "--samples 3"):
        exits(2, UsageError, f"report {folder} --rank {more}", where="--rank")
    exits(2, UsageError, "leaderboard runs -o site")
    assert "`--samples N` says how many" in exits(2, UsageError, f"report {folder} --max_size 3")
