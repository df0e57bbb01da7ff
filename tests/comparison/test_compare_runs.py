"""Three runs that found things about people, scored against what they found together.

    run    ann        bob
    one    1, 2       1
    two    2, 3       nothing
    three  4          1, 2

`found` is the share of the oracle that a run has, `many` how much it found.
"""

import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from builders.runs import keep_task, make_summary, make_task
from builders.stages import make_benchmark, make_stage
from golden.result_schemas import schema_file
from rich.console import Console

from harness.base.errors import DataError, UsageError
from harness.cli.compare import exit_code
from harness.comparison.compare_runs import ComparedTasks, compare, compare_tasks
from harness.comparison.differences import differences_of
from harness.comparison.document import write_comparisons
from harness.comparison.gates import GatedRun, gates_of, with_gates
from harness.contracts.benchmark import Metric, Oracle
from harness.contracts.identity import RECORDED, SOFTWARE
from harness.contracts.records import Score
from harness.contracts.stage import Item
from harness.reporting.comparison_tables import print_gates
from harness.runs.manifest import RoleEntry, Session, StageEntry
from harness.scoring.finished_task import FinishedTask


class Person(Item, frozen=True, kw_only=True):
    pass


class Limits(msgspec.Struct, frozen=True):
    least: int = 2


class Options(msgspec.Struct, frozen=True):
    limits: Limits = Limits()
    window: int = 100


class Found(msgspec.Struct, frozen=True):
    ids: tuple[int, ...]


def gather(scores: Iterable[Score[Found]], held: Any) -> dict[str, set[int]]:
    united = {user: set(ids) for user, ids in (held or {}).items()}
    for score in scores:
        if score.details is not None:
            united.setdefault(score.user, set()).update(score.details.ids)
    return united


def rescore(score: Score[Found], united: Mapping[str, set[int]], options: Any) -> Score[Found]:
    if score.details is None:
        return score
    wanted = united[score.user]
    share = len(wanted & set(score.details.ids)) / len(wanted) if wanted else 0.0
    counts = {"nothing to find": 1} if not wanted else {}
    return msgspec.structs.replace(score, values={**score.values, "found": share}, counts=counts)


def read(data: bytes, options: Options) -> dict[str, list[int]]:
    try:
        found = msgspec.json.decode(data, type=dict[str, list[int]])
        return {user: [id for id in ids if id <= options.window] for user, ids in found.items()}
    except msgspec.DecodeError as error:
        raise DataError("no oracle", found=str(error)) from error


ORACLE = Oracle(
    gather=gather,
    rescore=rescore,
    read=read,
    write=lambda united: json.dumps({user: sorted(ids) for user, ids in united.items()}).encode(),
    metrics=("found",),
)
BENCHMARK = make_benchmark(
    make_stage("find", Person, Found, roles=("candidate",), judges=("judge",)),
    name="finds",
    metrics={
        "found": Metric(description="", note="against itself"),
        "middle": Metric(description="", of="found", statistic="median", note="against itself"),
        "many": Metric(description="", note="as counted"),
    },
    options=Options,
    scored_with=("limits",),
    details=Found,
    oracle=ORACLE,
)
LLAMA = {"kind": "openai", "name": "llama", "details": {"host": "here"}}
ONE = {"ann": (1, 2), "bob": (1,)}
TWO = {"ann": (2, 3), "bob": ()}
THREE = {"ann": (4,), "bob": (1, 2)}


def a_run(
    folder: Path,
    name: str,
    people: Mapping[str, tuple[int, ...] | None],
    *,
    options: Mapping[str, Any] | None = None,
    candidate: str = "",
    details: Mapping[str, Any] = {},
    judge: Mapping[str, Any] = LLAMA,
    temperature: float = 0.0,
    seed: int = 0,
    prompt: str = "d" * 32,
    chosen: int = 2,
    words: str = "a" * 32,
    started: str = "2026-01-01T00:00:00Z",
    metrics: tuple[str, ...] = ("found", "middle", "many"),
    least_scored: float = 0.0,
) -> FinishedTask:
    """A finished run; a person without ids has no score. What it scored alone is not used."""
    task = make_task(
        benchmark="finds", metrics=metrics, options=dict(options or {}), least_scored=least_scored
    )
    components = {
        "version": 1, "ladder": 1, "structured": False,
        "roles": {"candidate": {"sampling": {"temperature": seed}},
                  "judge": {"sampling": {"temperature": temperature}}},
    }  # fmt: skip
    data = {"fingerprint": "f" * 32, "chosen": {"users": {"chosen": chosen, "of": 9}}}
    asked = {"kind": "openai", "name": candidate or name, "details": details, "run": name}
    scores = [
        Score(id=user, user=user, missing={"found": "no_json", "many": "no_json"})
        if ids is None
        else Score(id=user, user=user, values={"found": 1.0, "many": float(len(ids))},
            details=Found(ids))
        for user, ids in people.items()
    ]  # fmt: skip
    summary = make_summary(
        benchmark="finds", model=name, roles={"candidate": name, "judge": "llama"},
        data=data, seed=seed, units=2,
    )  # fmt: skip
    return keep_task(
        folder / name, task,
        StageEntry(name="find", key="k", file="f", components=components, items=2),
        scores=scores, summary=summary, benchmark=BENCHMARK, seed=seed,
        entry={"templates": {"find.judge": prompt}, "contents": {"words": words}, "data": data},
        options=msgspec.convert(task.options, Options), model=candidate or name,
        sessions=(Session(started=started),),
        roles={
            "candidate": RoleEntry(name=candidate or name, identity={"model": asked}),
            "judge": RoleEntry(
                name=str(judge["name"]), identity={"model": {**judge, "run": name}}
            ),
        },
    )  # fmt: skip


