"""The table that a run ends with, at the width and height of a screen."""

import pytest
from builders.runs import make_entry, make_manifest, make_metric, make_summary, make_task
from builders.texts import lines_on
from msgspec.structs import replace

from harness.contracts.report import Sheet
from harness.contracts.task import RoleSpec
from harness.reporting.tables import _fitting, _Row, print_short_table
from harness.runs.manifest import StageEntry
from harness.scoring.means import MeanOverTasks
from harness.scoring.summary import RoleUse, StageSummary

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


def printed(*summaries, means=(), planned=None, groups=None, run="runs/one", **options):
    names = planned or [each.task for each in summaries]
    entries = {name: make_entry(make_task(name), *STAGES) for name in names}
    without_mean = options.pop("without_mean", ())
    manifest = make_manifest(
        model="gpt", tasks=entries, groups=groups or {}, without_mean=without_mean
    )
    reserved, sheets = options.pop("reserved", 4), options.pop("sheets", ())
    return lines_on(
        lambda console: print_short_table(
            manifest, summaries, means, run=run, reserved=reserved, sheets=sheets, console=console
        ),
        **{"width": 80, **options},
    )


def test_a_task_is_a_line_of_its_main_metric_with_direction_interval_n_and_missing():
    lost = make_metric(0.25, n=30, missing={"no_json": 8, "timeout": 2}, higher_is_better=False)
    lines = printed(
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
        "the rest: harness show runs/one",
    ]


def test_missing_parts_are_named_with_the_causes_of_whole_units():
    parts = make_metric(0.5, n=40, missing_share=0.06)
    whole = make_metric(0.5, n=30, missing={"no_json": 10})
    lines = printed(task("films", metrics={"hits": parts}), task("books", metrics={"hits": whole}))
    assert "missing in 2 of 2 tasks: no_json 10, parts of units" in lines
    known = make_metric(0.5, n=40, missing_share=0.06, missing_parts=(4, 77))
    both = make_metric(0.5, n=30, missing={"no_json": 10}, missing_share=0.3, missing_parts=(4, 77))
    for result, cell in ((parts, "6% of parts"), (known, "4 of 77 parts"),
                         (both, "10, 4 of 77 parts"), (whole, "10 (25%)")):  # fmt: skip
        assert printed(task("films", metrics={"hits": result}))[3].endswith(f"  {cell}")
    assert "missing: parts of units" in printed(task("films", metrics={"hits": parts}))
    assert "missing: no_json 10" in printed(task("books", metrics={"hits": whole}))


def test_units_that_a_value_counts_as_worst_are_among_its_units():
    counted = make_metric(0.25, n=30, missing={"no_json": 10}, left_out=0.5)
    assert printed(task("films", metrics={"hits": counted}))[3].split()[-3:] == [
        "40", "10", "(25%)",
    ]  # fmt: skip


