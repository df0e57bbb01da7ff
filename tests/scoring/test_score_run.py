import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders.runs import make_entry, make_line, make_manifest, make_task, write_journal
from builders.stages import make_benchmark, make_stage

from harness.base.errors import PluginError, TaskError
from harness.contracts.benchmark import Metric
from harness.contracts.model import Message, Usage
from harness.contracts.outcomes import CallFailed, NoVerdict, Unreadable
from harness.contracts.records import CallRecord, Done, Records, Score
from harness.contracts.stage import Item
from harness.runs.manifest import Manifest, RoleEntry, StageEntry, stage_finished
from harness.runs.run_folder import RunFolder
from harness.scoring.score_run import Unfinished, score_task

NAME_KEY, CHECK_KEY = "a" * 32, "b" * 32


class Person(Item, frozen=True, kw_only=True):
    pass


class Claim(Item, frozen=True, kw_only=True):
    text: str


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bonus: float = 0.0


def score(records: Mapping[str, Records[Any, Any]], options: Any) -> Iterator[Score]:
    named = {item.user: value for item, value in records["name"].values()}
    for record in records["check"]:
        if isinstance(record.outcome, Done):
            value = float(record.outcome.value) + options.bonus + len(named[record.user]) / 100
            slices = {"user": "first"} if record.user == "ann" else msgspec.UNSET
            yield Score(id=record.id, user=record.user, values={"right": value}, slices=slices)
        else:
            missing = {"right": record.outcome.cause}
            yield Score(id=record.id, user=record.user, missing=missing)


BENCHMARK = make_benchmark(
    make_stage("name", Person, list[str], roles=("candidate",)),
    make_stage("check", Claim, bool, judges=("judge",), after=("name",)),
    score=score,
    metrics={"right": Metric(description="share right"), "unused": Metric(description="")},
    main=("unused", "right"),
    options=Options,
)
TASK = make_task("toy/small", version=3, metrics=("right",), options={"bonus": 0.5})


def call(role: str, **fields: Any) -> CallRecord:
    return CallRecord(role=role, prompt="p", key="k", messages=(Message("user", "?"),), **fields)


def record(number: int, stage: str, item: Item, outcome: Any, *calls: CallRecord) -> Any:
    return make_line(number, item, outcome, stage=stage, calls=calls)


NAMED = (
    record(1, NAME_KEY, Person(id="ann", user="ann"), Done(["tea", "cats"]),
        call("candidate", text="no", failure=Unreadable("no_json"),
            usage=Usage(prompt_tokens=10, completion_tokens=1)),
        call("candidate", text="[]", rung="fenced", repeat=1,
            usage=Usage(prompt_tokens=10, completion_tokens=2, cached_tokens=4))),
    record(2, NAME_KEY, Person(id="bob", user="bob"), Done(["go"]),
        call("candidate", source="store", text="[]", rung="strict",
            usage=Usage(prompt_tokens=5, completion_tokens=3))),
    record(3, NAME_KEY, Person(id="cid", user="cid"), CallFailed("timeout"),
        call("candidate", failure=CallFailed("timeout"))),
)  # fmt: skip
CHECKED = (
    record(4, CHECK_KEY, Claim(id="ann/1", user="ann", text="tea"), Done(True)),
    record(5, CHECK_KEY, Claim(id="ann/2", user="ann", text="cats"), NoVerdict("no_json")),
    record(6, CHECK_KEY, Claim(id="bob/1", user="bob", text="go"), Done(False)),
)


def a_run(tmp_path: Path) -> tuple[RunFolder, Manifest]:
    folder = RunFolder(tmp_path)
    stages = (
        StageEntry(name="name", key=NAME_KEY, file="1-name.jsonl", items=3),
        StageEntry(name="check", key=CHECK_KEY, file="2-check.jsonl", items=3),
    )
    entry = make_entry(
        TASK, *stages, folder=folder.task(TASK.name).name, data={"origin": "sample"},
        comparable=False, not_comparable_because=("bundled sample data",),
    )  # fmt: skip
    manifest = make_manifest(
        model="m-1",
        seed=5,
        limit=2,
        roles={
            "candidate": RoleEntry(name="m-1"),
            "judge": RoleEntry(name="elsewhere"),
            "toy/small/judge": RoleEntry(name="lexical"),
            "verifier": RoleEntry(name="not of this task"),
        },
        tasks={TASK.name: entry},
    )
    write_journal(folder.journal(TASK.name, 1, "name"), *NAMED)
    write_journal(folder.journal(TASK.name, 2, "check"), *CHECKED)
    return folder, manifest


def asked_the_judge(folder: RunFolder, *calls: CallRecord) -> None:
    """The last record once more, with these calls."""
    line = record(6, CHECK_KEY, CHECKED[2].item, Done(False), *calls)
    write_journal(folder.journal(TASK.name, 2, "check"), line)


def test_a_task_is_scored_as_it_was_run_and_its_stages_counted_by_outcome_and_role(
    tmp_path: Path,
) -> None:
    folder, manifest = a_run(tmp_path)
    summary = score_task(folder, manifest, TASK.name, BENCHMARK)
    right = summary.metrics["right"]
    assert list(summary.metrics) == ["right"]
    assert summary.main == ("right",)
    assert right.value == pytest.approx((1.52 + 0.51) / 2)
    assert (right.n, right.users, right.missing) == (2, 2, {"no_json": 1})
    assert right.counted_as_worst == pytest.approx((1.52 + 0.51) / 3)
    assert (summary.task, summary.version, summary.units) == ("toy/small", 3, 3)
    assert (summary.model, summary.seed, summary.limit) == ("m-1", 5, 2)
    assert summary.roles == {"candidate": "m-1", "judge": "lexical"}
    assert summary.not_comparable_because == ("bundled sample data",)
    name, check = summary.stages["name"], summary.stages["check"]
    assert (name.items, name.done, name.failures) == (3, 2, {"timeout": 1})
    use = name.roles["candidate"]
    assert (use.calls, use.from_store, use.failed) == (4, 1, 2)
    assert (use.prompt_tokens, use.completion_tokens, use.cached_tokens) == (25, 6, 4)
    assert use.rungs == {"fenced": 1, "strict": 1}
    assert (check.items, check.done, check.failures, check.roles) == (3, 2, {"no_json": 1}, {})


