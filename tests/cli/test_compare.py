import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from builders.runs import KEY, make_entry, make_line, make_manifest, make_task, write_journal
from cli import conftest

from harness.base.errors import DataError, UsageError
from harness.cli.compare import compare, score
from harness.contracts.records import Done
from harness.runs.manifest import RoleEntry, StageEntry
from harness.runs.run_folder import RunFolder
from harness.scoring.score_run import read_summary


def test_finished_tasks_are_scored_and_unfinished_ones_named(kept_run, toy_plugin, capsys):
    assert scored(str(kept_run.path)) == 1
    out, err = capsys.readouterr()
    assert "toy" in out
    assert "many" in out
    assert "2.000" in out
    assert "task 'later' is not finished" in err
    assert "stages with items that have no record: name" in err
    summary = read_summary(kept_run.summary("toy"))
    assert summary is not None
    assert (summary.metrics["many"].value, summary.metrics["many"].n) == (2.0, 1)
    assert summary.metrics["many"].missing == {"ValueError": 1, "no_json": 1}
    assert not kept_run.summary("later").exists()


def test_a_run_that_is_not_there_is_told_with_the_newest_and_keeps_no_other_from_its_scores(
    kept_run, toy_plugin, capsys
):
    beside = kept_run.path.parent
    (beside / "zzz-no-run").mkdir()
    assert scored(str(beside / "none-of-that-kind"), str(kept_run.path)) == 1
    assert f"to do:    the newest run is {kept_run.path}\n" in capsys.readouterr().err
    assert kept_run.summary("toy").exists()


def test_a_statistic_that_fails_is_the_plugin_s_error_with_its_line(kept_run, site, capsys):
    code = conftest.PLUGIN.replace(
        'Metric(description="interests named")',
        'Metric(description="interests named", statistic=lambda column: {}["column"])',
    )
    site.install("toybench", {"toybench": "toybench_plugin"}, {"toybench_plugin.py": code})
    assert scored(str(kept_run.path), "--task", "toy") == 1
    said = capsys.readouterr().err
    assert "the statistic of a metric failed" in said
    assert "KeyError: 'column'" in said and "toybench_plugin.py" in said
    assert not kept_run.summary("toy").exists()


def test_a_run_at_work_is_left_alone(kept_run, toy_plugin):
    kept_run.lock()
    try:
        assert scored(str(kept_run.path)) == 1
    finally:
        kept_run.unlock()
    assert not kept_run.summary("toy").exists()


def test_a_missing_plugin_is_named(kept_run, capsys):
    assert scored(str(kept_run.path)) == 1
    assert "toybench" in capsys.readouterr().err


COMMAND = (
    "--model", "baseline", "--judge", "lexical", "--data", "sample", "--limit", "2",
    "--reuse", "run", "--json",
)  # fmt: skip
CHANGE = ("--set", "interests.min_support=1")


@pytest.fixture
def ran(printed, tmp_path):
    """The folder of a run of these tasks, and what it printed."""

    def run(*more, tasks="interests"):
        place = tmp_path / f"runs{len(more)}"
        out = printed(*COMMAND, "--tasks", tasks, *more, "--output-path", str(place)).out
        return next(place.iterdir()), json.loads(out)

    return run


def test_a_run_is_scored_as_if_it_had_been_asked_so_but_not_if_the_candidate_was(ran, printed):
    folder, before = ran()
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    [summary] = json.loads(printed("score", str(folder), *CHANGE, "--json").out)["runs"][0][
        "summaries"
    ]
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == files
    _, asked = ran(*CHANGE)
    assert summary["metrics"] == asked["summaries"][0]["metrics"]
    assert summary["metrics"]["grounded"] != before["summaries"][0]["metrics"]["grounded"]
    assert summary["not_comparable_because"][-1] == "scored with min_support 3 → 1"
    said = printed("score", str(folder), "--set", "window=5", code=2).err
    assert "window 20 → 5" in said
    assert "changes of min_support" in said


def test_of_one_task_of_several_only_that_task_is_printed(ran, printed):
    folder, _ = ran(tasks="interests_all")
    for more in ((), CHANGE):
        shown = printed("score", str(folder), "--task", "interests", *more).out
        assert "interests  version 1, baseline" in shown
        assert "not scored" not in shown and "interests_short" not in shown


