"""`harness score` on several runs of a benchmark that scores them against one another."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from builders.runs import KEY, make_entry, make_line, make_manifest, make_task, write_journal

from harness.base.errors import UsageError
from harness.cli.score import score
from harness.contracts.records import Done
from harness.runs.manifest import RoleEntry, StageEntry
from harness.runs.run_folder import RunFolder

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
    window: int = 100


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


def doubts(scores):
    wild = sum(n > 900 for one in scores for n in one.details)
    if wild:
        yield f"{wild} finds above 900"


ORACLE = Oracle(
    gather=gather, rescore=rescore, metrics=("found",),
    read=lambda data, options: json.loads(data), doubts=doubts,
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
def finds(site: Any) -> None:
    """An installed plugin with the benchmarks `finds` and `plain`, the latter without an oracle."""
    site.install("finds", {"finds": "finds_plugin"}, {"finds_plugin.py": PLUGIN})


def a_run(
    folder: Path,
    name: str,
    found: Mapping[str, Sequence[int]],
    *,
    tasks: Sequence[str] = ("t",),
    benchmark: str = "finds",
    options: Mapping[str, Any] | None = None,
    items: int | None = 2,
) -> str:
    run = RunFolder(folder / "runs" / name)
    entries = {}
    for task_name in tasks:
        task = make_task(
            task_name, benchmark=benchmark, metrics=("found", "many"), options=dict(options or {})
        )
        stage = StageEntry(name="find", key=KEY, file="1-find.jsonl", items=items)
        entries[task_name] = make_entry(task, stage)
        lines = (
            make_line(number, {"id": user, "user": user}, Done(list(ids)))
            for number, (user, ids) in enumerate(found.items())
        )
        write_journal(run.journal(task_name, 1, "find"), *lines)
    roles = {"candidate": RoleEntry(name=name)}
    run.write_manifest(make_manifest(run_id=name, model=name, tasks=entries, roles=roles))
    return str(run.path)


def scored(*arguments: str) -> int:
    code: int = score.main(arguments, standalone_mode=False)
    return code


def three_runs(folder: Path) -> list[str]:
    """Whose shares of all that was found are 1/2, 1/4 and 5/8 on average."""
    return [
        a_run(folder, "one", {"ann": [1, 2], "bob": [1]}),
        a_run(folder, "two", {"ann": [2, 3], "bob": []}),
        a_run(folder, "three", {"ann": [4], "bob": [1, 2]}),
    ]


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def comparison_in(text: str) -> Any:
    [comparison] = json.loads(text)["comparisons"]
    return comparison


def shares(comparison: Any, metric: str = "found") -> dict[str, float]:
    return {run["run"]: run["metrics"][metric]["value"] for run in comparison["runs"]}


def test_several_runs_of_a_task_are_compared_and_each_keeps_its_own_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scored(*three_runs(tmp_path)) == 0
    out = capsys.readouterr().out
    assert "t  version 1, 3 runs compared, oracle of 3 runs" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["found", "↑", "one", "0.500", "[0.500,", "0.500]", "2", "–", "–"] in lines
    assert ["two", "0.250", "[0.000,", "0.500]", "2", "–", "–"] in lines
    assert ["three", "0.625", "[0.250,", "1.000]", "2", "–", "–"] in lines
    # One of both people differs, and exchanged or not the difference is as large.
    differing = ["one", "−", "two", "+0.250", "0.000", "to", "+0.500", "1.000", "1.000", "2"]
    assert differing in [line[-10:] for line in lines]
    own = json.loads((tmp_path / "runs" / "two" / "t" / "summary.json").read_text())
    assert own["metrics"]["found"]["value"] == 1.0


def test_runs_of_a_benchmark_without_an_oracle_are_compared_when_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = [f"p{number}" for number in range(7)]
    one = a_run(tmp_path, "one", {who: [1, 2] for who in people}, benchmark="plain", items=7)
    two = a_run(tmp_path, "two", {who: [1] for who in people}, benchmark="plain", items=7)
    assert scored(one, two, "--json") == 0
    assert json.loads(capsys.readouterr().out)["comparisons"] == []
    assert scored(one, two, "--compare", "--json") == 0
    comparison = comparison_in(capsys.readouterr().out)
    assert comparison["oracle"] is None
    found, many = comparison["differences"]
    assert (found["value"], found["p"], found["p_holm"]) == (0.0, 1.0, 1.0)
    # Of the 128 ways of exchanging only none and all give ±1: p is 1/64, and doubled by Holm.
    assert (many["value"], many["p"], many["p_holm"]) == (1.0, 1 / 64, 1 / 32)
    assert (many["exact"], many["no_p"]) == (True, None)
    assert scored(one, two, "--compare") == 0
    out = capsys.readouterr().out
    assert out.startswith("t  version 1, 2 runs compared\n")
    assert "tokens in" not in out


def test_a_task_of_one_run_only_is_named_where_others_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"ann": [1], "bob": [2]}
    one = a_run(tmp_path, "one", found, benchmark="plain", tasks=("s", "t"))
    two = a_run(tmp_path, "two", found, benchmark="plain")
    assert scored(one, two, "--compare") == 0
    out, err = capsys.readouterr()
    assert "t  version 1, 2 runs compared\n" in out
    assert err == "harness: task s is not compared: only one has finished it\n"


def test_comparing_needs_two_runs_of_a_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = a_run(tmp_path, "one", {"ann": [1], "bob": []}, benchmark="plain")
    assert scored(one, "--compare") == 1
    err = capsys.readouterr().err
    assert "there is nothing to compare; no file was written" in err
    assert "expected: at least two runs that finished the same task" in err


def test_intervals_by_another_method_change_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = {f"p{number}": list(range(number)) for number in range(9)}
    one = a_run(tmp_path, "one", people, benchmark="plain", items=9)
    assert scored(one) == 0
    before = files_of(tmp_path / "runs")
    capsys.readouterr()
    assert scored(one, "--set", "interval.method=bca") == 0
    out = capsys.readouterr().out
    assert "95% BCa interval" in out
    assert "scored with interval.method percentile → bca" in out
    assert files_of(tmp_path / "runs") == before


def test_one_run_is_not_compared_unless_a_file_is_given_or_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = a_run(tmp_path, "one", {"ann": [1, 2], "bob": [1]})
    assert scored(one, "--json") == 0
    assert json.loads(capsys.readouterr().out)["comparisons"] == []
    assert scored(one, "--json", "--output", str(tmp_path / "o.json")) == 0
    assert shares(comparison_in(capsys.readouterr().out)) == {"one": 1.0}


def test_the_output_is_one_document_that_names_its_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, file = three_runs(tmp_path), tmp_path / "comparison.json"
    assert scored(*runs, "--output", str(file), "--json") == 0
    comparison = comparison_in(file.read_text())
    assert shares(comparison) == {"one": 0.5, "two": 0.25, "three": 0.625}
    assert [run["path"] for run in comparison["runs"]] == runs
    assert comparison == comparison_in(capsys.readouterr().out)


def test_an_oracle_is_read_united_and_exported_into_the_same_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, file = a_run(tmp_path, "one", {"ann": [1, 2], "bob": [1]}), tmp_path / "oracle.json"
    file.write_text('{"ann": [9], "zoe": [1]}')
    assert scored(one, "--oracle", str(file), "--export_oracle", str(file), "--json") == 0
    assert json.loads(file.read_text()) == {"ann": [1, 2, 9], "zoe": [1], "bob": [1]}
    comparison = comparison_in(capsys.readouterr().out)
    assert shares(comparison) == {"one": pytest.approx((2 / 3 + 1) / 2)}
    assert comparison["oracle"]["warning"] is None


def test_what_speaks_against_a_comparison_is_printed_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [a_run(tmp_path, name, {"ann": [1, 999]}, items=1) for name in ("one", "two")]
    assert scored(*runs) == 0
    assert "2 finds above 900" in capsys.readouterr().out
    assert scored(*runs, "--json") == 0
    assert comparison_in(capsys.readouterr().out)["doubts"] == ["2 finds above 900"]


def test_an_oracle_without_a_task_that_has_one_is_refused(tmp_path: Path) -> None:
    one = a_run(tmp_path, "one", {"ann": [1]}, benchmark="plain")
    with pytest.raises(UsageError, match="no benchmark of these runs has an oracle"):
        scored(one, "--oracle", str(tmp_path / "o.json"))


def test_an_oracle_is_that_of_one_task(tmp_path: Path) -> None:
    one = a_run(tmp_path, "one", {"ann": [1], "bob": [2]}, tasks=("s", "t"))
    file = tmp_path / "o.json"
    with pytest.raises(UsageError) as caught:
        scored(one, "--export_oracle", str(file))
    assert (
        str(caught.value)
        == """\
