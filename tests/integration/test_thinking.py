"""Models that think before they answer, from the first question to the table."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders.runs import write_sealed

from harness.testing.faults import TRUNCATED
from harness.testing.server import FaultyServer, think_to_the_limit

CUT = {"faults": lambda asked: TRUNCATED, "thinks": True}


def run(harness, task: str, *more: str, out: str = "runs"):
    return harness.here(
        "--model", "openai", "--model_args", f"base_url={harness.url},model=m", "--tasks", task,
        "--data", "sample", "--output_path", out, *more,
    )  # fmt: skip


def manifest_in(harness, out: str = "runs") -> dict[str, Any]:
    (file,) = (harness.folder / out).glob("*/manifest.json")
    return json.loads(file.read_text())


def failures_in(harness, stage: str) -> list[dict[str, Any]]:
    (journal,) = (harness.folder / "runs").glob(f"*/*/?-{stage}.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return [call["failure"] for line in lines for call in line["calls"]]


def rules(*judges: str) -> list[str]:
    roles = [word for role in ("overlap_judge", "retrieval_judge") for word in ("--role", role)]
    given = [f"{word}=lexical" if word != "--role" else word for word in roles]
    return ["--judge", "lexical", *given, "--role", "taxonomist=baseline", *judges]


def test_a_thinking_model_is_asked_once_a_question_with_room_to_think(harness, serve):
    server = serve(harness, answer=think_to_the_limit, **CUT)
    done = run(harness, "perrec_hard_listwise")
    # Sixty groups, and five tries that the task allows: three hundred calls before.
    assert (server.count, server.asked_if_thinking) == (60, 1)
    assert {body["max_tokens"] for body in server.requests} == {800 + 4096}
    assert {one["cause"] for one in failures_in(harness, "rank")} == {"truncated"}
    assert failures_in(harness, "rank")[0]["detail"] == (
        "7,999 characters of thinking spent the limit of 4,896 tokens (max_tokens 800, "
        "reasoning_tokens 4,096); allow more (--gen_kwargs reasoning_tokens=8192), or switch "
        "thinking off (among --model_args: extra_body.chat_template_kwargs.enable_thinking=false "
        "or extra_body.reasoning_effort=…)"
    )
    assert done.out.startswith("m, with thinking\n")
    assert "60 replies spent their limit on thinking" in done.out
    assert manifest_in(harness)["roles"]["candidate"]["thinks"] is True


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("<think>\nhmm", "3 characters of thinking spent the limit of 10,144 tokens"),
        ({"content": None, "reasoning_content": "hmm"}, "3 characters of thinking spent the limit"),
        ({"content": None}, "an empty answer at the limit of 10,144 tokens"),
        ({"content": ""}, "an empty answer at the limit of 10,144 tokens"),
    ],
)
def test_thinking_alone_is_cut_and_not_empty(harness, serve, message, said):
    answer = message if isinstance(message, str) else {"role": "assistant", **message}
    server = serve(harness, answer=lambda body: answer, **CUT)
    run(harness, "gist_synthetic", *rules(), "--limit", "3")
    found = failures_in(harness, "predict")
    assert {one["cause"] for one in found} == {"truncated"}
    assert all(one["detail"].startswith(said) for one in found)
    assert server.count == len(found)


@pytest.mark.parametrize(("pin", "times", "second"), [(",revision=a", 1, True), ("", 2, False)])
def test_weights_are_asked_once_whether_they_think_and_a_mere_name_once_a_run(
    harness, serve, pin, times, second
):
    server = serve(harness, thinks=True)
    for out, thinks in (("one", True), ("two", second)):
        harness.here(
            "--model", "openai", "--model_args", f"base_url={harness.url},model=m{pin}", "--tasks",
            "interests", "--data", "sample", "--judge", "lexical", "--limit", "2",
            "--output_path", out,
        ).ok()  # fmt: skip
        assert manifest_in(harness, out)["roles"]["candidate"]["thinks"] is thinks
        server.thinks = False
    assert server.asked_if_thinking == times


def test_what_a_run_knows_holds_for_its_next_session(harness, serve):
    server = serve(harness, thinks=True)
    options = ("--judge", "lexical", "--limit", "2", "--no_store")
    run(harness, "interests", *options).ok()
    server.thinks = False
    asked = server.count
    run(harness, "interests", *options, "--retry_failures").ok()
    assert (server.count, server.asked_if_thinking) == (asked, 1)


def test_a_run_from_before_anybody_asked_keeps_its_answers(harness, serve):
    server = serve(harness)
    options = ("--judge", "lexical", "--limit", "2", "--no_store")
    run(harness, "interests", *options).ok()
    (file,) = (harness.folder / "runs").glob("*/manifest.json")
    manifest = json.loads(file.read_text())
    del manifest["roles"]["candidate"]["thinks"]
    write_sealed(file, manifest)
    server.thinks = True
    asked = server.count
    run(harness, "interests", *options, "--retry_failures").ok()
    assert (server.count, server.asked_if_thinking) == (asked, 1)


def test_a_model_that_does_not_think_is_asked_as_ever(harness, serve):
    server = serve(harness)
    done = run(harness, "interests", "--judge", "lexical", "--limit", "2").ok()
    assert {body["max_tokens"] for body in server.requests} == {1024}
    assert done.out.startswith("m, without thinking; judge: lexical\n")
    manifest = manifest_in(harness)
    assert manifest["roles"]["candidate"]["thinks"] is False
    (name, _) = manifest["tasks"]["interests"]["stages"]
    assert name["components"]["roles"]["candidate"]["sampling"] == {
        "temperature": 0.0, "max_tokens": 1024, "top_p": None, "stop": [],
    }  # fmt: skip


@pytest.mark.parametrize(("word", "limit"), [("true", 1024 + 4096), ("false", 1024)])
def test_the_user_may_say_whether_a_model_thinks(harness, serve, word, limit):
    server = serve(harness, thinks=True)
    harness.here(
        "--model", "openai", "--model_args",
        f"base_url={harness.url},model=m,thinking={word}", "--tasks", "interests",
        "--data", "sample", "--judge", "lexical", "--limit", "2",
    ).ok()  # fmt: skip
    assert server.asked_if_thinking == 0
    assert {body["max_tokens"] for body in server.requests} == {limit}


def test_the_room_to_think_is_an_option(harness, serve):
    server = serve(harness, thinks=True)
    options = ("--judge", "lexical", "--limit", "2", "--gen_kwargs", "reasoning_tokens=100")
    run(harness, "interests", *options).ok()
    assert {body["max_tokens"] for body in server.requests} == {1124}


def test_an_unanswered_question_leaves_the_run_to_say_what_is_wrong(harness):
    with FaultyServer() as server:
        harness.url = server.url
    done = run(harness, "interests", "--judge", "lexical", "--limit", "2", "--attempts", "1")
    assert done.code == 1
    assert "cannot be reached" in done.err
    assert manifest_in(harness)["roles"]["candidate"]["thinks"] is None


def test_a_run_of_a_thinking_model_is_replayed_as_it_was(harness, serve):
    serve(harness, thinks=True)
    run(harness, "interests", "--judge", "lexical", "--limit", "2", "--json").ok()
    (folder,) = (harness.folder / "runs").iterdir()
    again = harness.here(
        "--model", "replay", "--model_args", f"run={folder}", "--judge", "lexical",
        "--tasks", "interests", "--data", "sample", "--limit", "2", "--json",
    ).ok()  # fmt: skip
    assert again.summary()["stages"]["name"]["failures"] == {}


def test_batches_are_written_without_a_question(harness, serve):
    server = serve(harness, thinks=True)
    words = harness.arguments("--limit", "2", "--out", "requests.jsonl")[3:]
    harness.here("batch", "write", *words)
    assert server.asked_if_thinking == 0
    # So that the keys of a later session are those of the batch.
    assert manifest_in(harness)["roles"]["candidate"]["thinks"] is False


def test_a_dry_run_counts_what_may_be_thought(harness):
    def completion(word: str) -> int:
        done = harness.here(
            "--model", "openai", "--model_args", f"model=m,thinking={word}", "--judge", "lexical",
            "--tasks", "interests", "--data", "sample", "--limit", "2", "--dry_run", "--json",
        ).ok()  # fmt: skip
        (role,) = done.json["stages"][0]["roles"]
        return role["most_completion_tokens"] // role["calls"]

    assert (completion("false"), completion("true")) == (1024, 1024 + 4096)


def test_the_question_counts_in_the_budget_and_in_what_the_session_used(harness, serve):
    server = serve(harness, thinks=True)
    done = run(harness, "interests", "--judge", "lexical", "--limit", "3", "--max_calls", "3")
    assert (done.code, server.count, server.asked_if_thinking) == (1, 2, 1)
    (session,) = manifest_in(harness)["sessions"]
    assert session["usage"]["thinking, openai:m"]["attempts"] == 1


def test_nothing_is_asked_before_the_keys_of_all_roles_are_there(harness, serve):
    server = serve(harness)
    judge = f"openai:base_url={harness.url},model=judge,api_key_env=NO_SUCH_KEY"
    done = run(harness, "interests", "--judge", judge, "--limit", "2")
    assert (done.code, server.asked_if_thinking, server.count) == (2, 0, 0)
    assert "NO_SUCH_KEY is not set" in done.err
