"""What a report names to look at next, and the differences that it did not test."""

from types import SimpleNamespace

from builders.runs import make_manifest, make_metric, make_summary

from harness.comparison.document import ComparisonDocument
from harness.reporting.html.next_steps import look_next
from harness.reporting.html.run_differences import Differences, Untested, untested_pairs
from harness.scoring.summary import RoleUse, StageSummary


def untested(task, *, run="new"):
    return Untested(task=task, run=run, other="old", because=("limit 1 against 2", "seed 3"))


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


def test_what_was_not_tested_is_said_once():
    page = look_next([], differences(untested("t"), untested("u"), untested("t")))
    assert page.count("<li>") == 1
    assert (
        "Not tested are differences on t, u. new is not compared with old: limit 1 against 2; "
        "seed 3." in page
    )
    runs = untested("t"), untested("t"), untested("t", run="third"), untested("u")
    assert untested_pairs(runs) == {
        "t": [("new", "old"), ("third", "old")], "u": [("new", "old")],
    }  # fmt: skip


def test_one_trouble_of_a_run_on_several_tasks_is_one_line_with_the_worst_tasks():
    tasks = [losing("a", 5), losing("b", 40), losing("c", 10), losing("d", 2), losing("c@2", 9)]
    page = look_next([run("weak", *tasks)], differences())
    assert page.count("<li>") == 1
    assert (
        "weak: units or parts of units were lost: 40 of 100 units of qm (ask/no_list 40) on b, 10 "
        "of 100 units of qm" in page
    )
    assert "and on 1 other task." in page
    assert "c@2" not in page


def test_what_was_lost_is_said_with_its_task_and_repeat():
    page = look_next([run("weak", losing("a", 5), losing("b@2", 40))], differences())
    lost = "of 100 units of qm (ask/no_list"
    assert f"40 {lost} 40) in repeat 2 on b, 5 {lost} 5) on a." in page
    lost = make_metric(0.5, n=20, interval=(0.4, 0.6), missing_share=0.05)
    page = look_next([run("weak", make_summary("t", metrics={"qm": lost}))], differences())
    assert "weak: units or parts of units were lost: 5% of the parts of qm on t." in page


def test_replies_that_were_not_read_are_said_with_what_another_try_gave():
    none = dict.fromkeys(RoleUse.__struct_fields__, 0) | {"cost": None}
    use = RoleUse(**none | {"calls": 10, "rungs": {"strict": 3, "repaired": 2}})
    lost = StageSummary(items=10, done=5, failures={}, roles={"candidate": use})
    page = look_next([run("weak", make_summary("t", stages={"ask": lost}))], differences())
    assert "replies were not read: 50% of 10 replies of ask (5 of 10 items have a value) on" in page
    again = StageSummary(items=5, done=5, failures={}, roles={"candidate": use})
    both = make_summary("u", stages={"ask": again}), make_summary("t", stages={"ask": lost})
    page = look_next([run("weak", *both)], differences())
    assert "(5 of 5 items have a value, some from another try) on u." in page
    assert page.index(" on t") < page.index(" on u"), "what was read in the end is no loss"


def test_without_anything_to_look_at_samples_are_next():
    assert "read some samples" in look_next([run("fine", status="done")], differences())