PLUGIN = """
import json
import msgspec
from harness.registry.hookspecs import hookimpl
from harness.contracts.benchmark import Benchmark, Metric, Oracle
from harness.contracts.stage import Item, Stage
from harness.contracts.records import Score


class Person(Item, frozen=True, kw_only=True):
    pass


class Limits(msgspec.Struct, frozen=True):
    least: int = 1


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limits: Limits = Limits()


def score(records, options):
    for record in records["find"]:
        found = [n for n in record.outcome.value if n >= options.limits.least]
        values = {"found": 1.0, "many": float(len(found))}
        yield Score(id=record.id, user=record.user, values=values, details=found)


def gather(scores, held):
    united = {user: set(ids) for user, ids in (held or {}).items()}
    for one in scores:
        united.setdefault(one.user, set()).update(one.details)
    return united


def rescore(one, united, options):
    wanted = united[one.user]
    share = len(wanted & set(one.details)) / len(wanted) if wanted else 0.0
    return msgspec.structs.replace(one, values={**one.values, "found": share})


ORACLE = Oracle(
    gather=gather, rescore=rescore, metrics=("found",),
    read=lambda data, options: json.loads(data),
    write=lambda united: json.dumps({u: sorted(ids) for u, ids in united.items()}).encode(),
)


def make(name, oracle):
    return Benchmark(
        name=name, version=1, load=None, score=score, oracle=oracle, details=list[int],
        options=Options, scored_with=("limits",),
        metrics={"found": Metric(description=""), "many": Metric(description="")},
        stages=(Stage(name="find", item=Person, value=list[int], items=None, work=None,
                      roles=("candidate",)),),
    )


@hookimpl
def register_benchmarks(register):
    register("finds", lambda: make("finds", ORACLE))
    register("plain", lambda: make("plain", None))
"""


@pytest.fixture(autouse=True)
def finds(site):
    """An installed plugin with the benchmarks `finds` and `plain`, the latter without an oracle."""
    site.install("finds", {"finds": "finds_plugin"}, {"finds_plugin.py": PLUGIN})


def a_run(folder, name, found, *, tasks=("t",), benchmark="finds", items=2, model=None):
    run = RunFolder(folder / "runs" / name)
    entries = {}
    for task_name in tasks:
        task = make_task(task_name, benchmark=benchmark, metrics=("found", "many"))
        stage = StageEntry(name="find", key=KEY, file="1-find.jsonl", items=items)
        entries[task_name] = make_entry(task, stage, folder=f"of-{len(entries)}")
        lines = (
            make_line(number, {"id": user, "user": user}, Done(list(ids)))
            for number, (user, ids) in enumerate(found.items())
        )
        write_journal(run.path / entries[task_name].folder / "1-find.jsonl", *lines)
    roles = {"candidate": RoleEntry(name=name)}
    run.write_manifest(make_manifest(run_id=name, model=model or name, tasks=entries, roles=roles))
    return str(run.path)


def scored(*arguments):
    code: int = score.main(arguments, standalone_mode=False)
    return code


def compared(*arguments):
    """The exit code of a comparison of runs, which have been scored."""
    runs = [word for word in arguments if RunFolder(Path(word)).manifest_file.exists()]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        scored(*runs)
    code: int = compare.main(arguments, standalone_mode=False)
    return code


def three_runs(folder):
    """Whose shares of all that was found are 1/2, 1/4 and 5/8 on average."""
    return [
        a_run(folder, "one", {"ann": [1, 2], "bob": [1]}),
        a_run(folder, "two", {"ann": [2, 3], "bob": []}),
        a_run(folder, "three", {"ann": [4], "bob": [1, 2]}),
    ]


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def comparison_in(text):
    [comparison] = json.loads(text)["comparisons"]
    return comparison


def shares(comparison, metric="found"):
    return {run["run"]: run["metrics"][metric]["value"] for run in comparison["runs"]}


def test_runs_are_shown_by_their_main_metric_and_written_as_one_document(tmp_path, capsys):
    runs = three_runs(tmp_path)
    assert compared(*runs) == 0
    out = capsys.readouterr().out
    assert out.startswith("undecided on t: 2 people can show differences from .54 up\n3 runs on")
    lines = [line.split() for line in out.splitlines()]
    assert ["task", "metric", "one", "two", "three", "n"] in lines
    assert ["t", "found", "↑", "0.500", "0.250", "0.625", "2"] in lines
    assert not any("many" in line for line in lines)
    own = json.loads((tmp_path / "runs" / "two" / "t" / "summary.json").read_text())
    assert own["metrics"]["found"]["value"] == 1.0
    file = tmp_path / "comparison.json"
    assert compared(*runs, "--output", str(file), "--json") == 0
    comparison = comparison_in(file.read_text())
    assert shares(comparison) == {"one": 0.5, "two": 0.25, "three": 0.625}
    assert [run["path"] for run in comparison["runs"]] == runs
    assert comparison == comparison_in(capsys.readouterr().out)


