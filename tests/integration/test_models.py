"""Models that think, and what arguments of an `openai` model leave in records and manifest."""

import json
from pathlib import Path
from typing import Any

import pytest
from builders.runs import write_sealed
from builders.texts import read_json_lines

import harness as package
from harness.testing import Fault
from harness.testing.faults import TRUNCATED
from harness.testing.server import think_to_the_limit

pytestmark = pytest.mark.usefixtures("own_cache")


def run(harness, task: str, *more: str, out: str = "runs"):
    return harness.here(
        "--model", "openai", "--model_args", f"base_url={harness.url},model=m", "--tasks", task,
        "--data", "sample", "--output_path", out, *more,
    )  # fmt: skip


def manifest_in(harness, out: str = "runs") -> dict[str, Any]:
    (file,) = (harness.folder / out).glob("*/manifest.json")
    return json.loads(file.read_text())


def test_a_thinking_model_is_asked_once_a_question_with_room_to_think(harness, serve):
    server = serve(harness, answer=think_to_the_limit, faults=lambda asked: TRUNCATED, thinks=True)
    done = run(harness, "perrec_hard_listwise", "--limit", "6")
    # The task allows five tries.
    assert (server.count, server.asked_if_thinking) == (6, 1)
    assert {body["max_tokens"] for body in server.requests} == {800 + 4096}
    records = harness.records("rank", "perrec_hard_listwise")
    failed = [call["failure"] for record in records for call in record["calls"]]
    assert {one["cause"] for one in failed} == {"truncated"}
    assert failed[0]["detail"].startswith(
        "7,999 characters of thinking spent the limit of 4,896 tokens (max_tokens 800, "
        "reasoning_tokens 4,096); allow more (--gen_kwargs reasoning_tokens=8192), or switch "
    )
    assert done.out.startswith("m, with thinking\n")
    assert "6 replies spent their limit on thinking" in done.out
    assert manifest_in(harness)["roles"]["candidate"]["thinks"] is True


@pytest.mark.parametrize(("pin", "times", "second"), [(",revision=a", 1, True), ("", 2, False)])
def test_weights_are_asked_once_whether_they_think_and_a_mere_name_once_a_run(
    harness, serve, pin, times, second
):
    server = serve(harness, thinks=True)
    for out, thinks in (("one", True), ("two", second)):
        more = ("--model_args", f"base_url={harness.url},model=m{pin}", "--judge", "lexical")
        run(harness, "interests", *more, "--limit", "2", out=out).ok()
        assert manifest_in(harness, out)["roles"]["candidate"]["thinks"] is thinks
        server.thinks = False
    assert server.asked_if_thinking == times


@pytest.mark.parametrize("known", [True, False], ids=["asked", "from before anybody asked"])
def test_what_a_run_knows_or_was_asked_without_holds_for_its_next_session(harness, serve, known):
    server = serve(harness, thinks=known)
    options = ("--judge", "lexical", "--limit", "2", "--reuse", "run")
    run(harness, "interests", *options).ok()
    if not known:
        (file,) = (harness.folder / "runs").glob("*/manifest.json")
        manifest = json.loads(file.read_text())
        del manifest["roles"]["candidate"]["thinks"]
        write_sealed(file, manifest)
    server.thinks = not known
    asked = server.count
    run(harness, "interests", *options, "--retry_failures").ok()
    assert (server.count, server.asked_if_thinking) == (asked, 1)


def test_questions_are_written_without_a_small_one(harness, serve):
    server = serve(harness, thinks=True)
    harness.run("--limit", "2", "--write_requests", "asked", "--judge", "lexical").ok()
    assert server.asked_if_thinking == 0
    # So that the keys of a later session are those of the file.
    assert manifest_in(harness)["roles"]["candidate"]["thinks"] is False


def test_a_dry_run_counts_what_may_be_thought(harness):
    def completion(word):
        done = harness.here(
            "--model", "openai", "--model_args", f"model=m,thinking={word}", "--judge", "lexical",
            "--tasks", "interests", "--data", "sample", "--limit", "2", "--dry_run", "--json",
        ).ok()  # fmt: skip
        (role,) = done.json["stages"][0]["roles"]
        return role["most_completion_tokens"] // role["calls"]

    assert (completion("false"), completion("true")) == (1024, 1024 + 4096)


LOGPROBS = {"content": [{"token": "[", "logprob": -0.25, "top_logprobs": []}]}
KEPT = [{"token": "[", "logprob": -0.25}]


@pytest.fixture
def ask(tmp_path):
    def ask(server, model="openai", **more):
        args = {"base_url": server.url, "model": "m", "revision": "r1"} if server else {}
        return package.evaluate(
            "interests", model=model, model_args={**args, **more}, judge="lexical", data="sample",
            limit=3, output_path=tmp_path / "runs",
        )  # fmt: skip

    return ask


def calls(folder: Path) -> list[dict]:
    records = read_json_lines(folder / "interests" / "1-name.jsonl")
    return [call for record in records for call in record["calls"]]


def test_logprobs_stand_in_the_record_from_model_store_and_recording(ask, serve):
    server = serve(faults=lambda asked: Fault(choice={"logprobs": LOGPROBS}))
    plain = ask(server)
    asked = server.count
    first = ask(server, logprobs=True)
    assert server.count == 2 * asked, "answers without logprobs do not stand for those with them"
    again = ask(server, logprobs=True)
    assert server.count == 2 * asked
    replayed = ask(None, model="replay", run=str(first.folder))
    for run, source in ((first, "model"), (again, "store"), (replayed, "model")):
        told = [(call["logprobs"], call.get("source", "model")) for call in calls(run.folder)]
        assert told == [(KEPT, source)] * 3
    # Sent without being asked for, they are kept all the same.
    assert [call["logprobs"] for call in calls(plain.folder)] == [KEPT] * 3
