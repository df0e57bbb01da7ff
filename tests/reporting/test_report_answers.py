"""What a report answers in a line, and what limits it."""

from dataclasses import replace

import msgspec
import pytest
from builders.comparisons import make_compared, make_comparison, make_difference
from builders.report_lines import BY_RULE, make_line, make_run
from builders.runs import make_metric, make_summary

from harness.comparison.compare_runs import WithoutLost
from harness.comparison.document import ComparisonDocument, MeanDifference
from harness.reporting.html.first_screen import UNDECIDED, first_screen, verdict, verdict_html
from harness.reporting.html.run_differences import Differences


def compared(task, *differences, higher=True, labels=("old", "new")):
    """A comparison of the run `new` with the run `old`."""
    found = {"ptc": make_metric(0.5, n=40, higher_is_better=higher)}
    return make_comparison(task, [make_compared(label, found) for label in labels], *differences)


def several(*comparisons, means=()):
    return Differences(ComparisonDocument(comparisons=comparisons, mean_differences=means))


BETTER = make_difference(0.2, (0.1, 0.3), 0.01)
SHY = make_difference(0.2, (0.1, 0.3), 0.06)
RUNS = [make_run("old"), make_run("new")]


@pytest.mark.parametrize(
    ("one", "higher", "winner"),
    [
        (BETTER, True, "new"),
        (make_difference(-0.2, (-0.3, -0.1), 0.01), True, "old"),
        (make_difference(-0.2, (-0.3, -0.1), 0.01), False, "new"),
        (SHY, True, None),
        (make_difference(0.2, (-0.1, 0.3), 0.01), True, None),
        (make_difference(0.0, (0.0, 0.0), 1.0), True, None),
        (make_difference(0.2, (0.1, 0.3), None), True, "new"),
        (make_difference(0.2, None, 0.01), True, None),
    ],
)
def test_a_run_is_better_where_the_interval_and_holm_agree(one, higher, winner):
    found = [each.winner for each in several(compared("t", one, higher=higher)).established()]
    assert found == ([winner] if winner else [])


def test_a_p_that_would_be_rounded_up_to_its_bound_is_below_it_in_words():
    (close,) = several(compared("t", make_difference(0.2, (0.1, 0.3), 0.0499))).established()
    assert close.known == "p just below 0.05"
    (sure,) = several(compared("t", BETTER)).established()
    assert sure.known == "p 0.010"
    wide = msgspec.structs.replace(make_difference(0.2, (0.1, 0.3), 0.1999), confidence=0.8)
    assert next(several(compared("t", wide)).established()).known == "p just below 0.2"


def test_the_mean_over_repeats_of_two_runs_leaves_the_tests_of_others():
    mean = MeanDifference(
        name="t", over="repeats", tasks=("t", "t@2"), higher_is_better=True,
        difference=make_difference(0.2, (0.1, 0.3), 0.01, first="run-old", second="run-new"),
    )  # fmt: skip
    third = make_difference(0.1, (0.0, 0.2), 0.5, first="run-third")
    both = compared("t", SHY, third, labels=("old", "new", "third"))
    found = several(both, compared("t@2", SHY), means=(mean,))
    assert [each.first for _, each, _ in found.tested()] == ["run-old", "run-third"]


def test_a_verdict_names_what_is_established_and_who_is_worse_nowhere():
    lines = [make_line("t", old=0.5, new=0.7), make_line("u", old=0.4, new=0.6)]
    answer, why = verdict(RUNS, lines, several(compared("t", BETTER), compared("u", SHY)))
    assert answer == (
        "new is established as better than the other run in some metric, and as worse in none."
    )
    assert why.endswith(
        "; 1 of 2 comparisons is established after Holm (t, ptc: new is better than old, p 0.010)."
    )
    loses = several(compared("t", BETTER), compared("u", make_difference(-0.2, (-0.3, -0.1), 0.01)))
    assert verdict(RUNS, lines, loses)[0] == (
        f"{UNDECIDED}: new leads, but old is better on u (ptc)."
    )
    third = [*RUNS, make_run("third")]
    assert verdict(third, lines, several(compared("t", BETTER), compared("u", SHY)))[0] == (
        f"{UNDECIDED}: new leads, but is not established as better than third in any metric."
    )
    found = several(compared("t", BETTER))
    lost = WithoutLost(lost={"run-new": 3, "run-old": 0}, left=None, holds=False)
    found = found._replace(without={("t", "ptc", "run-new", "run-old"): lost})
    assert verdict(RUNS, lines, found)[0] == (
        f"{UNDECIDED}: new leads, but is not established as better than old in any metric without "
        "lost units."
    )


