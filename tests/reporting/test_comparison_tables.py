"""Comparisons as they are printed: the short table with who is better in words, and all tables."""

from textwrap import dedent

import pytest
from builders.comparisons import make_compared, make_comparison, make_difference
from builders.runs import make_metric
from builders.texts import lines_on
from msgspec import structs
from msgspec.structs import replace

from harness.comparison.document import (
    ChangedUnit,
    ChangedUnits,
    ComparisonDocument,
    OracleUse,
    Refused,
)
from harness.reporting.comparison_tables import print_comparisons, print_short_comparison
from harness.scoring.means import MeanOverTasks

BASE, NEXT = "step-1000", "step-2000"


def metric(value, *, n=40, asked=40, **more):
    interval = None if value is None else (value - 0.1, value + 0.1)
    missing = {"no_json": asked - n} if n < asked else {}
    return make_metric(value, n=n, interval=interval, missing=missing, **more)


def a_run(label, own, common=None, *, name="ptc", **more):
    shared = {} if common is None else {name: common}
    return make_compared(label, {name: own}, common=shared, **more)


def a_comparison(task, runs, *differences, name="ptc", **more):
    usual = {"roles": {"judge": "openai:judge"}, "main": (name,),
             "not_comparable_because": ("bundled sample data",)}  # fmt: skip
    return make_comparison(task, runs, *differences, **{**usual, **more})


def a_difference(value, interval, p, holm, *, first=NEXT, second=BASE, name="ptc", **more):
    runs = {"first": f"run-{first}", "second": f"run-{second}"}
    return make_difference(value, interval, holm, p=p, metric=name, **runs, **more)


def two(task, base, later, *differences, higher=True, **more):
    """A comparison of two runs that have these values."""
    runs = [
        a_run(label, found, found)
        for label, found in (
            (BASE, metric(base, higher_is_better=higher)),
            (NEXT, metric(later, higher_is_better=higher)),
        )
    ]
    return a_comparison(task, runs, *differences, **more)


def printed(*comparisons, means=None, width=80):
    document = ComparisonDocument(comparisons=comparisons, means=means or {})
    return lines_on(lambda console: print_short_comparison(document, console), width=width)


def said(*comparisons):
    """What is said in words of two runs, as one line."""
    lines = printed(*comparisons)
    start = lines.index("", 8) + 1
    end = next(place for place in range(start, len(lines)) if lines[place].startswith("not compa"))
    return " ".join(lines[start:end])


HARD = two("perrec_hard", 0.4, 0.52, a_difference(0.12, (0.03, 0.21), 0.006, 0.012))
GIST = two("gist_synthetic", 0.5, 0.51, a_difference(0.01, (-0.1, 0.12), 0.4, 0.4))


def test_two_runs_have_a_table_their_differences_and_a_sentence():
    task = a_comparison("t", [a_run("t", metric(0.5), metric(0.5))], within="one")
    assert printed(task)[0].startswith("1 task of one on")
    assert "\n".join(printed(HARD, GIST)) == dedent("""\
2 runs on the units that all of them share; judge: openai:judge
                    perrec_hard        gist_synthetic
run                       ptc ↑                 ptc ↑
─────────────────────────────────────────────────────
step-1000  0.400 [0.300, 0.500]  0.500 [0.400, 0.600]
step-2000  0.520 [0.420, 0.620]  0.510 [0.410, 0.610]
n                            40                    40

step-2000 − step-1000, on the units that both share
task                                difference      p  p (Holm)   n
───────────────────────────────────────────────────────────────────
perrec_hard, ptc ↑     +0.120 [+0.030, +0.210]  0.006     0.012  40
gist_synthetic, ptc ↑  +0.010 [-0.100, +0.120]  0.400     0.400  40
p (Holm): chance of such a difference between equal runs, adjusted for 2 tests

step-2000 is better than step-1000 in perrec_hard (ptc higher by
0.120 [0.030, 0.210], p 0.012); no difference is shown in gist_synthetic (ptc,
p 0.400)
not comparable to published: bundled sample data
other metrics, pairs and changed units, each run's own values, notes: --verbose\
""")


def test_names_that_would_look_the_same_stand_whole():
    ways = ("pointwise", "pairwise", "listwise")
    names = [f"perrec_of_all_people_{way}_with_their_profiles" for way in ways]
    lines = printed(*(two(name, 0.4, 0.5, a_difference(0.1, (0.01, 0.2), 0.02, 0.06))
                      for name in [*names, "gist"]))  # fmt: skip
    start = lines.index("step-2000 − step-1000, on the units that both share")
    numbers = ["+0.100", "[+0.010,", "+0.200]", "0.020", "0.060", "40"]
    assert [line.split() for line in lines[start + 3 : start + 10]] == [
        [f"{names[0]},", "ptc", "↑"], numbers,
        [f"{names[1]},", "ptc", "↑"], numbers,
        [f"{names[2]},", "ptc", "↑"], numbers,
        ["gist,", "ptc", "↑", *numbers],
    ]  # fmt: skip
    assert max(map(len, lines)) <= 80
    names = ["perrec_hard_pointwise_profiles", "perrec_hard_listwise_profiles"]
    lines = printed(*many(names, 6))
    assert lines[1].split() == names


