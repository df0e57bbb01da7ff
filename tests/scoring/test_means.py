"""The means of groups and of repeats; the values were worked out by hand."""

import random
import statistics
from typing import Any

import numpy as np
import pytest
from builders.runs import (
    make_entry,
    make_finished_task,
    make_manifest,
    make_metric,
    make_summary,
    make_task,
    write_scores,
)
from builders.stages import make_benchmark
from msgspec.structs import replace as changed

from harness.base.errors import PluginError
from harness.contracts.benchmark import Metric
from harness.contracts.records import Score
from harness.runs.run_folder import RunFolder
from harness.scoring.means import means_of
from harness.scoring.stats import Interval, NoInterval, Part, interval_together

EASY = {"ann": 1.0, "bob": 0.0, "cid": 0.5, "dan": 0.5}
HARD = {"ann": 0.0, "bob": 1.0, "cid": 0.5, "dan": 0.5}
BENCHMARK = make_benchmark(
    metrics={name: Metric(description="") for name in ("hits", "fame", "luck")}
)


class Stored:
    """A stored run whose tasks have these values by user; None for a task without a summary."""

    def __init__(self, path: Any, tasks: dict[str, dict[str, float] | None], **groups: Any) -> None:
        self.path = path
        entries = {name: make_entry(make_task(name)) for name in tasks}
        self.manifest = make_manifest(tasks=entries, groups=groups)
        self.summaries = [
            make_summary(name, main=("hits",), metrics={"hits": self.result(by_user)})
            for name, by_user in tasks.items()
            if by_user is not None
        ]
        folder = RunFolder(path)
        for name, by_user in tasks.items():
            scores = [Score(id=u, user=u, values={"hits": v}) for u, v in (by_user or {}).items()]
            write_scores(folder, name, scores)

    @staticmethod
    def result(by_user: dict[str, float]) -> Any:
        value = statistics.fmean(by_user.values()) if by_user else None
        return make_metric(value, n=len(by_user))

    def finished(self, name: str) -> Any:
        (summary,) = [each for each in self.summaries if each.task == name]
        return make_finished_task(
            self.path, make_task(name), summary=summary, label="", manifest=self.manifest,
            entry=self.manifest.tasks[name], benchmark=BENCHMARK,
        )  # fmt: skip

    def means(self) -> Any:
        return means_of(self.manifest, self.summaries, self.finished)


def test_users_are_drawn_together_in_a_mean_unless_the_file_of_the_group_wants_none(tmp_path):
    stored = Stored(tmp_path, {"easy": EASY, "hard": HARD}, both=("easy", "hard"))
    (mean,) = stored.means()
    assert (mean.name, mean.over, mean.tasks, mean.metric) == (
        "both", "tasks", ("easy", "hard"), "hits",
    )  # fmt: skip
    assert mean.value == 0.5
    # Every user has 0.5 over both tasks, whoever is drawn.
    assert mean.interval == (0.5, 0.5)
    stored.manifest = changed(stored.manifest, without_mean=("both",))
    assert stored.means() == ()


@pytest.mark.parametrize("absent", [None, {}])
def test_a_group_with_a_task_that_has_no_value_has_no_mean_and_says_why(tmp_path, absent):
    stored = Stored(tmp_path, {"easy": EASY, "hard": absent}, both=("easy", "hard"))
    (mean,) = stored.means()
    assert (mean.value, mean.interval) == (None, None)
    assert mean.undefined == "1 of 2 tasks have no value"


@pytest.mark.parametrize(
    ("easy", "hard", "shared"),
    [(("hits",), ("fame",), []), (("hits", "fame", "luck"), ("hits", "luck"), ["hits", "luck"])],
)
def test_a_mean_is_of_the_main_metrics_that_all_tasks_have(tmp_path, easy, hard, shared):
    stored = Stored(tmp_path, {"easy": EASY, "hard": HARD}, both=("easy", "hard"))
    stored.summaries = [
        changed(one, main=main, metrics=dict.fromkeys(main, one.metrics["hits"]))
        for one, main in zip(stored.summaries, (easy, hard), strict=True)
    ]
    assert [each.metric for each in stored.means()] == shared