def test_one_comparison_is_said_with_its_numbers():
    lines = [make_line("t", old=0.5, new=0.7)]
    assert verdict(RUNS, lines, several(compared("t", SHY))) == (
        f"{UNDECIDED}: new leads, but is not established as better than old in any metric.",
        "The value of new is best on t; the difference is not established "
        "(0.200 [0.100, 0.300], p 0.060).",
    )
    assert verdict(RUNS, lines, several(compared("t", BETTER)))[0] == "new is better than old."


def test_a_verdict_without_a_comparison_says_why_and_counts_tasks_with_a_main_metric():
    tied = [make_line("t", old=0.5, new=0.5)]
    nothing = Differences(ComparisonDocument(comparisons=()), ("13 runs are too many",))
    assert verdict(RUNS, tied, nothing) == (
        f"{UNDECIDED}.",
        "No run is alone in the lead on any task; no difference was tested (13 runs are too many).",
    )
    assert "nothing to compare it with" in verdict(RUNS[:1], tied, nothing)[0]
    assert "No task is finished by two" in verdict(RUNS, [make_line("t", old=0.5)], nothing)[0]
    both = [make_line("t", old=0.5, new=0.7), make_line("u", old=0.7, new=0.5)]
    assert verdict(RUNS, both, nothing)[1].startswith(
        "By the first metric of each task, the value of old is best on 1 of 2 tasks (u), that "
        "of new on 1 (t), none tied; no"
    )
    lines = [make_line("t", old=0.5, new=0.7), make_line("u", old=0.5, new=0.5),
             replace(make_line("v", old=0.1, new=0.2), metric="")]  # fmt: skip
    nothing = Differences(ComparisonDocument(comparisons=()))
    assert verdict(RUNS, lines, nothing)[1].startswith(
        "By the first metric of each task, the value of new is best on 1 of 2 tasks (t), that "
        "of old on 0, 1 tied;"
    )


def test_a_lead_that_the_page_takes_back_is_not_counted():
    lines = [make_line("t", old=0.5, new=0.7), make_line("u", old=0.5, new=0.7)]
    taken = [lines[0], replace(lines[1], ahead=("old",))]
    found = several(compared("t", SHY), compared("u", SHY))
    said = verdict(RUNS, taken, found)[1]
    assert "new is best on 1 of 2 tasks (t), that of old on 0, none tied, 1 open;" in said
    assert "On u no run is counted as best: its lead" in verdict_html(RUNS, taken, found)
    assert verdict(RUNS, taken[1:], found)[1].startswith(
        "No run is alone in the lead on any task, 1"
    )


def test_what_limits_a_verdict_stands_below_it():
    runs = [make_run("old", roles=BY_RULE), make_run("new", roles=BY_RULE)]
    beaten = make_line("t", rule=0.9, old=0.5, new=0.7)
    page = verdict_html(runs, [beaten], several(compared("t", SHY)))
    assert "Every model here is a stand-in for a language model" in page
    assert "The baseline chance, without a model, has a better value than every model on t." in page
    assert "value than every model" not in verdict_html(
        RUNS, [make_line("t", rule=0.6, old=0.5, new=0.7)], several(compared("t", SHY))
    )
    one = verdict_html([runs[0], RUNS[1]], [beaten], several(compared("t", SHY)))
    assert "old is a stand-in" in one


def test_the_stamp_names_a_task_once_where_all_runs_agree():
    def stamped(task, *because):
        return make_summary(task, comparable=not because, not_comparable_because=because)

    rule = "judged by rule: lexical"
    both = [stamped("t", rule), stamped("t@2", rule), stamped("u")]
    runs = [make_run("old", *both), make_run("new", stamped("t", rule), stamped("u"))]
    nothing = Differences(ComparisonDocument(comparisons=()))
    said = "<li>judged by a rule, not by a model: lexical"
    assert f"{said} (on t)</li>" in first_screen(runs, nothing)
    one = [runs[0], make_run("new", make_summary("t"), make_summary("u"))]
    assert f"{said} (old on t)</li>" in first_screen(one, nothing)
    assert f"{said}</li>" in first_screen([make_run("old", *both[:2])], nothing)


def test_what_n_counts_is_said_where_a_task_is_described():
    def asked(**fields):
        metrics = {"recall": make_metric(0.5, n=180, missing={"no_list": 23})}
        summary = make_summary("t", metrics=metrics, **fields)
        return first_screen([make_run("old", summary)], several())

    assert "n of recall: 203 of 223 units (the others do not count in this metric);" in asked(
        units=223
    )
    assert "n of recall: 203 units; data" in asked(units=203)