def one_and_two(folder: Path) -> list[FinishedTask]:
    return [a_run(folder, "one", ONE), a_run(folder, "two", TWO)]


def values(comparison: Any, metric: str) -> dict[str, float | None]:
    return {run.run: run.metrics[metric].value for run in comparison.runs}


def test_few_runs_are_warned_of_on_the_metrics_of_the_oracle_alone(tmp_path: Path) -> None:
    runs = [*one_and_two(tmp_path), a_run(tmp_path, "three", THREE)]
    two, three = compare(runs[:2])[0], compare(runs)[0]
    few = "the oracle is made of 2 runs of 2 models and needs 3 models or more"
    assert few in two.oracle.warning
    notes = {name: result.note for name, result in two.runs[0].metrics.items()}
    warning = two.oracle.warning
    assert notes == {"found": warning, "middle": warning, "many": "as counted"}
    assert (three.oracle.warning, three.oracle.runs) == (None, 3)
    assert three.oracle.metrics == ("found", "middle")
    assert three.runs[0].metrics["found"].note == ""


@pytest.mark.parametrize(("told", "models"), [({"host": "h"}, 1), ({}, 3)])
def test_recordings_of_one_model_are_that_model_where_they_name_it(tmp_path, told, models):
    runs = [
        a_run(tmp_path, name, ONE, candidate="m", details={**told, **recording})
        for name, recording in (("a", {}), ("b", {RECORDED: "d1"}), ("c", {RECORDED: "d2"}))
    ]
    assert compare(runs)[0].oracle.models == models


def test_runs_over_another_version_or_gpu_are_compared_and_the_difference_is_named(tmp_path):
    """A nightly comparison over an upgrade has to be possible, and to be explained."""
    runs = []
    for name, version, gpu in (("a", "0.32.0", "A100"), ("b", "0.33.0", "H100")):
        served = {**LLAMA, "details": {"host": "here", SOFTWARE: f"vllm {version}"}}
        run = a_run(tmp_path, name, ONE, judge=served)
        learnt = {"learnt": {"gpu": gpu, "gpus": 8, "driver": "570.86"}}
        session = Session(started="2026-01-01T00:00:00Z", limits={"vllm:llama": learnt})
        manifest = msgspec.structs.replace(run.manifest, sessions=(session,))
        runs.append(replace(run, manifest=manifest))
    runs.append(a_run(tmp_path, "c", TWO))
    comparison, *_ = compare(runs)
    assert (len(comparison.runs), comparison.refused) == (3, ())
    assert comparison.doubts == (
        "the runs were served differently: vllm 0.32.0 in a; 0.33.0 in b",
        "the runs were served differently: gpu A100 in a; H100 in b",
    )
    assert compare(runs[1:])[0].doubts == ()