def changes(task, *largest, name="ptc"):
    """A comparison with units that changed by these values, and 20 that changed less."""
    units = [
        ChangedUnit(unit=f"u{value}", user="u", first=value, second=0.0,
                    commands=(f"harness show new --sample u{value}", "harness show old"))
        for value in largest
    ]  # fmt: skip
    found = ChangedUnits(
        metric=name, first=f"run-{NEXT}", second=f"run-{BASE}", better=len(units) + 20, worse=0,
        same=3, largest=tuple(units),
    )  # fmt: skip
    runs = [a_run(label, metric(0.5), metric(0.5), name=name) for label in (BASE, NEXT)]
    difference = a_difference(0.1, (0.0, 0.2), 0.5, 0.5, name=name)
    return a_comparison(task, runs, difference, name=name, changed=(found,))


def test_the_units_that_changed_are_counted_and_the_largest_stand_first():
    lines = printed(*(changes(f"task_{number}", number / 10) for number in range(20)))
    start = lines.index("units of step-2000: 420 better, 0 worse, 60 the same")
    assert lines[start + 1 : start + 4] == [
        "  +1.900  0.000 → 1.900  task_19, ptc, u1.9",
        "    harness show new --sample u1.9",
        "  and 419 more",
    ]
    lines = printed(changes("s", 0.1), changes("g", 3.0, name="gap"), changes("t", 0.5))
    start = lines.index("units of step-2000: 63 better, 0 worse, 9 the same")
    units = [line.split()[-1] for line in lines[start + 1 : start + 7 : 2]]
    assert units == ["u0.5", "u0.1", "u3.0"]


def test_what_two_runs_come_to_is_said_in_words():
    lower = two("t", 2.0, 1.5, a_difference(-0.5, (-0.7, -0.3), 0.001, 0.001), higher=False)
    assert said(lower) == (
        "step-2000 is better than step-1000 in t (ptc lower by 0.500 [0.300, 0.700], p 0.001)"
    )
    worse = two("t", 1.5, 2.0, a_difference(0.5, (0.3, 0.7), 0.001, 0.001), higher=False)
    assert said(worse).startswith("step-1000 is better than step-2000 in t (ptc lower by 0.500")
    shy = two("t", 0.4, 0.5, a_difference(0.1, (0.01, 0.2), 0.03, 0.06))
    assert said(shy) == "no difference is shown in t (ptc, p 0.060)"
    odd = two("t", 0.4, 0.5, a_difference(0.1, (-0.01, 0.2), 0.03, 0.03))
    assert said(odd) == "it is not clear in t (ptc, p 0.030, but the interval has 0 in it)"
    lone = two("t", 0.4, 0.5, a_difference(0.1, None, None, None, no_p="one user"))
    assert said(lone) == "no test is possible in t (ptc: one user)"


def many(tasks, runs):
    labels = [f"step-{number}000" for number in range(1, runs + 1)]
    return [
        a_comparison(task, [a_run(label, metric(0.5), metric(0.5)) for label in labels])
        for task in tasks
    ]


def test_differences_from_one_of_many_runs_stand_below_their_task():
    comparison = many(["t"], 3)[0]
    found = [a_difference(0.1, (0.0, 0.2), 0.5, 1.0, first=first) for first in (NEXT, "step-3000")]
    lines = printed(a_comparison("t", comparison.runs, *found))
    start = lines.index("each run − step-1000, on the units that both share")
    assert [line.split() for line in lines[start + 3 : start + 6]] == [
        ["t,", "ptc", "↑"],
        ["step-2000", "+0.100", "[0.000,", "+0.200]", "0.500", "1.000", "38"],
        ["step-3000", "+0.100", "[0.000,", "+0.200]", "0.500", "1.000", "38"],
    ]  # fmt: skip


NINE = tuple(f"perrec_{number}" for number in range(9))


def a_mean(value, *, tasks=NINE, **more):
    usual = {"name": "perrec", "over": "tasks", "metric": "ptc", "higher_is_better": True}
    interval = None if value is None else (value - 0.1, value + 0.1)
    return MeanOverTasks(
        tasks=tasks, value=value, interval=interval, confidence=0.95, **{**usual, **more}
    )


