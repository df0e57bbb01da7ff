from textwrap import dedent

from builders.comparisons import make_compared, make_comparison, make_difference
from builders.runs import make_metric
from builders.texts import lines_on
from msgspec.structs import replace

from harness.comparison.document import (
    ChangedUnit,
    ChangedUnits,
    ComparedSlice,
    ComparisonDocument,
    OracleUse,
    Refused,
)
from harness.reporting.comparison_tables import print_comparison
from harness.scoring.means import MeanOverTasks

BASE, NEXT = "step-1000", "step-2000"
MORE = "more: --verbose (all metrics and pairs, changed units, each run's own values)"


def metric(value, *, n=40, asked=40, **more):
    interval = None if value is None else (value - 0.1, value + 0.1)
    missing = {"no_json": asked - n} if n < asked else {}
    usual = {"description": "share of pairs; a tie counts 0"}
    return make_metric(value, n=n, interval=interval, missing=missing, **{**usual, **more})


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


def two(task, base, later, *differences, **more):
    """A comparison of two runs that have these values."""
    runs = [a_run(label, metric(v), metric(v)) for label, v in ((BASE, base), (NEXT, later))]
    return a_comparison(task, runs, *differences, **more)


def many(tasks, labels, *pairs):
    """Comparisons of runs with the value 0.5, and these differences of each."""
    runs = [a_run(label, metric(0.5), metric(0.5)) for label in labels]
    return [a_comparison(task, runs, *pairs) for task in tasks]


def printed(*comparisons, width=80, terminal=False, means=None, **options):
    document = ComparisonDocument(comparisons=comparisons, means=means or {})
    return lines_on(
        lambda console: print_comparison(document, console, **options),
        width=width, force_terminal=terminal,
    )  # fmt: skip


HARD = two("perrec_hard", 0.4, 0.52, a_difference(0.12, (0.03, 0.21), 0.006, 0.012))
GIST = two("gist_synthetic", 0.5, 0.51, a_difference(0.01, (-0.1, 0.12), 0.4, 0.4))


def test_of_two_runs_the_verdict_stands_first_and_the_difference_beside_the_values():
    assert "\n".join(printed(HARD, GIST)) == dedent(f"""\
step-2000 wins on 1 of 2 tasks and is worse on none; 1 undecided: 38 people can show differences from .16 up
2 runs on the units that all of them share; difference: step-2000 − step-1000; judge: openai:judge
ptc: share of pairs
task            metric  step-1000  step-2000               difference      p   n
────────────────────────────────────────────────────────────────────────────────
perrec_hard     ptc ↑     0.400 ▼      0.520  +0.120 [+0.030, +0.210]  0.012  40
gist_synthetic  ptc ↑     0.500        0.510  +0.010 [-0.100, +0.120]  0.400  40
▼ significantly worse than another run: paired over people, p < .05 after Holm for 2 tests
not comparable to published: bundled sample data
{MORE}""")  # noqa: E501


def test_of_three_runs_the_values_stand_alone_until_a_base_is_named():
    pairs = [
        a_difference(0.1, (0.01, 0.2), 0.01, 0.02),
        a_difference(0.1, (-0.1, 0.2), 0.5, 0.5, first="step-3000"),
    ]
    comparison = many(["t"], [BASE, NEXT, "step-3000"], *pairs)[0]
    lines = printed(comparison)
    assert [line.split() for line in lines[3:6:2]] == [
        ["task", "metric", BASE, NEXT, "step-3000", "n"],
        ["t", "ptc", "↑", "0.500", "▼", "0.500", "0.500", "40"],
    ]
    assert not any("+0.100" in line for line in lines)
    lines = printed(comparison, against=True)
    start = next(n for n, line in enumerate(lines) if "first − second" in line)
    assert [line.split()[-6:] for line in lines[start + 2 : start + 4]] == [
        ["+0.100", "[+0.010,", "+0.200]", "0.010", "0.020", "38"],
        ["+0.100", "[-0.100,", "+0.200]", "0.500", "0.500", "38"],
    ]