def test_a_file_is_united_with_the_runs_and_spares_the_warning(tmp_path: Path) -> None:
    file = tmp_path / "o.json"
    file.write_text('{"ann": [7, 8, 500], "zoe": [1]}')  # 500 is beyond the window of the runs
    comparison, united, _ = compare([a_run(tmp_path, "one", ONE)], file=file)
    assert united == {"ann": {1, 2, 7, 8}, "bob": {1}, "zoe": {1}}
    assert values(comparison, "found") == {"one": 0.75}
    assert comparison.oracle.warning is None
    assert comparison.oracle.file == str(tmp_path / "o.json")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"options": {"limits": {"least": 3}}}, "option limits.least 3 against 2"),
        ({"options": {"window": 50}}, "option window 50 against 100"),
        ({"seed": 1}, "seed 1 against 0"),
        ({"words": "b" * 32}, "content of words bbbbbbbb against aaaaaaaa"),
        ({"chosen": 5}, "chosen users 5 against 2"),
        ({"prompt": "e" * 32}, "prompt find.judge eeeeeeee against dddddddd"),
        ({"judge": {**LLAMA, "name": "gpt"}}, "judge's name gpt against llama"),
        ({"judge": {**LLAMA, "details": {"host": "there"}}}, "judge's host there against here"),
        ({"temperature": 0.5}, "judge's temperature in find 0.5 against 0.0"),
        ({"candidate": "llama"}, "its candidate is the judge, llama"),
    ],
)
def test_a_run_that_differs_is_left_out_by_name_and_taken_in_by_force(tmp_path, change, told):
    runs = [*one_and_two(tmp_path), a_run(tmp_path, "odd", THREE, **change)]
    comparison, *_ = compare(runs)
    assert [run.run for run in comparison.runs] == ["one", "two"]
    [refused] = comparison.refused
    assert (refused.run, refused.because) == ("odd", (told,))
    # ann 1 2 3, bob 1: one has 2/3 and 1, two 2/3 and 0.
    assert values(comparison, "found") == pytest.approx({"one": 5 / 6, "two": 1 / 3})
    forced, *_ = compare(runs, force=True)
    marked = [(run.run, run.marks) for run in forced.runs]
    assert marked == [("one", ()), ("two", ()), ("odd", (told,))]
    assert forced.refused == ()
    # With what the third found: one 2/4 and 1/2, two 2/4 and 0, three 1/4 and 2/2.
    assert values(forced, "found") == {"one": 0.5, "two": 0.25, "odd": 0.625}


def test_the_largest_set_is_compared_and_of_equals_the_newest(tmp_path: Path) -> None:
    wide = {"options": {"window": 200}}
    old = a_run(tmp_path, "old", ONE, started="2026-01-01T00:00:00Z")
    new = a_run(tmp_path, "new", TWO, **wide, started="2026-03-01T00:00:00Z")
    tied, *_ = compare([old, new])
    assert [run.run for run in tied.runs] == ["new"]
    assert tied.chosen == (
        "1 of 2 runs agree in all but the candidate; of 2 such sets the one with the newest run, "
        "new"
    )
    older = a_run(tmp_path, "older", TWO, started="2025-12-01T00:00:00Z")
    larger, *_ = compare([old, new, older])
    assert [run.run for run in larger.runs] == ["old", "older"]
    assert larger.chosen == "2 of 3 runs agree in all but the candidate"
    assert [each.run for each in larger.refused] == ["new"]


def test_a_copy_of_a_run_counts_once_even_by_force(tmp_path: Path) -> None:
    one = a_run(tmp_path / "a", "one", ONE)
    copy = a_run(tmp_path / "b", "one", ONE)
    comparison, *_ = compare([one, copy], force=True)
    assert len(comparison.runs) == 1
    assert comparison.refused[0].because == (f"it is a copy of {tmp_path / 'a' / 'one'}",)


def test_where_every_candidate_is_the_judge_nothing_is_compared_and_a_gate_is_undecided_for_it(
    tmp_path: Path,
) -> None:
    runs = [a_run(tmp_path, name, ONE, candidate="llama") for name in ("a", "b")]
    with pytest.raises(UsageError, match="no run of task 't' can be compared"):
        compare(runs)
    found = compare_tasks(runs)
    every = [
        GatedRun(f"llama {run.run}", run.manifest, {"t": BENCHMARK}, frozenset({"t"}))
        for run in runs
    ]
    wanted = gates_of(["t.many>0"], every)
    document = with_gates(found.document(), wanted, every, None, found.failed)
    console = Console(record=True, file=io.StringIO())
    print_gates(document, console)
    assert " ".join(console.export_text().split()) == (
        "gate undecided: t.many>0: llama a − llama b: "
        "llama a is not compared on t: its candidate is the judge, llama; "
        "llama b is not compared on t: its candidate is the judge, llama"
    )
    assert exit_code(document, found.failed) == 1


def test_common_users_are_those_that_all_runs_scored(tmp_path: Path) -> None:
    one = a_run(tmp_path, "one", {**ONE, "cid": (9,)})
    two = a_run(tmp_path, "two", {**TWO, "cid": None})
    comparison, *_ = compare([one, two])
    first, second = comparison.runs
    # All: many is 2, 1, 1 and 2, 0; in common are ann and bob.
    assert (first.metrics["many"].value, first.metrics["many"].n) == (pytest.approx(4 / 3), 3)
    assert (first.common["many"].value, first.common["many"].n) == (1.5, 2)
    assert (second.metrics["many"].missing, second.metrics["many"].n) == ({"no_json": 1}, 2)
    assert (second.common["many"].value, second.common["many"].missing) == (1.0, {})