def test_a_group_stands_for_its_tasks_where_they_do_not_fit_a_screen():
    comparisons = many(NINE, 6)
    means = {run.run: (a_mean(0.5),) for run in comparisons[0].runs}
    lines = printed(*comparisons, means=means)
    assert [" ".join(line.split()) for line in lines[1:3]] == ["perrec (mean of 9)", "run ptc ↑"]
    assert "perrec_0" not in "\n".join(lines)
    assert "perrec (mean of 9)" in printed(*many(["perrec_0"], 6), means=means)[1]


def test_a_repeated_task_counts_once_in_its_group():
    repeated = ("perrec_0", "perrec_1", "perrec_0@2", "perrec_1@2")
    of_one = {"name": "perrec_0", "over": "repeats"}
    found = a_mean(0.5, tasks=repeated), a_mean(0.5, tasks=repeated[::2], **of_one)
    comparisons = many(["perrec_0"], 2)
    lines = printed(*comparisons, means={run.run: found for run in comparisons[0].runs})
    assert next(line for line in lines if "perrec" in line).split() == [
        "perrec", "(mean", "of", "2)", "perrec_0", "×2", "perrec_0",
    ]  # fmt: skip


@pytest.mark.parametrize("lacking", [None, "a run"])
def test_without_the_mean_its_tasks_keep_their_lines(lacking):
    """A mean without a value, and one that a run lacks, stand for no task."""
    comparisons = many(NINE, 6)
    runs = [run.run for run in comparisons[0].runs]
    shown = runs[1:] if lacking else runs
    means = {run: (a_mean(0.5 if lacking else None),) for run in shown}
    text = "\n".join(printed(*comparisons, means=means))
    assert "mean of" not in text
    assert all(task in text for task in NINE)


def test_what_speaks_against_the_comparison_has_a_line_each():
    runs = [
        a_run(BASE, metric(None, n=3, undefined="3 of 40 units have one")),
        a_run(NEXT, metric(0.5), metric(0.5), marks=("seed 1 against 0",)),
    ]
    odd = Refused(run="r", path="runs/r", label="odd", because=("window 50 against 100", "x"))
    oracle = OracleUse(runs=2, models=2, file=None, metrics=("ptc",), warning="too few models")
    lines = printed(
        a_comparison("s", runs, refused=(odd,), oracle=oracle, doubts=("served differently",)),
        *many(["t"], 1),
    )
    assert lines[-7:] == [
        "not comparable to published: bundled sample data",
        "left out of s: odd: window 50 against 100; x",
        "forced in of s: step-2000 *: seed 1 against 0",
        "ptc: too few models",
        "s has no ptc of step-1000: 3 of 40 units have one",
        "served differently",
        "other metrics, pairs and changed units, each run's own values, notes: --verbose",
    ]


def test_units_that_not_all_runs_share_are_counted():
    runs = [
        a_run(BASE, metric(0.5, n=40), metric(0.6, n=38)),
        a_run(NEXT, metric(0.7, n=38), metric(0.7, n=38)),
    ]
    lines = printed(a_comparison("t", runs, a_difference(0.1, (0.0, 0.2), 0.5, 0.5)))
    assert "step-1000  0.600 [0.500, 0.700]" in lines
    assert any(line.split() == ["n", "38", "of", "40"] for line in lines)


def test_a_metric_that_is_in_no_mean_keeps_its_line_where_another_has_one():
    runs = [a_run(f"step-{number}000", metric(0.5), metric(0.5), name="mae") for number in range(6)]
    both = [
        a_comparison(task, [
            structs.replace(run, metrics={**run.metrics, "ptc": metric(0.5)},
                            common={**run.common, "ptc": metric(0.5)})
            for run in runs
        ], main=("ptc", "mae"))
        for task in NINE
    ]  # fmt: skip
    text = "\n".join(printed(*both, means={run.run: (a_mean(0.5),) for run in runs}))
    assert "perrec (mean of 9), ptc" in text
    assert "perrec_0, mae" in text
    assert "perrec_0, ptc" not in text


def test_all_tests_are_counted_that_p_values_are_adjusted_for():
    shown, other = (a_difference(0.1, (0.0, 0.2), 0.5, 1.0, name=name) for name in ("ptc", "mae"))
    lines = printed(two("t", 0.4, 0.5, shown, other))
    assert lines[12].endswith("adjusted for 2 tests")
    assert "mae" not in "\n".join(lines)


def test_each_run_without_a_value_has_its_own_reason_and_names_cannot_steer_the_terminal():
    runs = [
        a_run(label, metric(None, n=n, undefined=f"{n} of 40 units have one"))
        for label, n in ((BASE, 3), (NEXT, 5), ("step-3000", 3))
    ]
    lines = printed(a_comparison("s", runs), two("a\x1b[31m[b]x[/b]", 0.1, 0.2), width=120)
    assert [line for line in lines if line.startswith("s has no")] == [
        "s has no ptc of step-1000, step-3000: 3 of 40 units have one",
        "s has no ptc of step-2000: 5 of 40 units have one",
    ]
    assert "differences, with intervals and p, and changed units: --against RUN" in lines
    assert "a\\x1b[31m[b]x[/b]" in "\n".join(lines)