def test_a_group_is_its_mean_with_its_tasks_below_each_once():
    lines = printed(
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
    lines = printed(task("a"), task("b"), task("c"), means=means, groups=groups)
    names = [line[:18].rstrip() for line in lines[3:8]]
    assert names == ["whole (mean of 3)", "  inner (mean of 2", "    a", "    b", "  c"]


def test_groups_that_have_no_mean_say_so_or_are_headings():
    lines = printed(task("a"), task("b", main=("loss",)), groups={"both": ("a", "b")})
    assert lines[3] == "both (mean of 2)                main metrics differ"
    assert [line.split()[0] for line in lines[4:6]] == ["a", "b"]
    groups = {"whole": ("inner",), "inner": ("a", "b")}
    lines = printed(task("a"), task("b"), groups=groups, without_mean=("whole", "inner"))
    assert [line[:17].rstrip() for line in lines[3:6]] == ["whole (2 tasks)", "  a", "  b"]
    assert lines[6].startswith("the rest:")


def sheet(title, rows=3):
    return Sheet(title=title, columns=("method", "QM"), rows=(("none", 0.4),) * rows, digits=3)


def test_tables_of_groups_stand_below_as_far_as_they_fit_but_the_first():
    lines = printed(task("a"), sheets=[sheet("Table 4"), sheet("Table 5", 30), sheet("Table 6")])
    assert [line for line in lines if line.startswith("Table")] == ["Table 4", "Table 6"]
    assert lines[4:6] == ["", "Table 4"]
    assert lines[-1] == "the rest: harness show runs/one"
    noted = replace(sheet("Table 4"), notes=("of runs",) * 20)
    assert printed(task("a"), sheets=[noted]).count("  of runs") == 20
    lines = printed(*map(task, "abcdefghij"), sheets=[noted])
    assert "  of runs" not in lines
    assert len(lines) == 3 + 10 + 7 + 1
    long = printed(*map(task, "abcdefghij"), sheets=[sheet("Table 4", 50)])
    assert long.count("none    0.400") == 50
    assert [line[0] for line in long[3:13]] == list("abcdefghij")


def test_a_table_without_a_number_of_its_own_is_left_out():
    def shown(*row, digits=2):
        one = Sheet(title="T", columns=("model", "a", "avg.", "low"), rows=(row,), digits=digits)
        means = [mean("both", "a", "b", value=0.61)]
        lines = printed(
            task("a", value=0.4567), task("b"), means=means, groups={"both": ("a", "b")},
            sheets=[one],
        )  # fmt: skip
        return "T" in lines

    # 0.46 is 0.4567 in two digits; 0.375 is the low end of the mean's interval.
    assert not shown("gpt", 0.46, 0.61, 0.375)
    assert not shown("gpt", None, "–", 7)
    assert shown("gpt", 0.46, 0.61, 0.39)
    assert shown("gpt", 0.46, 0.61, 0.375, digits=(1, 3, 3, 3))


def on_24_lines(counts, **options):
    """Tasks of several benchmarks, of each in a group without a mean; the last has no number."""
    tasks, entries, groups = [], {}, {}
    for name, many in counts.items():
        names = tuple(f"{name}_{number}" for number in range(many))
        groups[name] = names
        for each in names:
            entries[each] = make_entry(make_task(each, benchmark=name), *STAGES)
            tasks += [task(each)] if each != names[-1] else []
    manifest = make_manifest(model="gpt", tasks=entries, groups=groups, without_mean=tuple(groups))
    lines = lines_on(
        lambda console: print_short_table(
            manifest, tasks, (), run="runs/one", console=console, **options
        ),
        width=80, height=24, force_terminal=True,
    )  # fmt: skip
    return [line for line in lines if line.strip()]


def test_each_of_24_tasks_has_a_line_before_any_table_of_a_group():
    lines = on_24_lines({"films": 12, "books": 12}, sheets=[sheet("Table 4")])
    assert sum(line.strip().startswith(("films_", "books_")) for line in lines) == 24
    assert "Table 4" not in lines and not any(line.startswith("and ") for line in lines)
    lines = on_24_lines({"films": 24}, sheets=[sheet("Table 4")])
    assert lines.index("Table 4") > max(n for n, line in enumerate(lines) if "films_" in line)


def test_repeats_are_one_line_and_unfinished_tasks_say_so_after_the_others():
    repeats = ("a", "a@2")
    lines = printed(task("a"), task("a@2"), means=[mean("a", *repeats, over="repeats")])
    (of_two,) = [line for line in lines if line.startswith("a ")]
    assert of_two == "a ×2  hits ↑       0.500 [0.375, 0.625]  80        –"
    lines = printed(task("a"), planned=repeats, means=[mean("a", "a", over="repeats")])
    assert lines[3].startswith("a ×1 of 2  hits ↑")
    lines = printed(task("b"), planned=["a", "b"])
    assert [line.split()[0] for line in lines[3:5]] == ["b", "a"]
    assert lines[4] == "a                    0 of 2 stages done"


@pytest.mark.parametrize("many", [1, 24, 25, 28, 60, 200])
def test_it_fits_a_screen_whatever_the_number_of_tasks(many):
    why = tuple(f"reason number {n} of many" for n in range(20))
    names = [f"a_task_with_a_very_long_name_that_no_screen_can_hold_{n:03}" for n in range(many)]
    fields = (name for name in RoleUse.__struct_fields__ if name not in ("rungs", "cost"))
    use = RoleUse(**{**dict.fromkeys(fields, 0), "calls": 60, "thought_out": 59}, rungs={})
    stage = StageSummary(items=1, done=0, failures={}, roles={"candidate": use})
    tasks = [
        task(name, comparable=False, not_comparable_because=why, stages={"ask": stage},
             notes=("a note that is " + "long " * 40, "another"))
        for name in names
    ]  # fmt: skip
    lines = printed(*tasks)
    assert len(lines) <= 36
    assert all(len(line) <= 80 for line in lines)
    shown = [line for line in lines if line.startswith("a_task")]
    assert all(line.split()[0].endswith(f"{n:03}") for n, line in enumerate(shown))
    (more,) = [line for line in lines if line.startswith("and ")] or ["and 0 more tasks"]
    assert int(more.split()[1]) + len(shown) == many
    assert any(
        line.startswith(f"{59 * many:,} replies spent their limit on thinking") for line in lines
    )
    assert any(line.startswith("note (and 1 more): a note") for line in lines)


def test_where_a_group_s_tasks_do_not_fit_its_mean_stands_alone():
    names = [f"t{n}" for n in range(40)]
    tasks = [task(name) for name in names]
    groups = {"all": tuple(names)}
    lines = printed(*tasks, task("alone"), means=[mean("all", *names)], groups=groups)
    assert [line.split()[0] for line in lines[3:-1]] == ["all", "alone"]
    # Without a mean nothing stands for them, and as many as fit are listed.
    none = mean("all", *names, value=None, undefined="3 of 40 tasks have no value")
    lines = printed(*tasks, means=[none], groups=groups)
    assert lines[3].split()[4:] == ["hits", "↑", "no", "mean", "1,600", "–"]
    assert lines[4].split()[0] == "t0"
    assert len(lines) <= 36


def test_a_role_that_follows_the_candidate_is_named_so_unless_the_user_named_it():
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


def test_a_line_whose_head_is_cut_does_not_stand_below_another_benchmark():
    def row(name, benchmark, *, number=True):
        return _Row(name=name, benchmark=benchmark, is_number=number)

    rows = [
        row("usersum (2 tasks)", "u", number=False), row("  movielens", "u"), row("  raw", "u"),
        row("behaviour (2 tasks)", "b", number=False), row("  movies (1 task)", "b", number=False),
        row("    movies_a", "b"),
    ]  # fmt: skip
    assert [one.name for one in _fitting(rows, 4)] == [
        "usersum (2 tasks)",
        "  movielens",
        "movies_a",
    ]
    assert [one.name for one in _fitting(rows, 3)] == ["movielens", "movies_a"]
    assert _fitting(rows, 6) == rows


def test_names_are_no_control_characters():
    lines = printed(task("[red]\x1b[31m"), run="\x1b")
    assert "\x1b" not in "".join(lines)
    assert any("[red]" in line for line in lines)


def test_the_models_of_other_roles_are_named_after_the_judge():
    roles = {"profiler": "qwen", "judge": "llama", "overlap_judge": "llama", "verifier": "qwen"}
    assert printed(replace(task("a"), thinks=True, roles=roles))[0] == (
        "gpt, with thinking; judge: llama; profiler, verifier: qwen"
    )
