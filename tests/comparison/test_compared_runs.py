"""Comparisons by slice, of means and of tasks, changed units, gates and reports, by hand.

Six people, and their hits in two runs:

    person  ann  bob  cid  dan  eve  fay
    old      0    0    1    0    1    0        mean 2/6
    new      1    1    1    1    0    0        mean 4/6
"""

import io
import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.runs import (
    make_entry,
    make_finished_task,
    make_line,
    make_manifest,
    make_metric,
    make_summary,
    make_task,
    write_journal,
    write_scores,
)
from builders.stages import make_benchmark
from builders.texts import lines_on
from msgspec.structs import replace as changed
from rich.console import Console

from harness.base.errors import DataError, UsageError
from harness.base.hashing import stable_int
from harness.cli.compare import exit_code
from harness.comparison.compare_runs import compare_methods, compare_tasks
from harness.comparison.document import ComparisonDocument, least_seen
from harness.comparison.gates import GatedRun, gates_of, metrics_by_task, with_gates
from harness.contracts.benchmark import Metric
from harness.contracts.outcomes import Unreadable
from harness.contracts.records import Score
from harness.reporting.comparison_tables import print_comparison, print_gates
from harness.runs.manifest import Session, StageEntry
from harness.runs.run_folder import RunFolder

PEOPLE = ("ann", "bob", "cid", "dan", "eve", "fay")
OLD, NEW = (0, 0, 1, 0, 1, 0), (1, 1, 1, 1, 0, 0)
BENCHMARK = make_benchmark(
    metrics={
        "hits": Metric(description=""),
        "middle": Metric(description="", of="hits", statistic="median"),
        "errors": Metric(description="", of="hits", higher_is_better=False),
    }
)
METRICS = tuple(BENCHMARK.metrics)


class Run:
    """A stored run with these values by task and person; None for an unfinished task."""

    def __init__(self, path: Path, name: str, tasks: Mapping[str, Any], **fields: Any) -> None:
        self.slices = fields.pop("slices", {})
        stage = StageEntry(name="ask", key="k" * 32, file="1-ask.jsonl", items=6)
        entries = {
            task: make_entry(make_task(task, metrics=METRICS), stage, data={"fingerprint": "f"})
            for task in tasks
        }
        began = Session(started="2026-01-01T00:00:00Z")
        self.manifest = make_manifest(
            run_id=name, model=name, tasks=entries, sessions=(began,), **fields
        )
        self.folder = RunFolder(path / name)
        self.kept = [self.task(name, each) for name, each in tasks.items() if each is not None]
        self.tasks = dict(zip((one.task.name for one in self.kept), self.kept, strict=True))

    def task(self, name: str, values: Mapping[str, float]) -> Any:
        slices = {"slices": self.slices} if self.slices else {}
        scores = [
            Score(id=f"{user}-1", user=user, values={"hits": float(value)},
                  **{what: {"part": of[user]} for what, of in slices.items()})
            for user, value in values.items()
        ]  # fmt: skip
        write_scores(self.folder, name, scores)
        value = float(np.mean(list(values.values())))
        results = {one: make_metric(value, n=len(values)) for one in METRICS}
        return make_finished_task(
            self.folder.path, make_task(name, metrics=METRICS), label=self.manifest.model,
            manifest=self.manifest, entry=self.manifest.tasks[name], benchmark=BENCHMARK,
            summary=make_summary(name, main=("hits",), metrics=results),
        )  # fmt: skip

    @property
    def gated(self) -> GatedRun:
        benchmarks = dict.fromkeys(self.manifest.tasks, BENCHMARK)
        return GatedRun(self.manifest.model, self.manifest, benchmarks, frozenset(self.tasks))


def by_person(values: Any, people: Any = PEOPLE) -> dict[str, float]:
    return dict(zip(people, values, strict=True))


def two_runs(path: Path, old: Any = OLD, new: Any = NEW, **fields: Any) -> list[Run]:
    """The new run and the old one, of one task `t` or of the tasks of `new` and `old`."""
    given = [each if isinstance(each, dict) else {"t": by_person(each)} for each in (new, old)]
    return [
        Run(path, name, each, **fields) for name, each in zip(("new", "old"), given, strict=True)
    ]