def test_a_terminal_cuts_names_in_the_middle_and_splits_runs_and_a_pipe_cuts_nothing():
    labels = [f"openai/model-{number}-of-many-steps" for number in range(6)]
    name = "perrec_of_all_people_pointwise_with_their_profiles"
    (comparison,) = many([name], labels)
    lines = printed(comparison, terminal=True)
    assert all(len(line) <= 80 for line in lines[3:-1])
    assert [line for line in lines if line.startswith("perre…ofiles  ptc ↑")]
    assert sum(line.startswith("task") for line in lines) > 1
    whole = printed(comparison)
    assert next(line.split() for line in whole if line.startswith("task"))[2:-1] == labels
    assert any(line.startswith(f"{name}  ptc ↑") for line in whole)


def test_units_that_not_all_runs_share_are_counted():
    runs = [
        a_run(BASE, metric(0.5, n=40), metric(0.6, n=38)),
        a_run(NEXT, metric(0.7, n=38), metric(0.7, n=38)),
    ]
    lines = printed(a_comparison("t", runs, a_difference(0.1, (0.0, 0.2), 0.5, 0.5)))
    assert any(line.startswith("t ") and line.endswith("38 of 40") for line in lines)


def a_mean(value, *, tasks, **more):
    usual = {"name": "perrec", "over": "tasks", "metric": "ptc", "higher_is_better": True}
    return MeanOverTasks(
        tasks=tasks, value=value, interval=None, confidence=0.95, **{**usual, **more}
    )


def names_of(lines):
    return [line.partition("  ")[0] for line in lines if " ptc ↑ " in line]


def test_a_mean_stands_for_its_tasks_but_with_verbose_and_where_a_run_lacks_it():
    tasks = ("p_0", "p_1", "p_0@2", "p_1@2")
    of_one = {"name": "p_0", "over": "repeats"}
    means = (a_mean(0.5, tasks=tasks), a_mean(0.5, tasks=tasks[::2], **of_one))
    every = many([*tasks, "t"], [BASE, NEXT])
    of_both = {f"run-{label}": means for label in (BASE, NEXT)}
    assert names_of(printed(*every, means=of_both)) == ["perrec (2)", "t"]
    assert names_of(printed(*every, means=of_both, verbose=True))[:4] == [
        "perrec (2)", "p_0 ×2", "p_0", "p_1",
    ]  # fmt: skip
    for other in ({f"run-{BASE}": means}, {**of_both, f"run-{NEXT}": (a_mean(None, tasks=tasks),)}):
        assert names_of(printed(*every, means=other)) == [*tasks, "t"]


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
    every = [changes("s", 0.1), changes("g", 3.0, name="gap"), changes("t", 0.5, 0.2)]
    lines = printed(*every)
    start = lines.index("units of step-2000: 64 better, 0 worse, 9 the same")
    assert lines[start + 1 : start + 4 : 2] == [
        "  +0.500  0.000 → 0.500  t, ptc, u0.5",
        "  +0.200  0.000 → 0.200  t, ptc, u0.2",
    ]
    assert lines[start + 7] == "  and 61 more"
    assert "    harness show old" not in lines
    assert "    harness show old" in printed(*every, verbose=True)


def test_what_limits_the_verdict_has_a_line_each():
    runs = [
        a_run(BASE, metric(None, n=3, undefined="3 of 40 units have one")),
        a_run(NEXT, metric(0.5), metric(0.5), marks=("seed 1 against 0",)),
    ]
    odd = Refused(run="r", path="runs/r", label="odd", because=("window 50 against 100", "x"))
    oracle = OracleUse(runs=2, models=2, file=None, metrics=("ptc",), warning="too few models")
    lines = printed(
        a_comparison("s", runs, refused=(odd,), oracle=oracle, doubts=("served differently",)),
        *many(["t\x1b[31m[b]x[/b]"], [BASE]),
    )
    assert lines[-8:] == [
        "not comparable to published: bundled sample data",
        "missing: step-1000 37 of 80 (no_json 37)",
        "not compared on s: odd: window 50 against 100; x",
        "forced in on s: step-2000 *: seed 1 against 0",
        "ptc: too few models",
        "s has no ptc of step-1000: 3 of 40 units have one",
        "served differently",
        MORE,
    ]
    assert any("t\\x1b[31m[b]x[/b]" in line for line in lines)