def test_a_run_with_too_little_to_show_does_not_narrow_the_others(tmp_path: Path) -> None:
    one = a_run(tmp_path, "one", ONE, least_scored=0.6)
    two = a_run(tmp_path, "two", {"ann": (3,), "bob": None}, least_scored=0.6)
    comparison, *_ = compare([one, two])
    assert values(comparison, "many") == {"one": 1.5, "two": None}
    assert comparison.runs[0].common["many"].n == 2
    assert comparison.runs[1].common == {}
    assert comparison.differences == ()


def test_only_the_metrics_and_pairs_that_are_asked_for_are_compared(tmp_path: Path) -> None:
    runs = [*one_and_two(tmp_path), a_run(tmp_path, "three", THREE)]
    comparison, *_ = compare(runs, only=("many",), against="two")
    assert comparison.main == ("many",)
    assert [[*run.metrics] for run in comparison.runs] == [["many"]] * 3
    assert [[*run.common] for run in comparison.runs] == [["many"]] * 3
    # many is 2 1, 2 0 and 1 2 of ann and bob.
    found = [(each.first, each.second, each.value) for each in comparison.differences]
    assert found == [("one", "two", 0.5), ("three", "two", 0.5)]
    assert compare(runs, only=("many",), all_pairs=False)[0].differences == ()
    assert len(compare(runs[:2], only=("many",), all_pairs=False)[0].differences) == 1
    assert len(compare(runs)[0].differences) == 9


def test_the_main_metrics_stay_and_those_of_the_oracle_follow_them(tmp_path: Path) -> None:
    for of_oracle, main in (
        ((), ("many",)),
        (("middle",), ("many", "middle")),
        (("many",), ("many",)),
        (("gone",), ("many",)),
    ):
        benchmark = replace(BENCHMARK, oracle=replace(ORACLE, main=of_oracle))
        runs = [
            replace(run, benchmark=benchmark,
                    summary=msgspec.structs.replace(run.summary, main=("many",)))
            for run in one_and_two(tmp_path)
        ]  # fmt: skip
        assert compare(runs)[0].main == main


def test_the_same_runs_give_the_same_bytes_and_they_fit_the_schema(tmp_path: Path) -> None:
    runs = [*one_and_two(tmp_path), a_run(tmp_path, "odd", THREE, seed=4)]
    for name in ("first.json", "second.json"):
        document = ComparedTasks([compare(runs)], [], []).document()
        write_comparisons(tmp_path / name, document)
    first = (tmp_path / "first.json").read_bytes()
    assert first == (tmp_path / "second.json").read_bytes()
    document = json.loads(first)
    schema = json.loads(schema_file("comparison.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    [comparison] = document["comparisons"]
    assert [run["run"] for run in comparison["runs"]] == ["one", "two"]
    assert [run["run"] for run in comparison["refused"]] == ["odd"]


def test_what_the_scores_say_against_comparing_is_noted(tmp_path: Path) -> None:
    def doubts(scores: Iterable[Score[Found]]) -> Iterable[str]:
        everything = [id for score in scores if score.details for id in score.details.ids]
        yield f"{len(everything)} finds, {len(set(everything))} of them distinct"

    doubting = replace(BENCHMARK, oracle=replace(ORACLE, doubts=doubts))
    compared = compare([replace(run, benchmark=doubting) for run in one_and_two(tmp_path)])
    assert compared[0].doubts == ("5 finds, 3 of them distinct",)


def test_a_difference_counts_units_and_exchanges_users_and_without_a_value_says_why(tmp_path):
    def of_few(values: Any) -> float:
        return float(values.mean()) if len(values) < 3 else math.nan

    run = a_run(tmp_path, "one", ONE)
    users = {"1": "ann", "2": "ann", "3": "bob"}
    values = {
        name: {unit: (user, int(unit) + more) for unit, user in users.items()}
        for name, more in (("one", 1.0), ("two", 0.0))
    }
    [found] = differences_of(run, "many", Metric(description=""), values, None)
    # Of the four exchanges of two users two are as large.
    assert (found.value, found.n, found.users, found.p) == (1.0, 3, 2, 0.5)
    [none] = differences_of(run, "many", Metric(description="", statistic=of_few), values, None)
    assert (none.value, none.p, none.no_p) == (None, None, "the difference has no value")
    assert (none.no_interval or "").startswith("the difference has no value in ")
