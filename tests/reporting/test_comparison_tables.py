"""Comparisons as they are printed at fixed widths."""

from textwrap import dedent

from builders.comparisons import make_compared, make_comparison, make_difference
from builders.runs import make_metric
from builders.texts import lines_on
from msgspec.structs import replace

from harness.reporting.comparison_tables import print_comparisons
from harness.scoring.comparable import Refused
from harness.scoring.comparison import OracleUse


def metric(value, interval, n, missing=None, worst=None, **more):
    return make_metric(
        value, n=n, interval=interval, missing=missing or {}, counted_as_worst=worst, **more
    )


WARNING = "the oracle is made of 2 runs and needs 3 or more"
FIRST = make_compared(
    "gpt",
    {"f1": metric(0.5, (0.4, 0.6), 40, note=WARNING), "is": metric(0.25, (0.2, 0.3), 40)},
    common={"f1": metric(0.51, (0.41, 0.61), 38), "is": metric(0.26, (0.2, 0.3), 38)},
    counts={"users with an empty oracle": 2},
)
SECOND = make_compared(
    "llama",
    {
        "f1": metric(0.4, (0.3, 0.5), 38, {"no_json": 2}, 0.38, note=WARNING),
        "is": metric(None, None, 2, {"timeout": 38}, 0.0, undefined="2 of 40 units have one"),
    },
    common={"f1": metric(0.4, (0.3, 0.5), 38)},
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


def printed(comparison, *, width):
    return lines_on(lambda console: print_comparisons([comparison], console), width=width)


def test_runs_stand_below_one_another_metric_after_metric():
    assert "\n".join(printed(COMPARISON, width=80)) == dedent("""\
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
    lines = printed(replace(COMPARISON, differences=(lost, lost)), width=80)
    assert lines[-4].split()[-5:] == ["*", "+0.110", "–", "–", "38"]
    assert lines[-3:] == ["  f1: no interval: one user", "  f1: no p: one user", ""]
    alone = printed(replace(COMPARISON, runs=(FIRST,), refused=(), differences=()), width=80)
    assert alone[0] == "gist  version 1, 1 run compared, oracle of 1 run and oracle.json"
    assert not any("what all have scored" in line or "difference" in line for line in alone)
    lost = replace(DIFFERENCE, value=-1.1e-16, interval=(-2.2e-16, 1.1e-16))
    lines = printed(replace(COMPARISON, differences=(lost,)), width=80)

    assert lines[-2].endswith("  0.000 [0.000, 0.000]  <0.001     0.001  38")
