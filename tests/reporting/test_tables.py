import io
from textwrap import dedent

import pytest
from builders.runs import make_entry, make_manifest, make_metric, make_summary, make_task
from builders.texts import lines_on
from msgspec.structs import replace
from rich.console import Console

from harness.calls.pricing import Cost
from harness.contracts.report import Report, Sheet
from harness.contracts.task import RoleSpec
from harness.reporting.grid import result_console
from harness.reporting.tables import (
    other_policies,
    print_costs,
    print_metrics,
    print_short_table,
)
from harness.runs.manifest import StageEntry
from harness.scoring.means import MeanOverTasks
from harness.scoring.summary import RoleUse, StageSummary


def metric(value, interval, n, missing, worst, **more):
    return make_metric(
        value, n=n, interval=interval, missing=missing, counted_as_worst=worst, **more
    )


def use(**counts):
    usual = {"calls": 0, "from_store": 0, "failed": 0, "prompt_tokens": 0, "completion_tokens": 0}
    special = {"cached_tokens": 0, "reasoning_tokens": 0, "asked_schema": 0, "met_schema": 0}
    return RoleUse(**(usual | special | {"rungs": {}} | counts))


@pytest.fixture
def summary():
    missing = {"name/no_json": 2, "support/timeout": 1}
    return make_summary(
        "interests", benchmark="interests", model="openai:gpt", units=40,
        roles={"candidate": "openai:gpt", "judge": "openai:llama"},
        data={"origin": "local", "path": "people.csv"},
        metrics={
            "support": metric(0.7341, (0.702, 0.781), 37, missing, 0.679),
            "grounded": metric(0.5, (0.45, 0.56), 37, missing, 0.4625),
            "coverage": metric(0.25, (0.15, 0.3), 40, {}, 0.25),
        },
        stages={
            "name": StageSummary(
                items=40, done=38, failures={"no_json": 2},
                roles={"candidate": use(
                    calls=44, failed=1, prompt_tokens=30_200, completion_tokens=6100,
                    reasoning_tokens=4000, rungs={"strict": 30, "fenced": 6, "repaired": 1},
                )},
            ),
            "support": StageSummary(
                items=180, done=179, failures={"timeout": 1},
                roles={"judge": use(
                    calls=180, from_store=60, prompt_tokens=30_200, completion_tokens=600,
                    rungs={"strict": 179},
                )},
            ),
        },
    )  # fmt: skip


def costs(summaries, console):
    print_costs({each.task: each.stages for each in summaries}, console)


def printed(*summaries, width, what=print_metrics):
    return lines_on(lambda console: what(summaries, console), width=width)


def test_one_task_in_eighty_columns(summary):
    assert "\n".join(printed(summary, width=80)) == dedent("""\
interests  version 1, openai:gpt
judge: openai:llama
data: people.csv

metric      value [95% interval]   n  missing  missing as worst
───────────────────────────────────────────────────────────────
support ↑   0.734 [0.702, 0.781]  37   3 (8%)             0.679
grounded ↑  0.500 [0.450, 0.560]  37   3 (8%)             0.463
coverage ↑  0.250 [0.150, 0.300]  40        –                 –
  support, grounded: 3 missing (name/no_json 2, support/timeout 1)
""")
    other = replace(summary, task="other", stages={"name": summary.stages["name"]})
    assert "\n".join(printed(summary, other, width=80, what=costs)) == dedent("""\
stage              items  done  missing
────────────────────────────────────────────
interests/name        40    38  2: no_json 2
interests/support    180   179  1: timeout 1
other/name            40    38  2: no_json 2

asked                      calls  stored  failed  tokens in  tokens out
───────────────────────────────────────────────────────────────────────
interests/name, candidate     44      0%       1      30.2k        6.1k
interests/support, judge     180     33%       0      30.2k         600
other/name, candidate         44      0%       1      30.2k        6.1k
  interests/name, candidate: 37 of 44 replies read: strict 81%, fenced 16%, repaired 3%
  interests/name, candidate: 4.0k tokens reasoning
  interests/support, judge: 179 of 180 replies read: strict 100%
  other/name, candidate: 37 of 44 replies read: strict 81%, fenced 16%, repaired 3%
  other/name, candidate: 4.0k tokens reasoning
""")