def document_of(runs: list[Run], **options: Any) -> Any:
    return compare_tasks((task for run in runs for task in run.kept), **options).document()


def bootstrap(gaps: np.ndarray, *seed: Any) -> tuple[float, float]:
    """The 95% interval of the mean gap of six people, drawn as the comparison draws them."""
    ordered = gaps[np.argsort([stable_int(user) for user in PEOPLE])]
    random = np.random.Generator(np.random.PCG64(stable_int(*seed)))
    drawn = ordered[random.integers(0, 6, size=(2000, 6), dtype=np.uint32)]
    low, high = np.quantile(drawn.mean(axis=1), (0.025, 0.975))
    return pytest.approx((float(low), float(high)))


def exchanged(gaps: np.ndarray) -> float:
    """The p value over all 64 exchanges."""
    signs = np.array(list(itertools.product((1, -1), repeat=6)))
    means = np.abs((signs * gaps).mean(axis=1))
    return float((means >= abs(gaps.mean()) - 1e-9).mean())


def test_the_changed_units_are_counted_and_listed_with_their_commands(tmp_path):
    runs = two_runs(tmp_path, old=(0.0, 0.5, 1, 0, 1, 0), new=(1.0, 1, 1, 0.25, 0, 0))
    item = {"id": "ann-1", "user": "ann"}
    write_journal(
        tmp_path / "new" / "t" / "1-ask.jsonl",
        make_line(1, item, Unreadable(cause="x"), stage="k" * 32),
        make_line(2, {"id": "q", "user": "eve"}, Unreadable(cause="x"), stage="k" * 32),
    )
    (comparison,) = document_of(runs).comparisons
    (difference,) = comparison.differences
    gaps = np.array(NEW, float) * (1, 1, 1, 0.25, 1, 1) - (0, 0.5, 1, 0, 1, 0)
    assert difference.value == pytest.approx(gaps.mean())
    assert difference.interval == bootstrap(gaps, "paired", 0, "t", "hits")
    assert difference.p == pytest.approx(exchanged(gaps))
    (units,) = comparison.changed
    assert (units.better, units.worse, units.same) == (3, 1, 2)
    found = [(one.unit, one.first, one.second) for one in units.largest]
    assert found == [("ann-1", 1, 0), ("eve-1", 0, 1), ("bob-1", 1, 0.5), ("dan-1", 0.25, 0)]
    ours, theirs = (f"harness show {tmp_path / name} --task t" for name in ("new", "old"))
    # An item, all of a person where the unit is no item, and the task where neither is recorded.
    assert [one.commands for one in units.largest[:3]] == [
        (f"{ours} --sample ann-1", theirs), (f"{ours} --sample eve", theirs), (ours, theirs),
    ]  # fmt: skip
    lower = document_of(runs, metrics=("errors",)).comparisons[0].changed[0]
    assert (lower.better, lower.worse) == (1, 3)


def test_a_third_run_hides_no_changed_unit_of_two_others(tmp_path):
    runs = [*two_runs(tmp_path), Run(tmp_path, "few", {"t": {"ann": 0}})]
    (comparison,) = document_of(runs, against="old").comparisons
    assert [(one.first, one.n) for one in comparison.differences] == [("new", 6), ("few", 1)]
    found = [(one.first, one.better, one.worse, one.same) for one in comparison.changed]
    assert found == [("new", 3, 1, 2), ("few", 0, 0, 1)]


