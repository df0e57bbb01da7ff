"""Runs answered from what was recorded: no model is asked, and failures come back as they were."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders.texts import read_json_lines, write_json_lines
from harness_models.replay import _identity_of

from harness.base.errors import UsageError
from harness.testing import FaultyServer, faults

FAULTS = (
    faults.TRUNCATED,
    faults.FILTERED,
    faults.status(400, message="maximum context length is 8"),
)


@pytest.fixture(scope="module")
def live(tmp_path_factory, harnesses):
    """A live run of twelve people, what it said and its server; the first calls of three of them go
    wrong."""
    harness = harnesses(tmp_path_factory.mktemp("live"))
    asked_before: set[str] = set()

    def fault(asked: Any) -> Any:
        # By question: a second try of the first person may arrive before the second person.
        question = json.dumps(asked.body["messages"])
        if question in asked_before:
            return None
        asked_before.add(question)
        return dict(enumerate(FAULTS, 1)).get(len(asked_before))

    def thoughtful(body: dict[str, Any]) -> dict[str, Any]:
        said = {"role": "assistant", "content": harness.answer(body)}
        return {**said, "reasoning_content": "hm, hm"}

    with FaultyServer(
        thoughtful, models=("candidate-model", "judge-model"), faults=fault
    ) as server:
        harness.url = server.url
        done = harness.run("--limit", "12", "--max_failures", "1").ok()
        yield harness.folder / done.json["folder"], done, server


@pytest.fixture
def replayed(harness, live):
    """What a run says that is answered from that, or from what other arguments name."""

    def replayed(*more: str, limit=12, args="", judge="", as_json=True):
        return harness.here(
            "--model", "replay", "--model_args", args or f"run={live[0]}",
            "--judge", judge or f"replay:run={live[0]},role=judge", "--tasks", "interests",
            "--data", "sample", "--limit", str(limit), "--max_failures", "1", *more,
            *(["--json"] if as_json else []),
        )  # fmt: skip

    return replayed


def calls(folder: Path, stage: str) -> dict[str, list[Any]]:
    """What was answered, by item: everything but how it was had."""
    (journal,) = (folder / "interests").glob(f"?-{stage}.jsonl")
    return {
        one["id"]: [
            [call.get(name) for name in ("text", "finish", "usage", "reasoning", "rung")]
            + [(call.get("failure") or {}).get("cause")]
            for call in one["calls"]
        ]
        for one in read_json_lines(journal)
    }


def test_a_replayed_run_comes_to_the_same_and_asks_nobody(harness, live, replayed):
    folder, before, server = live
    asked = server.count
    again = replayed().ok()
    assert server.count == asked
    assert again.summary()["metrics"] == before.summary()["metrics"]
    # What tables call it tells who was recorded; keys do not know of it.
    assert again.summary()["model"] == "replay of openai:candidate-model"
    assert again.summary()["roles"]["judge"] == "replay of openai:judge-model"
    assert again.summary()["stages"]["name"]["failures"] == {"overflow": 1, "truncated": 1}
    for stage in ("name", "support"):
        recorded = calls(folder, stage)
        assert calls(harness.folder / again.json["folder"], stage) == recorded
    assert "hm, hm" in json.dumps(recorded)


def test_a_question_that_was_not_recorded_is_a_failure_of_its_own(replayed):
    more = replayed(limit=15).ok()
    failures = {"not_recorded": 3, "overflow": 1, "truncated": 1}
    assert more.summary()["stages"]["name"]["failures"] == failures
    assert more.summary()["stages"]["name"]["items"] == 15
    # Two of the twelve recorded people were asked twice.
    said = replayed("--reuse", "run", limit=15, judge="lexical", as_json=False).err
    assert "3 of 16 questions were not recorded" in said
    too_many = replayed("--seed", "5", "--max_failures", "0", "--reuse", "run")
    assert too_many.code == 3
    assert "not_recorded" in too_many.err


def test_a_run_that_judges_itself_by_a_recording_is_refused(live, replayed):
    refused = replayed(judge=f"openai:base_url={live[2].url},model=candidate-model")
    assert refused.code == 2
    assert "the candidate would judge itself" in refused.err


def test_a_file_of_recorded_replies_answers(harness, live, replayed):
    lines = [
        {"messages": call["messages"], "text": call["text"], "repeat": call.get("repeat", 0)}
        for record in read_json_lines(live[0] / "interests" / "1-name.jsonl")
        for call in record["calls"]
        if call.get("finish") == "stop"
    ]
    file = write_json_lines(harness.folder / "replies.jsonl", lines)

    def run():
        return replayed(args="file=replies.jsonl,model=small", judge="lexical")

    done = run().ok()
    # The first tries of the two that were cut and refused are not in the file.
    assert done.summary()["stages"]["name"]["failures"] == {"not_recorded": 3}
    identity = harness.manifest()["roles"]["candidate"]["identity"]["model"]
    assert (identity["kind"], identity["name"]) == ("replay", "small")
    assert done.summary()["model"] == "replay of small"

    write_json_lines(file, ({**line, "text": "changed"} for line in lines))
    other = run()
    assert len(harness.folders) == 2, "another content is another model"
    said = calls(harness.folder / other.json["folder"], "name").values()
    assert "changed" in [call[0] for asked in said for call in asked]

    file.write_text(file.read_text() + json.dumps({**lines[0], "text": "[1]"}) + "\n")
    twice = run()
    assert twice.code == 2
    assert f"replies.jsonl:{len(lines) + 1}: a recorded reply cannot be used" in twice.err
    assert "a different answer to the question of line 1" in twice.err


def test_a_role_of_several_tasks_is_listed_once():
    entry = SimpleNamespace(identity={"model": {"name": "m"}})
    run: Any = SimpleNamespace(roles={f"{task}/candidate": entry for task in "ab"})
    with pytest.raises(UsageError) as caught:
        _identity_of(run, "canddate", Path("run"))
    assert caught.value.expected == "role= one of candidate"