def test_a_value_that_counts_what_is_missing_has_the_other_beside_it_and_baselines_below(summary):
    metrics = {
        "random": metric(0.01, (-0.1, 0.12), 40, {}, 0.01, baseline=True),
        "tau": metric(0.25, (0.15, 0.3), 38, {"no_json": 2}, 0.25, left_out=0.263),
        "exact": metric(0.5, (0.45, 0.56), 37, {"no_json": 3}, 0.4625),
    }
    lines = printed(replace(summary, metrics=metrics, stages={}), width=110)
    assert "\n".join(lines[4:13]) == dedent("""\
metric              value [95% interval]   n  missing  missing as worst  without missing
────────────────────────────────────────────────────────────────────────────────────────
tau ↑              0.250 [ 0.150, 0.300]  40   2 (5%)             0.250            0.263
exact ↑            0.500 [ 0.450, 0.560]  37   3 (8%)             0.463            0.500
────────────────────────────────────────────────────────────────────────────────────────
without any model
random ↑           0.010 [-0.100, 0.120]  40        –                 –                –
  tau: 2 missing (no_json 2); each counts as the worst score
  exact: 3 missing (no_json 3)""")


def test_a_baseline_that_the_data_cannot_give_has_no_line(summary):
    none = metric(None, None, 0, {}, None, baseline=True, undefined="nothing was scored")
    lines = printed(replace(summary, metrics={**summary.metrics, "item": none}), width=80)
    assert not [line for line in lines if "item" in line.split() or "without any model" in line]
    assert not [line for line in lines if "nothing was scored" in line]


def test_how_schemas_were_met_is_shown_where_one_was_asked_for(summary):
    asked = use(calls=1040, asked_schema=1040, met_schema=38, rungs={"strict": 40})
    stage = StageSummary(items=40, done=40, failures={}, roles={"candidate": asked, "judge": use()})
    summary = replace(summary, stages={"name": stage})
    console = Console(
        file=io.StringIO(), width=80, force_terminal=True, color_system="standard", highlight=False
    )
    noted = "interests/name, candidate: 1,040 calls asked for a schema, 38 replies met it"
    read = "  interests/name, candidate: 40 of 1,040 replies read: strict 100%"
    assert printed(summary, width=80, what=costs)[-3:] == [read, f"  {noted}", ""]
    costs([summary], console)
    assert f"\x1b[2m  {noted}" in console.file.getvalue()


def test_tokens_that_were_not_reported_are_no_number(summary):
    some = use(calls=40, prompt_tokens=30_200, completion_tokens=600, cached_tokens=90, untold=4)
    fields = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    none = use(calls=9, untold=9, **dict.fromkeys(fields))
    roles = {"candidate": some, "judge": none, "rule": use(calls=3)}
    stage = StageSummary(items=40, done=40, failures={}, roles=roles)
    lines = printed(replace(summary, stages={"name": stage}), width=80, what=costs)
    assert "\n".join(lines[-9:]) == dedent("""\
asked                      calls  stored  failed  tokens in  tokens out
───────────────────────────────────────────────────────────────────────
interests/name, candidate     40      0%       0    ≥ 30.2k       ≥ 600
interests/name, judge          9      0%       0    unknown     unknown
interests/name, rule           3      0%       0          0           0
  interests/name, candidate: ≥ 90 tokens cached
  interests/name, candidate: usage unknown for 4 of 40 calls
  interests/name, judge: usage unknown for 9 of 9 calls
""")


def test_what_was_noted_stands_below_the_data_and_what_was_counted_below_the_metrics(summary):
    noted = {"rows left out for want of a rating": 1204, "users left out": 2}
    counted = {"invented citations": 1204, "windows unreadable": 3}
    data = {**summary.data, "notes": noted}
    lines = printed(replace(summary, data=data, counts=counted), width=80)
    assert "\n".join(lines[2:6]) == dedent("""\
data: people.csv
  rows left out for want of a rating: 1,204
  users left out: 2
""")
    assert "\n".join(lines[10:18]) == dedent("""\
coverage ↑  0.250 [0.150, 0.300]  40        –                 –
  support, grounded: 3 missing (name/no_json 2, support/timeout 1)

counted             times
─────────────────────────
invented citations  1,204
windows unreadable      3
""")