def test_slices_of_few_people_have_no_interval_and_their_tests_are_adjusted_with_all(tmp_path):
    people = [f"p{number}" for number in range(24)]
    part = {one: "21-100" if place < 20 else "6-20" for place, one in enumerate(people)}
    part |= {"p22": "1-5"}
    old = by_person([place % 2 for place in range(24)], people)
    new = by_person([1] * 22 + [0, 0], people)
    runs = [Run(tmp_path, "new", {"t": new}, slices=part | {"p23": "21-100"}),
            Run(tmp_path, "old", {"t": old}, slices=part)]  # fmt: skip
    (comparison,) = document_of(runs, by="part").comparisons
    found = {one.value: one.differences[0] for one in comparison.slices}
    # p23 is in another part in each run, and so in none.
    told = [(value, one.n, one.value) for value, one in found.items()]
    assert told == [("1-5", 1, 0.0), ("6-20", 2, 0.5), ("21-100", 20, 0.5)]
    assert [one.no_interval for one in found.values()] == ["fewer than 20 users"] * 2 + [None]
    assert found["6-20"].p == 1.0
    assert found["1-5"].no_p is not None
    every = [comparison.differences[0], *found.values()]
    values = sorted(one.p for one in every if one.p is not None)
    holm = np.minimum(np.maximum.accumulate(np.array(values) * [3, 2, 1]), 1)
    assert sorted(one.p_holm for one in every if one.p_holm is not None) == pytest.approx(holm)
    large = comparison.slices[2].common["new"]["hits"]
    assert (large.n, large.value, large.interval) == (20, 1.0, (1.0, 1.0))
    assert comparison.slices[0].common["old"]["hits"].no_interval == "fewer than 20 users"
    with pytest.raises(UsageError, match="has a slice 'prt'") as raised:
        document_of(runs, by="prt")
    assert "did you mean 'part'?" in str(raised.value)


GROUPS = {"groups": {"both": ("s", "t")}}
HARD = {"old": (1, 0, 0, 0, 0, 0), "new": (1, 1, 0, 0, 0, 0)}
GAPS = (np.subtract(NEW, OLD) + np.subtract(HARD["new"], HARD["old"])) / 2


def of_a_group(path: Path, **fields: Any) -> list[Run]:
    tasks = [{"s": by_person(each), "t": by_person(HARD[name])}
             for name, each in (("old", OLD), ("new", NEW))]  # fmt: skip
    return two_runs(path, *tasks, **{**GROUPS, **fields})


def test_the_difference_of_a_mean_draws_people_together_is_tested_and_gated(tmp_path):
    document = document_of(runs := of_a_group(tmp_path))
    (mean,) = document.mean_differences
    assert (mean.name, mean.over, mean.tasks) == ("both", "tasks", ("s", "t"))
    (gate,) = gated(runs, "both.hits>-0.5")
    assert gate.holds
    for found in (mean.difference, gate):
        assert found.value == pytest.approx(GAPS.mean())
        assert found.interval == bootstrap(GAPS, *("paired together", 0, "both", "hits"))
    assert (mean.difference.p, mean.difference.exact) == (exchanged(GAPS), True)
    assert (mean.difference.n, mean.difference.users) == (12, 6)
    every = [one.differences[0] for one in document.comparisons] + [mean.difference]
    assert all(one.p_holm == min(1, 3 * one.p) for one in every if one.p < 0.5)


def test_the_mean_of_medians_is_tested_as_it_is_measured(tmp_path):
    runs = of_a_group(tmp_path)
    (mean,) = document_of(runs, metrics=("middle",)).mean_differences
    # Of old 0 0 0 0 1 1 and new 0 0 1 1 1 1 the medians are 0 and 1; of the hard task 0 and 0.
    assert mean.difference.value == 0.5
    old, new = np.array([OLD, HARD["old"]]), np.array([NEW, HARD["new"]])
    found = []
    for way in itertools.product((False, True), repeat=6):
        sides = np.where(way, old, new), np.where(way, new, old)
        ours, theirs = (np.median(side, axis=1).mean() for side in sides)
        found.append(abs(ours - theirs) >= 0.5)
    assert mean.difference.p == pytest.approx(np.mean(found))


def test_repeats_are_compared_over_all_of_them_with_the_deviation(tmp_path):
    runs = two_runs(tmp_path, {"t": by_person(OLD), "t@2": by_person(OLD[::-1])},
                    {"t": by_person(NEW), "t@2": by_person((1, 1, 1, 1, 1, 1))})  # fmt: skip
    document = document_of(runs)
    (mean,) = document.mean_differences
    gaps = (np.subtract(NEW, OLD) + np.subtract(1, OLD[::-1])) / 2
    assert (mean.over, mean.difference.value) == ("repeats", pytest.approx(gaps.mean()))
    assert mean.difference.p_holm == mean.difference.p == exchanged(gaps)
    assert mean.deviations == pytest.approx({"new": np.std([4 / 6, 1], ddof=1), "old": 0.0})
    singles = [one.differences[0] for one in document.comparisons]
    assert [(one.p is None, one.p_holm) for one in singles] == [(False, None)] * 2


