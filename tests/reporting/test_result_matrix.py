"""The table of results: tasks by models, with what must be known of each value."""

from dataclasses import replace
from types import SimpleNamespace

from builders.comparisons import make_compared, make_comparison
from builders.report_lines import make_line, make_run
from builders.report_pages import ReportPage
from builders.runs import make_metric, make_summary

from harness import Metric
from harness.comparison.document import ComparisonDocument, OracleUse
from harness.contracts.published import PublishedResult
from harness.reporting.html.markup import page_html, section_html
from harness.reporting.html.result_lines import Rule, Value, lines_of, matrix_html
from harness.reporting.html.run_differences import Differences, Established, Untested

NOTHING = Differences(ComparisonDocument(comparisons=()))


def table(lines, *, runs=None, untested=None):
    """The table of these lines, and the text of its part of the page."""
    runs = runs or [make_run("old"), make_run("new")]
    page = ReportPage(
        page_html("p", [section_html("x", "x", matrix_html(runs, lines, untested or {}))])
    )
    return page.tables[0], page.texts["x"]


def value(number, **fields):
    return Value(value=number, **{"n": 40, "of": 40, **fields})


def test_units_that_fell_out_and_parts_of_units_are_told_apart_in_the_cell():
    lost = {"ask/truncated": 4, "ask/no_json": 6}
    old = value(0.5, n=30, causes=lost, lost=0.25)
    line = make_line("quiz", old=old, new=value(0.6, lost=0.1))
    (row,) = table([line])[0].rows
    assert row[1:] == [
        "40", "0.50010 of 40 units lost (ask/no_json 6, ask/truncated 4)",
        "0.60010% of the parts of ptc lost",
    ]  # fmt: skip
    both = value(0.5, n=30, causes={"ask/refused": 10}, lost=0.3)
    (row,) = table([make_line("quiz", old=both, new=0.6)])[0].rows
    assert row[2] == "0.50010 of 40 units lost (ask/refused); 30% of the parts of ptc lost"
    (row,) = table([make_line("quiz", old=value(0.5, n=20, of=20), new=0.6)])[0].rows
    assert row[1:] == ["–", "0.50020 units", "0.60040 units"]
    (row,) = table([make_line("quiz", old=Value(why="1 of 2 stages done, running"), new=0.6)])[
        0
    ].rows
    assert row[2] == "1 of 2 stages done, running"


def test_what_was_lost_is_counted_next_to_a_value_whose_place_it_decides():
    lost = {"causes": {"ask/timeout": 10}, "lost": 0.25}
    line = make_line("quiz", old=value(0.7, n=30, other=0.5, **lost), new=value(0.6, other=0.6))
    found, text = table([line])
    assert found.rows[0][2:] == [
        "0.70010 of 40 units lost (ask/timeout); if they count as worst: 0.500", "0.600",
    ]  # fmt: skip
    assert found.kinds == ["leads", "follows says"]
    assert "ptc: old leads here, where what was lost is left out; where it counts as worst, new" \
        in text  # fmt: skip
    same = make_line("quiz", old=value(0.7, n=30, other=0.65, **lost), new=value(0.6, other=0.6))
    assert table([same])[0].rows == [
        ["quiz ptc ↑", "40", "0.70010 of 40 units lost (ask/timeout)", "0.600"],
    ]  # fmt: skip
    counted = replace(line, values={
        "old": value(0.5, other=0.7, counts=True, **lost), "new": value(0.6, other=0.6)
    })  # fmt: skip
    found, text = table([counted])
    assert found.rows[0][2] == (
        "0.50010 of 40 units lost (ask/timeout), counted as worst; if they are left out: 0.700"
    )
    assert "new leads here, where what was lost counts as worst; where it is left out, old" in text
    some = replace(line, values={"old": value(0.5, n=36, counts=True, **lost)})
    assert (
        "10 of 40 units lost (ask/timeout), counted as worst but for 4 left out" in table([some])[1]
    )
    found, text = table([replace(line, counts_as="ranked at random")])
    assert found.rows[0][2] == (
        "0.70010 of 40 units lost (ask/timeout); if they count as ranked at random: 0.500"
    )
    assert "where it counts as ranked at random, new leads." in text
    assert "worst" not in text