def test_differences_are_from_the_run_that_is_named_by_folder_or_label(tmp_path, capsys):
    one, two, three = three_runs(tmp_path)
    assert compared(three, one, "--against", two) == 0
    lines = [line.replace("[ ", "[").split()[-8:] for line in
             capsys.readouterr().out.splitlines()]  # fmt: skip
    # ann is alike in one and two, bob has 1/2 and 0; exchanged or not it is as large.
    assert ["−", "two", "+0.250", "[0.000,", "+0.500]", "1.000", "1.000", "2"] in lines
    # 1/4 and 1 against 1/2 and 0: -1/4 and 1.
    assert ["−", "two", "+0.375", "[-0.250,", "+1.000]", "1.000", "1.000", "2"] in lines
    for base in (two, "two"):
        assert compared(three, one, two, "--against", base, "--json") == 0
        found = comparison_in(capsys.readouterr().out)["differences"]
        assert [(each["first"], each["second"]) for each in found] == [
            ("three", "two"), ("one", "two"),
        ]  # fmt: skip
    with pytest.raises(DataError, match="this run does not exist"):
        compared(one, two, "--against", "four")


def test_json_has_the_metrics_that_are_asked_for_and_verbose_all_of_them(tmp_path, capsys):
    people = [f"p{number}" for number in range(7)]
    one = a_run(tmp_path, "one", {who: [1, 2] for who in people}, benchmark="plain", items=7)
    two = a_run(tmp_path, "two", {who: [1] for who in people}, benchmark="plain", items=7)
    assert compared(two, one, "--json") == 0
    comparison = comparison_in(capsys.readouterr().out)
    assert (comparison["main"], comparison["oracle"]) == (["found"], None)
    assert [each["metric"] for each in comparison["differences"]] == ["found"]
    assert compared(two, one, "--verbose", "--json") == 0
    found, many = comparison_in(capsys.readouterr().out)["differences"]
    assert (found["value"], found["p"], found["p_holm"]) == (0.0, 1.0, 1.0)
    # The first has 1 thing of each person, the second 2. Of the 128 ways of exchanging only none
    # and all give ±1: p is 1/64, which Holm doubles, as two metrics are tested.
    assert (many["first"], many["second"]) == ("two", "one")
    assert (many["value"], many["p"], many["p_holm"]) == (-1.0, 1 / 64, 1 / 32)


def test_a_comparison_changes_no_run_and_needs_scores_or_other_options(tmp_path, capsys):
    runs = three_runs(tmp_path)
    before = files_of(tmp_path / "runs")
    assert compare.main(runs, standalone_mode=False) == 1
    err = capsys.readouterr().err
    assert f"{runs[0]}: not compared, as it is not scored: t" in err
    assert f"`harness score {runs[0]}` scores it" in err
    assert files_of(tmp_path / "runs") == before
    changes = ("--set", "finds.limits.least=2", "--json")
    assert compare.main((*runs, "--metric", "found", "--metric", "many", *changes),
                        standalone_mode=False) == 0  # fmt: skip
    document = json.loads(capsys.readouterr().out)
    assert scored(*runs, *changes) == 0
    assert files_of(tmp_path / "runs") == before
    # From 2 on: ann 2, bob nothing; ann 2 3, bob nothing; ann 4, bob 2. All: ann 2 3 4, bob 2.
    assert shares(document["comparisons"][0], "many") == {"one": 0.5, "two": 1.0, "three": 1.0}
    found = shares(document["comparisons"][0])
    assert found == pytest.approx({"one": 1 / 6, "two": 1 / 3, "three": 2 / 3})
    summary = json.loads(capsys.readouterr().out)["runs"][0]["summaries"][0]
    assert not summary["comparable"]
    assert summary["not_comparable_because"] == ["scored with limits.least 1 → 2"]


def test_a_task_of_one_run_only_is_named_where_others_are_compared(tmp_path, capsys):
    found = {"ann": [1], "bob": [2]}
    one = a_run(tmp_path, "one", found, benchmark="plain", tasks=("s", "t"))
    two = a_run(tmp_path, "two", found, benchmark="plain")
    assert compared(one, two) == 0
    out, err = capsys.readouterr()
    assert out.startswith("undecided on t\n2 runs on the units that all of them share")
    assert err == "harness: task s is not compared: only one has finished it\n"