def test_a_difference_without_interval_or_test_says_why():
    lone = a_difference(0.1, None, None, None, no_p="one user", no_interval="one user")
    lines = printed(two("t", 0.4, 0.5, lone))
    assert lines[0] == "no test is possible on t"
    assert "t, ptc: no interval: one user" in lines and "t, ptc: no p: one user" in lines
    none = two("t", 0.4, 0.5, a_difference(-1.1e-16, (-2.2e-16, 1.1e-16), 0.0004, 0.001))
    assert any("0.000 [0.000, 0.000]  0.001  40" in line for line in printed(none))


def test_parts_of_the_data_have_a_grid_of_the_same_columns():
    part = ComparedSlice(
        slice="history", value="1-5",
        common={f"run-{label}": {"ptc": metric(0.5, n=9, asked=9)} for label in (BASE, NEXT)},
        differences=(a_difference(0.1, None, 0.5, 0.5, n=9, users=9),),
    )  # fmt: skip
    lines = printed(replace(HARD, slices=(part,)))
    start = lines.index("perrec_hard by history")
    assert lines[start + 1].split() == ["task", "metric", BASE, NEXT, "difference", "p", "n"]
    found = lines[start + 3].split()
    assert found == ["history", "1-5", "ptc", "↑", "0.500", "0.500", "+0.100", "0.500", "9"]
    assert lines[start + 4] == "fewer than 20 users, no interval: history 1-5"


WARNING = "the oracle is made of 2 runs and needs 3 or more"


def full_metric(value, interval, n, missing=None, worst=None, **more):
    return make_metric(
        value, n=n, interval=interval, missing=missing or {}, counted_as_worst=worst, **more
    )


def test_verbose_has_each_run_s_own_values_metric_after_metric():
    first = make_compared(
        "gpt",
        {"f1": full_metric(0.5, (0.4, 0.6), 40, note=WARNING),
         "is": full_metric(0.25, (0.2, 0.3), 40)},
        common={"f1": full_metric(0.51, (0.41, 0.61), 38), "is": full_metric(0.25, None, 40)},
        counts={"users with an empty oracle": 2},
    )  # fmt: skip
    none = full_metric(None, None, 2, {"timeout": 38}, 0.0, undefined="2 of 40 units have one")
    second = make_compared(
        "llama",
        {"f1": full_metric(0.4, (0.3, 0.5), 38, {"no_json": 2}, 0.38, note=WARNING), "is": none},
        common={"f1": full_metric(0.4, (0.3, 0.5), 38)},
        marks=("seed 1 against 0",),
    )
    difference = make_difference(
        0.11, (-0.02, 0.2), 0.0012, p=0.0004, metric="f1", first="run-gpt", second="run-llama"
    )
    comparison = make_comparison(
        "gist", (first, second), difference,
        data={"origin": "local", "path": "people.csv"}, main=("f1",), chosen="both agree",
        oracle=OracleUse(runs=2, models=2, file="oracle.json", metrics=("f1",), warning=WARNING),
    )  # fmt: skip
    lines = printed(comparison, verbose=True)
    start = next(n for n, line in enumerate(lines) if line.startswith("gist  version"))
    assert "\n".join(lines[start:]) == dedent("""\
gist  version 1, 2 runs compared, oracle of 2 runs and oracle.json
data: people.csv; both agree
metric  run      value [95% interval]   n   missing  missing as worst  on common units
──────────────────────────────────────────────────────────────────────────────────────
f1 ↑    gpt      0.500 [0.400, 0.600]  40         –                 –      0.510 of 38
        llama *  0.400 [0.300, 0.500]  38    2 (5%)             0.380      0.400 of 38
is ↑    gpt      0.250 [0.200, 0.300]  40         –                 –      0.250 of 40
        llama *      –                  2  38 (95%)             0.000                –
  f1: the oracle is made of 2 runs and needs 3 or more
  gpt: users with an empty oracle 2
  llama *: f1: 2 missing (no_json 2)
  llama *: is: 38 missing (timeout 38)
  llama *: is: no value: 2 of 40 units have one""")


def test_tasks_of_one_run_are_named_so():
    task = a_comparison("b", [a_run("t", metric(0.5), metric(0.5))], within="one")
    assert printed(task)[0] == "1 task of one on the same units; judge: openai:judge"