def test_the_best_value_of_a_row_is_marked_where_nothing_speaks_against_it():
    runs = [make_run("old"), make_run("new")]
    assert '<span class="best">0.700' in matrix_html(runs, [make_line("t", old=0.5, new=0.7)], {})
    for alone in (make_line("t", old=0.5, new=0.5), make_line("t", old=0.5)):
        assert "best" not in matrix_html(runs, [alone], {})
    line = replace(make_line("t", old=0.5, new=0.7), ahead=("old",))
    page = matrix_html([make_run("old"), make_run("new")], [line], {})
    assert "best" not in page
    assert "ptc: on the units that both have, old is ahead of new (see Differences)." in page


def test_where_no_pair_was_tested_none_is_named():
    lines = [make_line("quiz", old=0.5, new=0.7, third=0.1)]
    runs = [make_run(label) for label in ("old", "new", "third")]
    pairs = [("new", "old"), ("third", "old"), ("third", "new")]
    _, text = table(lines, runs=runs, untested={"quiz": pairs})
    assert "Not tested: any two of these runs; “What to look at next”" in text
    _, text = table(lines, runs=runs, untested={"quiz": pairs[:2]})
    assert "Not tested: new against old, third against old; “What" in text


def test_a_leader_that_was_not_tested_against_another_run_is_not_marked():
    summaries = [make_summary(name, metrics={"ptc": make_metric(0.5, n=4)}) for name in "tu"]
    better = make_summary("t", metrics={"ptc": make_metric(0.7, n=4)})
    runs = [make_run("old", *summaries), make_run("new", better, summaries[1])]
    apart = Untested(task="t", run="old", other="new", because=())
    lines = lines_of(runs, NOTHING._replace(untested=(apart,)))
    assert [(line.name, line.untested, line.best) for line in lines] == [
        ("t", ("old",), None), ("u", (), None),
    ]  # fmt: skip
    assert "best" not in matrix_html(runs, lines, {})
    assert lines_of(runs, NOTHING)[0].best == "new"
    other = apart._replace(other="third")
    assert lines_of(runs, NOTHING._replace(untested=(other,)))[0].best == "new"


def test_each_baseline_that_beats_every_model_is_named():
    line = make_line("t", old=0.5, new=0.6)
    line = replace(line, rules=(Rule("popular", 0.9), Rule("random", 0.8), Rule("none", 0.1)))
    text = "0.900a better value than every modelpopular, best of 3 for ptc; random too: 0.800"
    assert table([line])[0].rows[0][-1] == text


def test_a_value_is_marked_as_best_where_that_is_established_against_all():
    runs = [make_run(label) for label in ("old", "new", "third")]
    better = tuple(
        Established("quiz", "ptc", "new", loser, 0.01, 0.05) for loser in ("old", "third")
    )
    line = make_line("quiz", old=0.5, new=0.7, third=0.6)
    page = matrix_html(runs, [replace(line, better=better)], {})
    assert '<strong class="best">0.700</strong>' in page
    assert "better than old (p 0.010), third (p 0.010)" in page
    assert "<strong" not in matrix_html(runs, [replace(line, better=better[:1])], {})
    assert "<strong" not in matrix_html(runs, [line], {})


def test_a_rule_and_published_results_stand_in_the_row_in_grey():
    known = [
        PublishedResult(task="quiz", metric="ptc_published", model=model, value=number, source="T1",
                        comparable_if="all of it")
        for model, number in (("GPT", 0.8), ("BERT", 0.2))
    ]  # fmt: skip
    line = replace(make_line("quiz", rule=0.9, old=0.5, new=0.7), published=tuple(known))
    page = matrix_html([make_run("old"), make_run("new")], [line], {})
    found, _ = table([line])
    assert found.head[-2:] == ["baseline", "published"]
    assert found.rows[0][-2:] == [
        "0.900a better value than every modelchance",
        "0.800GPT, T1, best of 2, in ptc_published (1)",
    ]
    assert page.count('<td class="number published"') == 2
    lower = replace(make_line("quiz", rule=0.9, old=0.5, new=0.7), higher=False)
    assert table([lower])[0].rows[0][-1] == "0.900chance"