def test_metrics_without_an_interval_say_why_and_samples_are_told_from_users(summary):
    without = metric(0.5, None, 1, {}, 0.5, no_interval="only one user")
    metrics = {"a": without, "b": without, "c": metric(0.5, (0.4, 0.6), 2, {}, 0.5)}
    assert "\n".join(printed(replace(summary, metrics=metrics), width=80)[6:10]) == dedent("""\
a ↑     0.500                 1        –                 –
b ↑     0.500                 1        –                 –
c ↑     0.500 [0.400, 0.600]  2        –                 –
  a, b: no interval: only one user""")
    metrics = {"pairs": metric(0.5, (0.4, 0.6), 4000, {}, 0.5, users=40)}
    lines = printed(replace(summary, metrics=metrics), width=80)
    assert "  pairs: 4,000 samples of 40 users" in lines


def test_names_are_neither_markup_nor_control_characters(summary):
    evil = "[bold red]x[/] \x1b[31m :smile:"
    console = Console(file=io.StringIO(), width=100, color_system=None)
    roles = {evil: use(rungs={evil: 1})}
    stage = StageSummary(items=1, done=0, failures={evil: 1}, roles=roles)
    result = metric(0.5, None, 3, {evil: 1}, 0.4, undefined=evil)
    hostile = replace(
        summary, task=evil, model=evil, roles={"judge": evil}, metrics={evil: result},
        stages={evil: stage}, comparable=False, not_comparable_because=(evil,),
    )  # fmt: skip
    print_metrics([hostile, hostile], console)
    costs([hostile], console)
    shown = console.file.getvalue()
    assert "\x1b" not in shown
    assert "[bold red]x[/] \\x1b[31m :smile:" in shown
    assert "😄" not in shown


def test_below_the_costs_stands_what_is_not_known_of_them(summary):
    cost = Cost(
        model="openai:gpt", currency="USD", priced=True, asked=400, paid=1.5, paid_unknown=12,
        reused=0, saved=0.0, saved_unknown=0,
    )  # fmt: skip
    asked = use(calls=400, cost=cost)
    stage = StageSummary(items=400, done=400, failures={}, roles={"candidate": asked})
    lines = printed(replace(summary, stages={"name": stage}), width=80, what=costs)
    assert "\n".join(lines[-5:-1]) == dedent("""\
model       calls  paid, USD  reused  saved, USD
────────────────────────────────────────────────
openai:gpt    400     ≥ 1.50       0           0
  openai:gpt: usage unknown or incomplete for 12 of 400 calls""")


def test_parts_that_are_missing_inside_units_are_a_share_with_a_second_value(summary):
    metrics = {
        "is": metric(1.0, (1.0, 1.0), 40, {}, 0.885, missing_share=0.115),
        "tau": metric(0.25, (0.15, 0.3), 38, {"no_json": 2}, 0.24, left_out=0.263,
                      missing_share=0.1),
        "whole": metric(0.5, (0.4, 0.6), 40, {}, 0.5),
    }  # fmt: skip
    lines = printed(replace(summary, metrics=metrics, stages={}), width=110)
    assert "\n".join(lines[4:12]) == dedent("""\
metric   value [95% interval]   n       missing  missing as worst  without missing
──────────────────────────────────────────────────────────────────────────────────
is ↑     1.000 [1.000, 1.000]  40  12% of parts             0.885            1.000
tau ↑    0.250 [0.150, 0.300]  40       2 (10%)             0.240            0.263
whole ↑  0.500 [0.400, 0.600]  40             –                 –                –
  is: 12% is missing, with parts of units
  tau: 2 missing (no_json 2); each counts as the worst score
  tau: 10% is missing, with parts of units; it counts as the worst score""")


def test_missing_units_that_are_not_the_candidate_s_are_not_among_those_counted(summary):
    result = metric(
        0.25, (0.15, 0.3), 35, {"profile/empty": 3, "rank/no_json": 2}, 0.2, left_out=0.3,
        not_counted=3,
    )  # fmt: skip
    lines = printed(replace(summary, metrics={"tau": result}, stages={}), width=120)
    assert lines[6].split()[5] == "37"
    assert lines[7] == (
        "  tau: 5 missing (profile/empty 3, rank/no_json 2); each counts as the worst score, "
        "except 3 that are missing by other roles"
    )