def test_the_interval_weighs_repeats_by_their_number_as_the_value_does(tmp_path):
    # The first task has two repeats and the second one, so that a repeat of the first weighs a
    # quarter and the second task a half: every user has 1/4 * (0 + 1) + 1/2 * 1 = 0.75.
    low, high = dict.fromkeys(EASY, 0.0), dict.fromkeys(EASY, 1.0)
    tasks = {"easy": low, "hard": high, "easy@2": high}
    both, easy = Stored(tmp_path, tasks, both=("easy", "hard")).means()
    assert (both.name, both.value, both.interval) == ("both", 0.75, (0.75, 0.75))
    assert (easy.name, easy.value, easy.interval) == ("easy", 0.5, (0.5, 0.5))


def test_scores_that_cannot_be_had_leave_the_mean_without_an_interval(tmp_path):
    def lost(name: str) -> Any:
        raise PluginError(f"no scores of {name}")

    stored = Stored(tmp_path, {"easy": EASY, "hard": HARD}, both=("easy", "hard"))
    (mean,) = means_of(stored.manifest, stored.summaries, lost)
    assert (mean.value, mean.interval, mean.no_interval) == (0.5, None, "no scores of easy")


def test_a_statistic_that_fails_in_a_draw_leaves_the_mean_without_an_interval(
    tmp_path, monkeypatch
):
    def fails(values: Any) -> float:
        raise KeyError("no such value")

    monkeypatch.setitem(BENCHMARK.metrics, "hits", Metric(description="", statistic=fails))
    (mean,) = Stored(tmp_path, {"easy": EASY, "hard": HARD}, both=("easy", "hard")).means()
    assert (mean.value, mean.interval) == (0.5, None)
    assert "fails: the statistic of a metric failed" in mean.no_interval


def part(by_user: dict[int, list[float]], **more: Any) -> Part:
    values = [value for each in by_user.values() for value in each]
    users = [user for user, each in by_user.items() for _ in each]
    usual: dict[str, Any] = {"statistic": "mean", "weight": 0.5}
    return Part(values=np.array(values), clusters=np.array(users), **{**usual, **more})


@pytest.mark.parametrize("statistic", ["mean", "median", statistics.fmean])
def test_the_interval_is_that_of_a_bootstrap_in_plain_python(statistic):
    generator = random.Random(5)
    first = {user: [generator.random() for _ in range(1 + user % 3)] for user in range(40)}
    second = {user: [3 * generator.random()] for user in range(20, 60)}
    of = statistics.median if statistic == "median" else statistics.fmean
    found = []
    for _ in range(4000):
        users = [generator.randrange(60) for _ in range(60)]
        drawn = [[v for u in users for v in each.get(u, ())] for each in (first, second)]
        found.append(sum(map(of, drawn)) / 2)
    found.sort()
    parts = [part(first, statistic=statistic), part(second, statistic=statistic)]
    interval = interval_together(parts, seed=1, draws=4000)
    assert interval.low == pytest.approx(found[100], abs=0.03)
    assert interval.high == pytest.approx(found[3900], abs=0.03)
    assert interval == interval_together(parts, seed=1, draws=4000)


def test_what_leaves_no_interval_together():
    parts = [part({user: [1.0] for user in range(9)}), part({9: [1.0]})]
    interval = interval_together(parts, seed=1)
    assert "the mean has no value in" in interval.reason
    alone, two = part({1: [1.0]}), part({1: [1.0], 2: [2.0]}, weight=1.0)
    assert interval_together([two], seed=1) == Interval(1.0, 2.0)
    for parts, draws in (([alone, alone], 10), ([two], 0)):
        assert isinstance(interval_together(parts, seed=1, draws=draws), NoInterval)


def test_bca_bounds_of_one_task_are_those_of_the_task_with_the_same_draws():
    values = {user: [float(user % 7) ** 3, 1.0] for user in range(30)}
    whole, halves = [part(values, weight=1.0)], [part(values), part(values)]
    found = [interval_together(each, seed=3, method="bca") for each in (whole, halves)]
    assert isinstance(found[0], Interval)
    assert found[0].low == pytest.approx(found[1].low)
    assert found[0] != interval_together(whole, seed=3)


def test_a_group_inside_a_group_is_spread_out(tmp_path):
    stored = Stored(
        tmp_path, {"a": EASY, "b": HARD, "c": EASY}, whole=("inner", "c"), inner=("a", "b")
    )
    found = [(each.name, each.tasks) for each in stored.means()]
    assert found == [("whole", ("a", "b", "c")), ("inner", ("a", "b"))]
