"""What a report names to look at next, and the differences that it did not test."""

from types import SimpleNamespace

import pytest
from builders.runs import make_manifest, make_metric, make_summary

from harness.reporting.html.next_steps import MOST_LINES, look_next
from harness.reporting.html.run_differences import Differences
from harness.reporting.html.untested import Untested, untested_sheet, why_untested
from harness.scoring.comparison_document import ComparisonDocument
from harness.scoring.summary import RoleUse, StageSummary

PREDICTOR = ("the same predictor (--role predictor=SPEC)",)


def untested(task, value, *, run="new", needed=PREDICTOR, because=("predictor a against b",)):
    return Untested(
        task=task, metric="qm", run=run, result=make_metric(value, n=9), best="old",
        best_result=make_metric(0.5, n=9), because=because, needed=needed,
    )  # fmt: skip


def differences(*found):
    return Differences(ComparisonDocument(comparisons=()), untested=found)


def run(label, *summaries, status="done"):
    manifest = make_manifest(status=status)
    return SimpleNamespace(label=label, summaries=summaries, manifest=manifest)


def losing(task, units, of=100):
    """A summary of a task that lost so many of 100 units."""
    lost = make_metric(
        0.5, n=of - units, interval=(0.4, 0.6), missing={"ask/no_list": units},
        missing_share=units / of,
    )  # fmt: skip
    return make_summary(task, metrics={"qm": lost}, main=("qm",))


def test_what_makes_differences_testable_is_said_once_with_the_largest_of_them():
    page = look_next([], differences(untested("t", 0.4), untested("u", 0.1)))
    assert page.count("<li>") == 1
    assert "2 differences on t, u are not tested" in page
    assert "the largest in qm of u, new 0.100 and old 0.500" in page
    assert "To test this, give all runs the same predictor (--role predictor=SPEC)." in page


def test_a_run_that_nothing_makes_comparable_has_its_reason():
    copy = untested("t", 0.4, needed=(), because=("it is a copy of runs/a",))
    page = look_next([], differences(copy, copy._replace(task="u")))
    assert "t, u: new is not compared: it is a copy of runs/a." in page


def test_the_largest_difference_without_a_test_stands_first():
    sheet = untested_sheet([untested("t", 0.4), untested("u", 0.1), untested("v", 0.7)])
    assert [(row[1], pytest.approx(row[3])) for row in sheet.rows] == [
        ("u", -0.4), ("v", 0.2), ("t", -0.1),
    ]  # fmt: skip
    assert sheet.rows[0][-1] == "predictor a against b"
    assert sheet.notes[-1].endswith("the same predictor (--role predictor=SPEC): t, u, v.")


def test_the_row_of_a_task_names_the_runs_that_were_not_tested_and_what_to_give_them():
    copy = untested("u", 0.4, needed=(), because=("it is a copy of runs/a",))
    runs = untested("t", 0.4), untested("t@2", 0.4), untested("t", 0.1, run="third"), copy
    assert why_untested(runs) == {
        "t": "Not tested: new, third against old: to test it, give all runs the same predictor "
        "(--role predictor=SPEC).",
        "u": "Not tested: new against old: it is a copy of runs/a.",
    }


def test_one_trouble_of_a_run_on_several_tasks_is_one_line_with_the_worst_tasks():
    tasks = [losing("a", 5), losing("b", 40), losing("c", 10), losing("d", 2), losing("c@2", 9)]
    page = look_next([run("weak", *tasks)], differences())
    assert page.count("<li>") == 1
    assert "weak: values are missing: 40% of qm (ask/no_list 40) on b, 10% of qm" in page
    assert "and less on 1 other task." in page
    assert "c@2" not in page


def test_replies_that_were_not_read_are_counted_by_stage():
    none = dict.fromkeys(RoleUse.__struct_fields__, 0) | {"cost": None}
    use = RoleUse(**none | {"calls": 10, "rungs": {"strict": 3, "repaired": 2}})
    stage = StageSummary(items=10, done=5, failures={}, roles={"candidate": use})
    summary = make_summary("t", stages={"ask": stage})
    page = look_next([run("weak", summary)], differences())
    assert "weak: replies were not read: 50% of ask on t." in page
    assert "weak: replies needed repair: 40% of ask on t." in page


def test_lines_that_are_many_are_folded_and_the_fold_says_what_is_in_it():
    many = [run(f"m{number}", losing("t", number)) for number in range(1, 2 * MOST_LINES + 2)]
    page = look_next(many, differences())
    assert "11 lines more, about smaller losses" in page
    assert page.index("m21:") < page.index("<details>") < page.index("m1:")


def test_without_anything_to_look_at_samples_are_next():
    assert "read some samples" in look_next([run("fine", status="done")], differences())