def test_each_row_with_a_published_value_says_if_it_is_not_comparable():
    stamped = make_summary("quiz", comparable=False, not_comparable_because=("sample",))
    known = PublishedResult(task="quiz", metric="tau", model="GPT", value=0.8, source="T1")
    first = make_line("quiz", old=0.5, new=0.7)
    second = replace(first, metric="tau", first=False)
    lines = [first, replace(second, published=(known,)), replace(second, metric="exact")]
    found, _ = table(lines, runs=[make_run("old", stamped), make_run("new", stamped)])
    assert [row[0] for row in found.rows] == [
        "quiz ptc ↑", "quiz tau ↑ not comparable", "quiz exact ↑",
    ]  # fmt: skip
    one = [make_run("old", stamped), make_run("new", make_summary("quiz"))]
    assert table(lines, runs=one)[0].rows[1][0] == "quiz tau ↑ not comparable: old"


def test_metrics_of_a_task_that_disagree_and_a_missing_test_are_said_at_its_row():
    lines = [make_line("quiz", old=0.5, new=0.7),
             replace(make_line("quiz", old=0.2, new=0.1), metric="tau", first=False)]  # fmt: skip
    found, _ = table(lines, untested={"quiz": [("old", "new")]})
    assert found.rows[1] == [
        "Not tested: old against new; “What to look at next” says why. The metrics "
        "disagree: new leads by ptc, old leads by tau. Decide which one your question is about."
    ]
    agreeing = [lines[0], replace(lines[1], values={"old": value(0.1), "new": value(0.2)})]
    assert "disagree" not in table(agreeing)[1]


def test_the_tasks_of_a_group_follow_it_and_can_be_folded():
    group = replace(make_line("all", old=0.5, new=0.6), tasks=frozenset({"a", "b"}))
    lines = [group, make_line("a", old=0.5, new=0.6), make_line("b", old=0.5, new=0.6),
             make_line("c", old=0.5, new=0.6)]  # fmt: skip
    found, _ = table(lines)
    assert [row[0] for row in found.rows][:2] == ["all (mean of 2) ptc ↑ 2 tasks", "a ptc ↑"]
    assert found.kinds == ["leads", "follows in-1", "follows in-1", "leads"]


def test_the_lines_of_runs_have_rules_of_the_metric_that_they_are_of():
    metrics = {"ptc": make_metric(0.5, n=4), "popular": make_metric(0.8, n=4, baseline=True),
               "chance": make_metric(0.2, n=4, baseline=True)}  # fmt: skip
    summary = make_summary("t", metrics=metrics)
    benchmark = SimpleNamespace(name="toy", published=None, metrics={
        "ptc": Metric(description="", counts_as="a guess"),
        "popular": Metric(description="", baseline="ptc"),
        "chance": Metric(description="", baseline=True),
    })  # fmt: skip
    run = make_run("old", summary)
    task = SimpleNamespace(task=SimpleNamespace(name="t"), benchmark=benchmark, summary=summary)
    (line,) = lines_of([replace(run, tasks=(task,))], NOTHING)  # type: ignore[arg-type]
    assert [rule.name for rule in line.rules] == ["popular"]
    assert line.values["old"].value == 0.5
    assert line.counts_as == "a guess"
    assert lines_of([run], NOTHING)[0].rules == ()


def test_a_metric_in_which_runs_are_compared_alone_has_its_line():
    both = {
        name: make_metric(0.5, n=4, description=f"what {name} is") for name in ("ig_p", "ig_f1")
    }
    runs = [make_compared(label, both) for label in ("old", "new")]
    oracle = OracleUse(runs=2, models=2, file=None, metrics=("ig_f1",))
    one = make_comparison("t", runs, main=("ig_f1",), oracle=oracle)
    summary = make_summary("t", metrics={"ig_p": both["ig_p"]}, main=("ig_p",))
    made = [make_run("old", summary), make_run("new", summary)]
    lines = lines_of(made, Differences(ComparisonDocument(comparisons=(one,))))
    assert [(line.metric, line.first, line.together) for line in lines] == [
        ("ig_p", True, False), ("ig_f1", False, True),
    ]  # fmt: skip
    assert [each.value for each in lines[1].values.values()] == [0.5, 0.5]
    assert "ig_f1: measured against what all these runs found together" in table(lines)[1]