def test_of_repeats_the_first_that_is_compared_is_compared_by_slice(tmp_path):
    part = dict.fromkeys(PEOPLE, "all")
    both = {"t": by_person(NEW), "t@2": by_person(OLD)}
    runs = two_runs(tmp_path, both, both, slices=part)
    document = document_of(runs, by="part")
    sliced = [(one.task, bool(one.slices)) for one in document.comparisons]
    assert sliced == [("t", True), ("t@2", False)]
    console = Console(record=True, file=io.StringIO(), width=80)
    print_comparison(document, console)
    said = console.export_text()
    assert "\nt by part, this repeat alone\n" in said
    assert "after Holm for 2 tests" in said, "the mean over repeats, and the part"
    late = two_runs(tmp_path / "2", {**both, "t": None}, both, slices=part)
    (comparison,) = document_of(late, by="part").comparisons
    assert (comparison.task, len(comparison.slices)) == ("t@2", 1)


def test_tasks_of_one_run_are_compared_on_the_same_people_and_what_differs_is_named(tmp_path):
    run = Run(tmp_path, "one", {"a": by_person(NEW), "b": by_person(OLD)})
    a, b = run.kept
    stages = (changed(b.entry.stages[0], components={"version": 2}),)
    b = replace(b, entry=changed(b.entry, stages=stages))
    comparison = compare_methods([a, b], metrics=("hits",)).comparison
    (difference,) = comparison.differences
    assert (difference.first, difference.second) == ("a", "b")
    assert difference.value == pytest.approx(1 / 3)
    assert difference.p == exchanged(np.subtract(NEW, OLD))
    assert comparison.within == "one"
    assert comparison.doubts == ("b against a: ask's version 2 against null",)
    assert comparison.changed[0].largest[0].commands[0].endswith("one --task a")
    foreign = replace(b, task=changed(b.task, benchmark="other"))
    with pytest.raises(UsageError, match="the tasks are not of one benchmark") as raised:
        compare_methods([a, foreign])
    assert raised.value.found == "a of toy, b of other"
    other = changed(b.entry, data={"fingerprint": "another"})
    (refused,) = compare_methods([a, replace(b, entry=other)]).comparison.refused
    assert refused.because == ("data f against another",) or refused.run in ("a", "b")


def gated(runs: list[Run], *gates: str, against: str | None = None) -> list[Any]:
    every = [run.gated for run in runs]
    wanted = gates_of(gates, every)
    document = document_of(runs, gated=metrics_by_task(wanted), against=against)
    return list(with_gates(document, wanted, every, against).gates)


def test_a_gate_is_on_the_interval_and_does_not_hold_on_its_edge(tmp_path):
    gaps = np.array([0.5, 0.5, 0.5, 0.5, 0.25, 0.25])
    runs = two_runs(tmp_path, old=[0] * 6, new=list(gaps))
    (edge,) = gated(runs, "t.hits>0.25")
    low, high = edge.interval
    assert (edge.value, edge.first, edge.second) == (pytest.approx(gaps.mean()), "new", "old")
    below, at, above = gated(
        runs, f"t.hits>{low - 1e-9!r}", f"t.hits>{low!r}", f"t.hits>{low + 1e-9!r}"
    )
    assert [one.holds for one in (below, at, above)] == [True, False, False]
    (upper,) = gated(runs, f"t.errors<{high!r}")
    assert (upper.holds, upper.above, upper.users) == (False, False, 6)