def full_metric(value, interval, n, missing=None, worst=None, **more):
    return make_metric(
        value, n=n, interval=interval, missing=missing or {}, counted_as_worst=worst, **more
    )


WARNING = "the oracle is made of 2 runs and needs 3 or more"
FIRST = make_compared(
    "gpt",
    {"f1": full_metric(0.5, (0.4, 0.6), 40, note=WARNING), "is": full_metric(0.25, (0.2, 0.3), 40)},
    common={"f1": full_metric(0.51, (0.41, 0.61), 38), "is": full_metric(0.26, (0.2, 0.3), 38)},
    counts={"users with an empty oracle": 2},
)
SECOND = make_compared(
    "llama",
    {
        "f1": full_metric(0.4, (0.3, 0.5), 38, {"no_json": 2}, 0.38, note=WARNING),
        "is": full_metric(None, None, 2, {"timeout": 38}, 0.0, undefined="2 of 40 units have one"),
    },
    common={"f1": full_metric(0.4, (0.3, 0.5), 38)},
    marks=("seed 1 against 0",),
)
DIFFERENCE = make_difference(
    0.11, (-0.02, 0.2), 0.0012, p=0.0004, metric="f1", first="run-gpt", second="run-llama"
)
ODD = Refused(run="2026-odd", path="runs/2026-odd", label="odd", because=("a 1 against 2", "copy"))
COMPARISON = make_comparison(
    "gist", (FIRST, SECOND), DIFFERENCE,
    roles={"judge": "openai:judge"}, data={"origin": "local", "path": "people.csv"}, main=(),
    chosen="1 of 3 runs agree in all but the candidate", refused=(ODD,),
    oracle=OracleUse(runs=2, models=2, file="oracle.json", metrics=("f1",), warning=WARNING),
)  # fmt: skip


def in_full(comparison, *, width):
    return lines_on(lambda console: print_comparisons([comparison], console), width=width)


def test_runs_stand_below_one_another_metric_after_metric():
    assert "\n".join(in_full(COMPARISON, width=80)) == dedent("""\
gist  version 1, 2 runs compared, oracle of 2 runs and oracle.json
judge: openai:judge
data: people.csv
1 of 3 runs agree in all but the candidate
  left out, a 1 against 2; copy: odd (2026-odd)
  forced in, seed 1 against 0: llama * (run-llama)

metric  run      value [95% interval]   n   missing  missing as worst
─────────────────────────────────────────────────────────────────────
f1 ↑    gpt      0.500 [0.400, 0.600]  40         –                 –
        llama *  0.400 [0.300, 0.500]  38    2 (5%)             0.380
is ↑    gpt      0.250 [0.200, 0.300]  40         –                 –
        llama *      –                  2  38 (95%)             0.000
  f1: the oracle is made of 2 runs and needs 3 or more
  gpt: users with an empty oracle 2
  llama *: f1: 2 missing (no_json 2)
  llama *: is: 38 missing (timeout 38)
  llama *: is: no value: 2 of 40 units have one

metric  on common units  value [95% interval]   n
─────────────────────────────────────────────────
f1 ↑    gpt              0.510 [0.410, 0.610]  38
        llama *          0.400 [0.300, 0.500]  38
is ↑    gpt              0.260 [0.200, 0.300]  38
        llama *                             –   –

metric  first − second               difference       p  p (Holm)   n
─────────────────────────────────────────────────────────────────────
f1 ↑    gpt − llama *   +0.110 [-0.020, +0.200]  <0.001     0.001  38
""")


def test_what_cannot_be_told_apart_or_tested_says_so():
    lost = replace(
        DIFFERENCE, interval=None, no_interval="one user", p=None, p_holm=None, no_p="one user"
    )
    lines = in_full(replace(COMPARISON, differences=(lost, lost)), width=80)
    assert lines[-4].split()[-5:] == ["*", "+0.110", "–", "–", "38"]
    assert lines[-3:] == ["  f1: no interval: one user", "  f1: no p: one user", ""]
    alone = in_full(replace(COMPARISON, runs=(FIRST,), refused=(), differences=()), width=80)
    assert alone[0] == "gist  version 1, 1 run compared, oracle of 1 run and oracle.json"
    assert not any("what all have scored" in line or "difference" in line for line in alone)
    lost = replace(DIFFERENCE, value=-1.1e-16, interval=(-2.2e-16, 1.1e-16))
    lines = in_full(replace(COMPARISON, differences=(lost,)), width=80)

    assert lines[-2].endswith("  0.000 [0.000, 0.000]  <0.001     0.001  38")