@pytest.mark.parametrize(
    ("counts", "head"),
    [
        ((None, None), "missing as worst"),
        (("ranked at random", "ranked at random"), "missing as ranked at random"),
        (("ranked at random", None), "missing counted"),
    ],
)
def test_the_column_of_what_is_missing_says_as_what_it_counts(counts, head):
    results = [
        metric(0.5, (0.4, 0.6), 9, {"a/b": 1}, 0.45, **({"counts_as": each} if each else {}))
        for each in counts
    ]
    assert other_policies(results) == (head,)
    # Where nothing is missing, nothing counts as anything.
    whole = [metric(0.5, (0.4, 0.6), 9, {}, None, counts_as="0"), metric(0.5, None, 9, {}, None)]
    assert other_policies(whole) == ("missing as worst",)


STAGES = tuple(StageEntry(name=name, key="k", file=f"{name}.jsonl") for name in ("ask", "check"))


def task(name, value=0.5, **more):
    interval = None if value is None else (value - 0.25, value + 0.25)
    metrics = {
        "hits": make_metric(value, n=40, interval=interval),
        "loss": make_metric(2.0, n=9, higher_is_better=False),
    }
    usual = {
        "model": "gpt", "thinks": False, "roles": {"candidate": "gpt", "judge": "llama"},
        "main": ("hits",), "metrics": metrics,
    }  # fmt: skip
    return make_summary(name, **{**usual, **more})


def mean(name, *tasks, value=0.5, over="tasks", **more):
    usual = {"metric": "hits", "higher_is_better": True, "confidence": 0.95}
    interval = None if value is None else (0.375, 0.625)
    return MeanOverTasks(
        name=name, over=over, tasks=tasks, value=value, interval=interval, **{**usual, **more}
    )


def ending(*summaries, means=(), planned=None, groups=None, run="runs/one", **options):
    names = planned or [each.task for each in summaries]
    entries = {name: make_entry(make_task(name), *STAGES) for name in names}
    without_mean = options.pop("without_mean", ())
    manifest = make_manifest(
        model="gpt", tasks=entries, groups=groups or {}, without_mean=without_mean
    )
    reports = options.pop("reports", ())
    return lines_on(
        lambda console: print_short_table(
            manifest, summaries, means, run=run, reports=reports, console=console
        ),
        **{"width": 80, **options},
    )


def test_a_task_is_a_line_of_its_main_metric_with_direction_interval_n_and_missing():
    lost = make_metric(0.25, n=30, missing={"no_json": 8, "timeout": 2}, higher_is_better=False)
    lines = ending(
        task("films", comparable=False, not_comparable_because=("bundled sample data",)),
        task("books", metrics={"loss": lost}, main=("loss",)),
    )
    assert lines == [
        "gpt, without thinking; judge: llama",
        "task   main metric                 value   n   missing",
        "──────────────────────────────────────────────────────",
        "films  hits ↑       0.500 [0.250, 0.750]  40         –",
        "books  loss ↓       0.250                 30  10 (25%)",
        "not comparable to published: bundled sample data (1 of 2 tasks)",
        "missing in 1 of 2 tasks: no_json 8, timeout 2",
        "more: harness show runs/one",
    ]


def test_missing_parts_are_named_with_the_causes_of_units_and_units_counted_as_worst_are_in_n():
    parts = make_metric(0.5, n=40, missing_share=0.06)
    whole = make_metric(0.5, n=30, missing={"no_json": 10})
    lines = ending(task("films", metrics={"hits": parts}), task("books", metrics={"hits": whole}))
    assert "missing in 2 of 2 tasks: no_json 10, parts of units" in lines
    known = make_metric(0.5, n=40, missing_share=0.06, missing_parts=(4, 77))
    both = make_metric(0.5, n=30, missing={"no_json": 10}, missing_share=0.3, missing_parts=(4, 77))
    for result, cell in ((parts, "6% of parts"), (known, "4 of 77 parts"),
                         (both, "10, 4 of 77 parts"), (whole, "10 (25%)")):  # fmt: skip
        assert ending(task("films", metrics={"hits": result}))[3].endswith(f"  {cell}")
    assert "missing: parts of units" in ending(task("films", metrics={"hits": parts}))
    assert "missing: no_json 10" in ending(task("books", metrics={"hits": whole}))
    counted = make_metric(0.25, n=30, missing={"no_json": 10}, left_out=0.5)
    assert ending(task("films", metrics={"hits": counted}))[3].split()[-3:] == [
        "40", "10", "(25%)",
    ]  # fmt: skip


