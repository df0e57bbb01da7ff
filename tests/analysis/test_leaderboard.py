"""Which runs stand on which page of a leaderboard, and what the pages hold."""

import json

import pytest
from builders.runs import keep_task, make_metric, make_summary, make_task
from builders.stages import make_benchmark, make_stage

from harness.analysis.leaderboard import leaderboard
from harness.contracts.benchmark import Metric
from harness.contracts.records import Score
from harness.reporting.leaderboard_files import site_files, write_site
from harness.reporting.leaderboard_sheets import board_report, index_parts
from harness.runs.manifest import RoleEntry, Session

BENCHMARK = make_benchmark(
    make_stage("ask", roles=("candidate",)), metrics={"good": Metric(description="how good")}
)


@pytest.fixture
def run(tmp_path):
    """A finished run, where each person's value is the one given, or it and some noise."""

    def of(name, value, *, task="t", model=None, revision="", day=1, why=(), seed=0, tags=None):
        made = make_task(task, metrics=("good",))
        details = {"revision": revision} if revision else {}
        about = {"kind": "openai", "name": model or name, "details": details}
        scores = [
            Score(id=f"u{n}", user=f"u{n}", values={"good": value + n % 7 / 10}) for n in range(20)
        ]
        summary = make_summary(
            task, comparable=not why, not_comparable_because=why, seed=seed,
            metrics={"good": make_metric(value + 0.3, n=20)},
        )  # fmt: skip
        return keep_task(
            tmp_path / name, made, entry={"data": {"fingerprint": "f"}}, scores=scores,
            benchmark=BENCHMARK, summary=summary, model=f"openai:{model or name}", name=name,
            seed=seed, roles={"candidate": RoleEntry(name=name, identity={"model": about})},
            sessions=(Session(started=f"2026-01-{day:02}T00:00:00Z"),), tags=tags or {},
        )  # fmt: skip

    return of


def ranks(board):
    return {
        one.entry.model: (one.ranks.best, one.ranks.worst, one.entry.run) for one in board.ranked
    }


def test_of_each_model_the_newest_run_is_ranked_and_the_others_are_its_history(run):
    (board,) = leaderboard([
        run("a2", 0.7, model="a", revision="r2", day=3),
        run("a1", 0.5, model="a", revision="r1", day=1),
        run("b1", 0.6, model="b", day=2),
    ]).boards  # fmt: skip
    assert ranks(board) == {"a": (1, 1, "a2"), "b": (2, 2, "b1")}
    (steps,) = board.history.values()
    names = [figure.marks[0].names for figure in board_report(board).figures]
    assert names == [("a", "b"), ("r1 2026-01-01", "r2 2026-01-03")]
    assert [step.entry.revision for step in steps] == ["r1", "r2"]
    assert steps[0].difference is None
    assert steps[1].difference.value == pytest.approx(0.2)
    assert (steps[1].difference.first, steps[1].difference.second) == ("a2", "a1")


def test_the_steps_of_a_history_are_adjusted_for_all_of_them(run):
    (board,) = leaderboard([
        run(f"a{day}", value, model="a", day=day) for day, value in enumerate((0.5, 0.7, 0.7), 1)
    ]).boards  # fmt: skip
    first, second = (step.difference for step in board.history["a"][1:])
    assert (first.p_holm, second.p) == (pytest.approx(2 * first.p), 1.0)


def test_a_tag_says_which_model_checkpoints_are_of(run):
    tags = {"model": "night"}
    (board,) = leaderboard([
        run("night-01", 0.5, day=1, tags=tags), run("night-02", 0.5, day=2, tags=tags),
        run("other", 0.5),
    ]).boards  # fmt: skip
    assert ranks(board) == {"night": (1, 2, "night-02"), "other": (1, 2, "other")}
    assert [step.entry.revision for step in board.history["night"]] == ["night-01", "night-02"]