@pytest.mark.parametrize(("gate", "equal"), [("t.hits>-0.6", True), ("t.hits>-0.3", False)])
def test_runs_are_equal_within_a_margin_that_was_given_and_holds_the_interval(
    tmp_path, gate, equal
):
    runs = two_runs(tmp_path, old=[0.5] * 6, new=[0.25, 0.25, 0.5, 0.5, 1, 1])
    (found,) = gated(runs, gate)
    assert found.holds and 0.3 < found.interval[1] < 0.6
    document = changed(document_of(runs), gates=(found,))
    lines = lines_on(lambda console: print_gates(document, console), width=80)
    assert lines[1].endswith(f", equal within {gate.partition('-')[2]}") is equal


def test_the_smallest_difference_that_so_many_people_can_show_is_of_power_80_percent(tmp_path):
    # With a deviation of 0.3, 283 people show 0.05 in 80% of samples, and 1,766 show 0.02.
    assert [round(least_seen(0.3, n), 4) for n in (200, 283, 1766)] == [0.0594, 0.05, 0.02]
    (gate,) = gated(two_runs(tmp_path), "t.hits>0")
    low, high = gate.interval
    assert gate.holds is False
    assert gate.least_seen == pytest.approx((high - low) / 2 * (1.959964 + 0.841621) / 1.959964)


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("both.hit>0", "did you mean 'hits'"),
        ("boht.hits>0", "did you mean 'both'"),
        ("both.hits<0", "hits is better when higher"),
        ("both.errors>0", "errors is better when lower"),
        *((gate, "this is no gate") for gate in ("both.hits>x", "both.hits>1.2.3", "hits>0")),
    ],
)
def test_a_gate_that_cannot_be_meant_is_refused_with_the_nearest_name(tmp_path, gate, said):
    with pytest.raises(UsageError, match=said) as raised:
        gated(of_a_group(tmp_path), gate)
    assert raised.value.exit_code == 2


def test_a_group_without_a_mean_has_no_gate(tmp_path):
    runs = of_a_group(tmp_path, without_mean=("both",))
    with pytest.raises(UsageError, match="a mean over its tasks means nothing"):
        gated(runs, "both.hits>0")


def test_a_gate_is_undecided_for_what_is_unfinished_repeats_too_or_unlike(tmp_path):
    new, old = of_a_group(tmp_path)
    half = Run(tmp_path, "half", {"s": by_person(NEW), "t": None}, **GROUPS)
    done, cut = gated([new, old, half], "both.hits>-0.9", against="old")
    assert (done.holds, done.first) == (True, "new")
    assert (cut.holds, cut.undecided) == (None, "half has not finished t")
    unlike = Run(tmp_path, "unlike", {"t": by_person(NEW)}, seed=3)
    (gate,) = gated([two_runs(tmp_path / "1")[0], unlike], "t.hits>0")
    assert gate.holds is None
    assert "is not compared on t: seed" in gate.undecided
    every = [run.gated for run in two_runs(tmp_path)]
    nothing = ComparisonDocument(comparisons=())
    (gate,) = with_gates(nothing, gates_of(["t.hits>0"], every), every, None).gates
    assert (gate.holds, gate.undecided) == (None, "t could not be compared")
    both = {"t": by_person(OLD), "t@2": by_person(OLD)}
    (gate,) = gated(two_runs(tmp_path / "3", both, both), "t.hits>-1")
    assert gate.holds
    runs = two_runs(tmp_path / "4", both, {**both, "t@2": None})
    (cut,) = gated(runs, "t.hits>-1")
    assert (cut.holds, cut.undecided) == (None, "new has not finished t@2")


def test_an_error_and_an_undecided_gate_come_before_a_gate_that_does_not_hold(tmp_path):
    runs = two_runs(tmp_path)
    every = [run.gated for run in runs]
    wanted = gates_of(["t.hits>0"], every)
    (missed,) = with_gates(document_of(runs), wanted, every, None).gates
    open_one = changed(missed, holds=None)
    for gates, errors, code in (
        ([missed], [], 4),
        ([open_one, missed], [], 1),
        ([missed], [DataError("a task is not finished")], 1),
        ([missed], [UsageError("no run can be compared")], 1),
        ([], [UsageError("no run can be compared")], 2),
        ([changed(missed, holds=True)], [], 0),
    ):
        assert exit_code(changed(document_of(runs), gates=tuple(gates)), errors) == code