def test_a_group_is_its_mean_with_its_tasks_below_each_once():
    lines = ending(
        task("a"), task("alone"), task("b"),
        means=[mean("both", "a", "b")], groups={"both": ("a", "b")},
    )  # fmt: skip
    assert [line.rstrip() for line in lines[3:7]] == [
        "both (mean of 2)  hits ↑       0.500 [0.375, 0.625]  80        –",
        "  a               hits ↑       0.500 [0.250, 0.750]  40        –",
        "  b               hits ↑       0.500 [0.250, 0.750]  40        –",
        "alone             hits ↑       0.500 [0.250, 0.750]  40        –",
    ]
    groups = {"whole": ("inner", "c"), "inner": ("a", "b")}
    means = [mean("whole", "a", "b", "c"), mean("inner", "a", "b")]
    lines = ending(task("a"), task("b"), task("c"), means=means, groups=groups)
    names = [line[:18].rstrip() for line in lines[3:8]]
    assert names == ["whole (mean of 3)", "  inner (mean of 2", "    a", "    b", "  c"]


def test_the_best_answer_without_a_model_stands_beside_the_value_of_its_metric():
    def with_rules(name, popular, drawn):
        rules = {"popular": popular, "drawn": drawn, "odd": None}
        metrics = {rule: make_metric(value, n=40, baseline="hits") for rule, value in rules.items()}
        return task(name, metrics={"hits": make_metric(0.5, n=40), **metrics})

    both = {"means": [mean("both", "a", "b")], "groups": {"both": ("a", "b")}}
    lines = ending(with_rules("a", 0.1, 0.3), with_rules("b", 0.4, 0.2), **both)
    assert lines[1].split()[-4:] == ["value", "baseline", "n", "missing"]
    # The best mean over both is that of 0.1 and 0.4, or of 0.3 and 0.2.
    assert [line.split()[-3] for line in lines[3:6]] == ["0.250", "0.300", "0.400"]
    lines = ending(with_rules("a", 0.1, 0.3), task("b"), **both)
    assert [line.split()[-3] for line in lines[3:6]] == ["0.625]", "0.300", "0.750]"]


def test_groups_that_have_no_mean_say_so_or_are_headings():
    lines = ending(task("a"), task("b", main=("loss",)), groups={"both": ("a", "b")})
    assert lines[3] == "both (mean of 2)                main metrics differ"
    assert [line.split()[0] for line in lines[4:6]] == ["a", "b"]
    groups = {"whole": ("inner",), "inner": ("a", "b")}
    lines = ending(task("a"), task("b"), groups=groups, without_mean=("whole", "inner"))
    assert [line[:17].rstrip() for line in lines[3:6]] == ["whole (2 tasks)", "  a", "  b"]
    assert lines[6].startswith("more:")


def test_a_table_without_a_number_of_its_own_is_left_out():
    def shown(*row, digits=2):
        one = Sheet(title="T", columns=("model", "a", "avg.", "low"), rows=(row,), digits=digits)
        means = [mean("both", "a", "b", value=0.61)]
        lines = ending(
            task("a", value=0.4567), task("b"), means=means, groups={"both": ("a", "b")},
            reports=[Report(sheets=(one,))],
        )  # fmt: skip
        return "T" in lines

    # 0.46 is 0.4567 in two digits; 0.375 is the low end of the mean's interval.
    assert not shown("gpt", 0.46, 0.61, 0.375)
    assert not shown("gpt", None, "–", 7)
    assert shown("gpt", 0.46, 0.61, 0.39)
    assert shown("gpt", 0.46, 0.61, 0.375, digits=(1, 3, 3, 3))