def test_runs_that_cannot_stand_together_are_on_pages_apart_with_why(run):
    found = leaderboard([
        run("a", 0.5), run("b", 0.6), run("c", 0.6, seed=1),
        run("d", 0.9, why=("--limit 20",)),
    ])  # fmt: skip
    first, other, unstamped = found.boards
    assert [set(ranks(board)) for board in found.boards] == [{"a", "b"}, {"c"}, {"d"}]
    assert first.page == "t"
    assert [each.runs for each in first.apart] == [("c",), ("d",)]
    assert first.apart[0].because == ("seed 1 against 0",)
    assert first.apart[1].because == (
        "these are not comparable with published results: --limit 20",
    )
    assert {each.page for each in first.apart} == {other.page, unstamped.page}
    files = site_files(found)
    titles = {name: json.loads(files[name]).get("title") for name in files if "json" in name}
    assert "<title>NOT COMPARABLE" in files[f"{unstamped.page}.html"]
    assert titles[f"{unstamped.page}.json"] == "NOT COMPARABLE with published results: t: good"
    assert titles["t.json"] == "t (seed 0): good"
    (stamped, plain) = board_report(unstamped).notes[0], board_report(first).notes[0]
    assert stamped == "NOT COMPARABLE with published results: --limit 20"
    assert "NOT" not in plain
    assert board_report(unstamped).figures[0].stamp == "NOT COMPARABLE: --limit 20"


def test_the_page_over_all_has_ranks_by_task_and_no_order_over_tasks(run):
    found = leaderboard([
        run("a", 0.5), run("b", 0.6), run("a2", 0.5, model="a", task="u"),
        run("c", 0.6, task="u", why=("own data",)),
    ])  # fmt: skip
    (title, good, boards), (stamped, rest, _) = index_parts(found)
    assert (title, stamped) == (
        "Comparable with published results", "NOT COMPARABLE with published results",
    )  # fmt: skip
    assert good.columns == ("task", "metric", "a", "b")
    assert good.rows == (
        ("t", "good ↑", "2 (0.785)", "1 (0.885)"), ("u", "good ↑", "alone (0.785)", None),
    )  # fmt: skip
    assert [board.page for board in boards] == ["t", "u"]
    assert "seed: 0, people: all" in good.notes
    assert rest.rows == (("u", "good ↑", "alone (0.885)"),)
    assert rest.notes[0] == "NOT COMPARABLE: own data"


def test_the_name_of_another_page_of_a_task_says_what_sets_it_apart(run):
    boards = leaderboard([
        run("a", 0.5), run("b", 0.5), run("c", 0.6, seed=1), run("d", 0.6, why=("own data",)),
        run("e", 0.5, task="t-seed-1"),
    ]).boards  # fmt: skip
    pages = {board.ranked[0].entry.run: board.page for board in boards}
    assert (pages["a"], pages["d"], pages["e"]) == ("t", "t-not-comparable", "t-seed-1")
    # A task has the name that the page would have, so that a hash tells them apart.
    assert pages["c"].startswith("t-seed-1-") and len(pages["c"]) == len("t-seed-1-") + 8
    assert [board.differs for board in boards if board.task == "t"] == [
        "seed 0", "seed 1", "",
    ]  # fmt: skip


def test_the_same_runs_give_the_same_bytes_in_any_order_and_folder(run, tmp_path):
    runs = [run("a", 0.5), run("b", 0.6, day=2), run("c", 0.55, seed=1)]
    once = site_files(leaderboard(runs))
    assert site_files(leaderboard(reversed(runs))) == once
    assert str(tmp_path) not in "".join(once.values())


def test_pages_of_an_earlier_leaderboard_are_removed_and_other_files_stay(run, tmp_path):
    site = tmp_path / "site"
    write_site(site, leaderboard([run("a", 0.5), run("b", 0.5, task="u")]))
    (site / "notes.txt").write_text("mine")
    (site / "mine.json").write_text("{}")
    write_site(site, leaderboard([run("a", 0.5)]))
    names = {path.name for path in site.iterdir() if path.suffix != ".html"}
    assert names == {"index.json", "t.json", "notes.txt", "mine.json"}


def test_repeats_and_tasks_that_cannot_be_compared_are_left_out_with_why(run):
    found = leaderboard([run("a", 0.5), run("a3", 0.5, task="t@2")], {"z, t": "it is unfinished"})
    assert found.left_out["z, t"] == "it is unfinished"
    assert len(found.left_out) == 2