@pytest.mark.parametrize(
    ("usages", "by_rule", "told"),
    [
        ((None, None), False, (2, None, None, None)),
        ((Usage(prompt_tokens=10, completion_tokens=2), None), False, (1, 10, 2, 0)),
        ((Usage(prompt_tokens=10, completion_tokens=2), Usage()), False, (0, 10, 2, 0)),
        ((None, None), True, (0, 0, 0, 0)),
    ],
)
def test_tokens_that_no_server_reported_are_not_0_and_those_of_rules_are(
    tmp_path, usages, by_rule, told
):
    folder, manifest = a_run(tmp_path)
    judge = {"toy/small/judge": RoleEntry(name="lexical", by_rule=by_rule)}
    manifest = msgspec.structs.replace(manifest, roles={**manifest.roles, **judge})
    replies = [call("judge", text="1", finish="stop", usage=usage) for usage in usages]
    asked_the_judge(folder, *replies, call("judge", failure=CallFailed("timeout"), untold=1))
    score_task(folder, manifest, TASK.name, BENCHMARK)
    document = json.loads(folder.summary(TASK.name).read_text())
    use = document["stages"]["check"]["roles"]["judge"]
    names = ("untold", "prompt_tokens", "completion_tokens", "cached_tokens")
    assert tuple(use[name] for name in names) == told


def test_a_schema_is_met_by_what_is_json_as_it_stands(tmp_path: Path) -> None:
    folder, manifest = a_run(tmp_path)
    asked_the_judge(
        folder,
        call("judge", asked_schema=True, text="[]", rung="strict"),
        call("judge", asked_schema=True, text="[]", rung="strict", source="store"),
        call("judge", asked_schema=True, text="```\n[]\n```", rung="fenced"),
        call("judge", asked_schema=True, text="{}", failure=Unreadable("schema")),
        call("judge", asked_schema=True, failure=CallFailed("timeout")),
        call("judge", text="[]", rung="strict"),
    )
    stages = score_task(folder, manifest, TASK.name, BENCHMARK).stages
    use = stages["check"].roles["judge"]
    assert (use.calls, use.asked_schema, use.met_schema) == (6, 5, 2)
    assert use.rungs == {"fenced": 1, "strict": 3}
    unasked = stages["name"].roles["candidate"]
    assert (unasked.asked_schema, unasked.met_schema) == (0, 0)


@pytest.mark.parametrize("items", [2, 4])
def test_records_and_items_must_be_equally_many(tmp_path: Path, items: int) -> None:
    folder, manifest = a_run(tmp_path)
    manifest = stage_finished(manifest, TASK.name, "check", items=items)
    with pytest.raises(Unfinished, match=f"3 records of {items} items"):
        score_task(folder, manifest, TASK.name, BENCHMARK)


def test_a_metric_or_option_that_is_gone_is_named(tmp_path: Path) -> None:
    folder, manifest = a_run(tmp_path)
    for change, told in (
        ({"metrics": ["rigth"]}, "did you mean 'right'"),
        ({"metrics": ["right"], "options": {"malus": 1}}, "malus"),
    ):
        manifest.tasks[TASK.name].definition.update(change)
        with pytest.raises(TaskError, match=told):
            score_task(folder, manifest, TASK.name, BENCHMARK)


def test_a_benchmark_that_fails_to_score_is_named_and_leaves_the_files(tmp_path: Path) -> None:
    folder, manifest = a_run(tmp_path)
    score_task(folder, manifest, TASK.name, BENCHMARK)
    before = folder.scores(TASK.name).read_bytes()

    def broken(records: Any, options: Any) -> Iterator[Score]:
        yield Score(id="1", user="u")
        raise ZeroDivisionError("no users")

    with pytest.raises(PluginError, match="failed to score") as caught:
        score_task(folder, manifest, TASK.name, replace(BENCHMARK, score=broken))
    assert "ZeroDivisionError: no users" in str(caught.value)
    assert folder.scores(TASK.name).read_bytes() == before
    found = {each.name for each in folder.task(TASK.name).iterdir()}
    assert found == {"1-name.jsonl", "2-check.jsonl", "scores.jsonl", "summary.json"}


@pytest.mark.parametrize("told", ["values", "missing", "worst"])
def test_a_score_of_what_no_metric_reads_is_an_error_that_names_it(tmp_path, told):
    folder, manifest = a_run(tmp_path)

    def misspelt(records: Any, options: Any) -> Iterator[Score]:
        given: dict[str, Any] = {told: {"rihgt": "timeout" if told == "missing" else 1.0}}
        yield Score(id="7", user="u", **given)

    with pytest.raises(PluginError) as caught:
        score_task(folder, manifest, TASK.name, replace(BENCHMARK, score=misspelt))
    assert str(caught.value) == (
        "the score of '7': benchmark 'toy' has a score that none of its metrics reads\n"
        "  found:    rihgt\n  expected: right, unused\n  to do:    did you mean 'right'?"
    )
    assert not folder.summary(TASK.name).exists()