def test_repeats_are_one_line_and_unfinished_tasks_say_so_after_the_others():
    repeats = ("a", "a@2")
    lines = ending(task("a"), task("a@2"), means=[mean("a", *repeats, over="repeats")])
    (of_two,) = [line for line in lines if line.startswith("a ")]
    assert of_two == "a ×2  hits ↑       0.500 [0.375, 0.625]  80        –"
    lines = ending(task("a"), planned=repeats, means=[mean("a", "a", over="repeats")])
    assert lines[3].startswith("a ×1 of 2  hits ↑")
    lines = ending(task("b"), planned=["a", "b"])
    assert [line.split()[0] for line in lines[3:5]] == ["b", "a"]
    assert lines[4] == "a                    0 of 2 stages done"


def test_of_more_than_24_tasks_those_of_a_group_are_shown_by_its_mean():
    names = [f"t{n}" for n in range(25)]
    tasks = [task(name) for name in names]
    means, groups = [mean("all", *names)], {"all": tuple(names)}
    lines = ending(*tasks, task("alone"), means=means, groups=groups)
    assert [line.split()[0] for line in lines[3:-1]] == ["all", "alone"]
    few = [mean("all", *names[:24])]
    few = ending(*tasks[:24], means=few, groups={"all": tuple(names[:24])})
    assert [line.split()[0] for line in few[3:-1]] == ["all", *names[:24]]
    # Without a mean nothing stands for them.
    none = mean("all", *names, value=None, undefined="3 of 25 tasks have no value")
    lines = ending(*tasks, means=[none], groups=groups)
    assert lines[3].split()[4:] == ["hits", "↑", "no", "mean", "1,000", "–"]
    assert [line.split()[0] for line in lines[4:-1]] == names


def test_a_terminal_cuts_names_and_notes_and_a_pipe_nothing():
    why = tuple(f"reason number {n} of many" for n in range(20))
    name = "a_task_with_a_very_long_name_that_no_screen_can_hold_001"
    fields = (each for each in RoleUse.__struct_fields__ if each not in ("rungs", "cost"))
    spent = RoleUse(**{**dict.fromkeys(fields, 0), "calls": 60, "thought_out": 59}, rungs={})
    stage = StageSummary(items=1, done=0, failures={}, roles={"candidate": spent})
    one = task(name, comparable=False, not_comparable_because=why, stages={"ask": stage},
               notes=("a note that is " + "long " * 40, "another"))  # fmt: skip
    lines = ending(one, force_terminal=True)
    assert all(len(line) <= 80 for line in lines)
    assert lines[3].startswith("a_task") and lines[3].split()[0].endswith("001")
    assert sum(line.endswith("…") for line in lines) == 2
    assert result_console(io.StringIO()).width == 120
    whole = ending(one)
    assert whole[3].startswith(name) and "reason number 19 of many" in whole[4]
    assert not any("…" in line for line in whole)
    assert "59 replies spent their limit on thinking: switch it off or allow more" in whole
    assert any(line.startswith("note (and 1 more): a note") for line in whole)


def test_roles_stand_after_the_judge_and_one_that_follows_the_candidate_unless_named_says_so():
    made = make_task("a", roles={"predictor": RoleSpec(same_as="candidate")})
    summary = replace(task("a"), roles={"candidate": "gpt", "predictor": "gpt"})

    def head(**roles):
        manifest = make_manifest(
            model="gpt", tasks={"a": make_entry(made, *STAGES)}, asked={"roles": roles}
        )
        return lines_on(lambda console: print_short_table(
            manifest, [summary], (), run="r", console=console
        ), width=80)[0]  # fmt: skip

    assert head() == "gpt, without thinking; predictor: the candidate"
    assert head(predictor={"kind": "k"}) == "gpt, without thinking; predictor: gpt"
    roles = {"profiler": "qwen", "judge": "llama", "overlap_judge": "llama", "verifier": "qwen"}
    assert ending(replace(task("a"), thinks=True, roles=roles))[0] == (
        "gpt, with thinking; judge: llama; profiler, verifier: qwen"
    )


def test_names_are_no_control_characters():
    lines = ending(task("[red]\x1b[31m"), run="\x1b")
    assert "\x1b" not in "".join(lines)
    assert any("[red]" in line for line in lines)