--export_oracle: an oracle belongs to one task, and several tasks of the runs have one
  found:    s, t
  expected: --task NAME with one of them"""
    )
    assert scored(one, "--export_oracle", str(file), "--task", "s") == 0
    assert json.loads(file.read_text()) == {"ann": [1], "bob": [2]}


def test_a_run_that_differs_is_named_with_what_differs_and_forced_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = three_runs(tmp_path)
    runs.append(a_run(tmp_path, "odd", {"ann": [5], "bob": [5]}, options={"window": 50}))
    assert scored(*runs) == 0
    assert "left out, option window 50 against 100: odd" in capsys.readouterr().out
    assert scored(*runs, "--force") == 0
    out = capsys.readouterr().out
    assert "forced in, option window 50 against 100: odd * (odd)" in out
    assert "4 runs compared" in out


def test_what_cannot_be_compared_is_named_and_costs_the_others_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = three_runs(tmp_path)
    unfinished = a_run(tmp_path, "unfinished", {"ann": [1]}, items=None)
    (tmp_path / "runs" / "notes").mkdir()
    strange = str(tmp_path / "runs" / "notes")
    assert scored(*runs, unfinished, strange, runs[0] + "/", "--json") == 1
    out, err = capsys.readouterr()
    assert shares(comparison_in(out)) == {"one": 0.5, "two": 0.25, "three": 0.625}
    assert "task 't' is not finished" in err
    assert f"{strange}: no run in this folder" in err
    assert f"{runs[0]}/ is the same run as {runs[0]} and is scored once" in err


def test_runs_are_scored_under_another_option_without_being_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = three_runs(tmp_path)
    before = files_of(tmp_path / "runs")
    assert scored(*runs, "--set", "finds.limits.least=2", "--json") == 0
    assert files_of(tmp_path / "runs") == before
    document = json.loads(capsys.readouterr().out)
    # From 2 on: ann 2, bob nothing; ann 2 3, bob nothing; ann 4, bob 2. All: ann 2 3 4, bob 2.
    assert shares(document["comparisons"][0], "many") == {"one": 0.5, "two": 1.0, "three": 1.0}
    assert shares(document["comparisons"][0]) == pytest.approx(
        {"one": 1 / 6, "two": 1 / 3, "three": 2 / 3}
    )
    summary = document["runs"][0]["summaries"][0]
    assert not summary["comparable"]
    assert summary["not_comparable_because"] == ["scored with limits.least 1 → 2"]


def test_an_option_that_decided_what_was_asked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be scored with these changes") as caught:
        scored(*three_runs(tmp_path), "--set", "window=50")
    assert "window 100 → 50" in str(caught.value)
    assert "changes of limits.least" in str(caught.value)


def test_a_task_that_no_run_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no task 'u'"):
        scored(*three_runs(tmp_path), "--task", "u")


def test_where_nothing_can_be_compared_no_file_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = a_run(tmp_path, "one", {"ann": [1], "bob": []}, benchmark="plain")
    unfinished = a_run(tmp_path, "two", {"ann": [1]}, items=None)
    for run in (plain, unfinished):
        assert scored(run, "--output", str(tmp_path / "o.json")) == 1
        assert "there is nothing to compare" in capsys.readouterr().err
    assert not (tmp_path / "o.json").exists()