def test_an_oracle_is_read_united_and_exported_into_the_same_file(tmp_path, capsys):
    one, file = a_run(tmp_path, "one", {"ann": [1, 2], "bob": [1]}), tmp_path / "oracle.json"
    file.write_text('{"ann": [9], "zoe": [1]}')
    assert compared(one, "--oracle", str(file), "--export_oracle", str(file), "--json") == 0
    assert json.loads(file.read_text()) == {"ann": [1, 2, 9], "zoe": [1], "bob": [1]}
    comparison = comparison_in(capsys.readouterr().out)
    assert shares(comparison) == {"one": pytest.approx((2 / 3 + 1) / 2)}
    assert comparison["oracle"]["warning"] is None


def test_an_oracle_is_that_of_one_task(tmp_path):
    one = a_run(tmp_path, "one", {"ann": [1], "bob": [2]}, tasks=("s", "t"))
    file = tmp_path / "o.json"
    with pytest.raises(UsageError, match="an oracle belongs to one task") as caught:
        compared(one, "--export_oracle", str(file))
    assert (caught.value.found, caught.value.expected) == ("s, t", "--task NAME with one of them")
    assert compared(one, "--export_oracle", str(file), "--task", "s") == 0
    assert json.loads(file.read_text()) == {"ann": [1], "bob": [2]}


def test_what_cannot_be_compared_is_named_and_costs_the_others_nothing(tmp_path, capsys):
    runs = three_runs(tmp_path)
    unfinished = a_run(tmp_path, "unfinished", {"ann": [1]}, items=None)
    (tmp_path / "runs" / "notes").mkdir()
    strange = str(tmp_path / "runs" / "notes")
    assert compared(*runs, unfinished, strange, runs[0] + "/", "--json") == 1
    out, err = capsys.readouterr()
    assert shares(comparison_in(out)) == {"one": 0.5, "two": 0.25, "three": 0.625}
    assert f"{unfinished}: not compared, as it is not finished: t" in err
    assert f"{strange}: no run in this folder" in err
    assert f"{runs[0]}/ is the same run as {runs[0]} and counts once" in err


def test_a_gate_on_a_task_that_is_left_out_is_refused(tmp_path):
    found = {"ann": [1], "bob": [2]}
    runs = [a_run(tmp_path, name, found, tasks=("s", "t")) for name in ("one", "two")]
    with pytest.raises(UsageError, match="`--task` leaves t out") as caught:
        compared(*runs, "--task", "s", "--gate", "t.many>-1")
    assert (caught.value.found, caught.value.exit_code) == ("t.many>-1", 2)
    assert compared(*runs, "--task", "s", "--gate", "s.many>-1") == 0


def test_one_run_is_counted_as_one(tmp_path):
    one = a_run(tmp_path, "one", {"ann": [1]})
    with pytest.raises(UsageError) as caught:
        compared(one, "--gate", "t.many>0")
    assert caught.value.found == "1 run without --against"
    with pytest.raises(UsageError) as caught:
        compared(one, "--tasks", "t")
    assert caught.value.found == "1 run and 1 task"


def test_what_no_run_has_cannot_be_compared(tmp_path, capsys):
    with pytest.raises(UsageError, match="no task 'u'"):
        compared(*three_runs(tmp_path / "others"), "--task", "u")
    plain = a_run(tmp_path, "one", {"ann": [1], "bob": []}, benchmark="plain")
    unfinished = a_run(tmp_path, "two", {"ann": [1]}, items=None)
    for run in (plain, unfinished):
        assert compared(run, "--output", str(tmp_path / "o.json")) == 1
        assert "there is nothing to compare" in capsys.readouterr().err
    assert not (tmp_path / "o.json").exists()


def test_names_in_runs_cannot_steer_the_terminal(tmp_path, capsys, printed):
    found, evil = {"ann": [1], "bob": [2]}, "t\x1bx"
    runs = [
        a_run(tmp_path, name, found, tasks=(evil,), benchmark="plain", model=f"\x1b[2J{name}")
        for name in ("one", "two")
    ]
    for words in (["score", *runs], ["show", runs[0]], ["compare", *runs],
                  ["compare", *runs, "--verbose"]):  # fmt: skip
        said = printed(*words)
        assert "\x1b" not in said.out + said.err, words
        assert "t\\x1bx" in said.out and "\\x1b[2Jone" in said.out, words
