"""Runs asked in batches: requests written down, sent by others, their answers taken in."""

import json
import random
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from builders.texts import read_json_lines, write_json_lines

from harness.testing import faults

PEOPLE = 12


@pytest.fixture
def batched(harness, serve):
    """The harness with an address at which nobody answers, and a server that a service asks."""
    harness.url = "http://127.0.0.1:9/v1"
    return harness


def requests(harness, out: str, *more: str, limit: int = PEOPLE, tasks: str = "interests"):
    words = harness.arguments("--limit", str(limit), "--out", out, *more, tasks=tasks)[3:]
    return harness.here("batch", "write", *words)


def replies(harness, *files: str):
    (folder,) = harness.folders
    return harness.here("batch", "read", str(folder), *files)


def live(harness, *more: str, tasks: str = "interests"):
    return harness.here(*harness.arguments("--limit", str(PEOPLE), *more, tasks=tasks)[3:])


def lines_of(harness, name: str) -> list[dict[str, Any]]:
    return read_json_lines(harness.folder / name)


def answered(server, line: dict[str, Any]) -> dict[str, Any]:
    """A line as a batch service writes it, which sends a request's body to the server."""
    assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
    request = urllib.request.Request(
        f"{server.url}/chat/completions",
        data=json.dumps(line["body"]).encode(),
        headers={"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            status, body = response.status, json.load(response)
    except urllib.error.HTTPError as error:
        status, body = error.code, json.load(error)
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"id": "b", "custom_id": line["custom_id"], "response": response, "error": None}


def service(harness, server, requests: str, answers: str) -> list[dict[str, Any]]:
    """Have the server answer a file of requests, and write the answers to another."""
    found = [answered(server, line) for line in lines_of(harness, requests)]
    write(harness, answers, found)
    return found


def write(harness, name: str, lines: list[dict[str, Any]]) -> None:
    write_json_lines(harness.folder / name, lines)


def test_batches_ask_what_a_live_run_asks_and_come_to_the_same(batched, serve):
    server = serve()
    first = requests(batched, "one.jsonl").ok()
    assert first.json["status"] == "waiting"
    assert [file["stages"] for file in first.json["requests"]] == [{"interests/name": PEOPLE}]
    service(batched, server, "one.jsonl", "one.out")
    assert replies(batched, "one.out").out.startswith("12 replies imported\n")

    second = requests(batched, "two.jsonl")
    (file,) = second.json["requests"]
    assert list(file["stages"]) == ["interests/support"]
    service(batched, server, "two.jsonl", "two.out")
    assert replies(batched, "two.out").code == 0

    done = live(batched).ok()  # at an address where nobody would answer
    assert done.json["status"] == "done"
    assert [one["status"] for one in batched.manifest()["sessions"]] == [
        "waiting", "waiting", "done",
    ]  # fmt: skip
    sent = sorted(json.dumps(body, sort_keys=True) for body in server.requests)

    server.asked.clear()
    batched.url = server.url
    wanted = live(batched, "--output_path", "whole", "--no_store")
    assert done.summary()["metrics"] == wanted.summary()["metrics"]
    assert sent == sorted(json.dumps(body, sort_keys=True) for body in server.requests)


def test_what_a_run_asked_itself_is_not_left_to_submit(batched, serve):
    serve(batched)
    assert requests(batched, "one.jsonl").code == 0
    assert live(batched).code == 0
    (folder,) = batched.folders
    assert json.loads((folder / "batches" / "jobs.json").read_text()) == []
    refused = batched.here("batch", "submit", str(folder))
    assert refused.code == 1
    assert "this run has written no requests" in refused.err


def test_answers_hold_in_any_order_in_parts_and_twice(batched, serve):
    server = serve()
    requests(batched, "one.jsonl")
    found = service(batched, server, "one.jsonl", "all.out")
    random.Random(1).shuffle(found)
    write(batched, "first.out", found[:5])
    write(batched, "last.out", found[3:])
    assert replies(batched, "first.out", "first.out").out.splitlines()[:2] == [
        "5 replies imported",
        "not answered yet: 7; `harness batch write` writes them again",
    ]
    again = requests(batched, "rest.jsonl")
    assert again.json["requests"][0]["stages"] == {"interests/name": 7}
    ids = {line["custom_id"] for line in found[5:]}
    assert {line["custom_id"] for line in lines_of(batched, "rest.jsonl")} == ids
    assert replies(batched, "last.out").out.splitlines()[0] == (
        "7 replies imported, 2 were imported before"
    )
    assert requests(batched, "two.jsonl").json["requests"][0]["stages"].keys() == {
        "interests/support"
    }


def test_of_two_answers_to_one_question_the_same_holds_in_either_order(batched, serve):
    requests(batched, "one.jsonl", limit=1)
    (line,) = service(batched, serve(), "one.jsonl", "good.out")
    other = json.loads(json.dumps(line))
    other["response"]["body"]["choices"][0]["message"]["content"] = "[]"
    failed = {"id": "b", "custom_id": line["custom_id"], "response": None}
    failed["error"] = {"code": "batch_expired", "message": "too late"}
    kept = set()
    for order in ([line, other, failed], [failed, other, line]):
        write(batched, "both.out", order)
        assert replies(batched, "both.out").out.splitlines()[0] == "1 replies imported"
        (folder,) = batched.folders
        kept.add((folder / "batches" / "answers.sqlite").read_bytes().count(b'"text":"[]"'))
        (folder / "batches" / "answers.sqlite").unlink()
    assert len(kept) == 1


def test_what_failed_in_passing_is_asked_again_and_what_failed_for_good_is_recorded(batched, serve):
    wrong = {
        0: faults.status(429),
        1: faults.status(400, message="maximum context length is 8"),
        2: faults.TRUNCATED,
        3: faults.FILTERED,
    }
    requests(batched, "one.jsonl")
    found = service(batched, serve(faults=lambda asked: wrong.get(asked.number)), "one.jsonl", "o")
    found[4]["response"], found[4]["error"] = None, {"code": "batch_expired", "message": "late"}
    write(batched, "one.out", found)
    assert replies(batched, "one.out").out.splitlines()[:4] == [
        "9 replies imported",
        "failed permanently: 1: overflow 1",
        "failed, to be repeated: 2: batch_expired 1, rate_limited 1",
        "not answered yet: 2; `harness batch write` writes them again",
    ]
    requests(batched, "again.jsonl", "--max_failures", "1").ok()
    asked = [line["custom_id"] for line in lines_of(batched, "again.jsonl")]
    passing = {found[0]["custom_id"], found[4]["custom_id"]}
    # What was refused is asked a second time, as a live run would; what was cut would be cut again.
    assert len(asked) == 3 and passing < set(asked)
    (refused,) = [number for number, key in enumerate(asked) if key not in passing]
    wrong = {refused: faults.FILTERED}
    server = serve(faults=lambda asked: wrong.get(asked.number))
    service(batched, server, "again.jsonl", "again.out")
    replies(batched, "again.out")
    requests(batched, "two.jsonl", "--max_failures", "1")
    outcomes = [record["outcome"] for record in batched.records("name")]
    causes = sorted(one["cause"] for one in outcomes if one["type"] != "done")
    assert causes == ["overflow", "refused", "truncated"]


def test_what_a_live_run_got_no_answer_to_goes_into_the_next_file(batched, serve):
    server = serve(batched, faults=lambda asked: faults.status(500) if asked.number < 5 else None)
    assert live(batched, "--attempts", "1", "--concurrency", "1").code == 3
    one_by_one = [*server.requests[:5]]
    server.faults = ()
    assert requests(batched, "one.jsonl").json["requests"][0]["stages"] == {"interests/name": 5}
    assert [line["body"] for line in lines_of(batched, "one.jsonl")] == one_by_one
    service(batched, server, "one.jsonl", "one.out")
    replies(batched, "one.out")
    asked = server.count
    done = live(batched).ok()
    assert done.summary()["stages"]["name"]["failures"] == {}
    assert {body["model"] for body in server.requests[asked:]} == {"judge-model"}


def test_an_answer_that_cannot_be_read_is_asked_for_once_more_as_in_a_live_run(batched, serve):
    requests(batched, "one.jsonl", limit=2)
    service(batched, serve(answer=lambda body: "no idea"), "one.jsonl", "one.out")
    replies(batched, "one.out")
    assert requests(batched, "two.jsonl", limit=2).json["status"] == "waiting"
    first, second = lines_of(batched, "one.jsonl"), lines_of(batched, "two.jsonl")
    assert [line["body"] for line in second] == [line["body"] for line in first]
    assert not {line["custom_id"] for line in first} & {line["custom_id"] for line in second}
    service(batched, serve(), "two.jsonl", "two.out")
    replies(batched, "two.out")
    requests(batched, "three.jsonl", limit=2)
    records = batched.records("name")
    assert [len(record["calls"]) for record in records] == [2, 2]
    assert [record["outcome"]["type"] for record in records] == ["done", "done"]


def test_each_model_has_a_file_of_its_own(batched, serve):
    both = "interests,interests_short"
    requests(batched, "one.jsonl", tasks=both)
    found = service(batched, serve(), "one.jsonl", "one.out")
    of_first = {json.dumps(line["body"]) for line in lines_of(batched, "one.jsonl")[:12]}
    assert len(found) == 24 and len(of_first) == 12
    write(batched, "half.out", found[:12])
    replies(batched, "half.out")
    second = requests(batched, "two.jsonl", tasks=both)
    files = {Path(file["path"]).name: file["stages"] for file in second.json["requests"]}
    assert files.keys() == {
        "two.openai-candidate-model.jsonl", "two.openai-judge-model.jsonl",
    }  # fmt: skip
    for name in files:
        models = {line["body"]["model"] for line in lines_of(batched, name)}
        assert models == {name.split("openai-")[1].removesuffix(".jsonl")}
    assert not (batched.folder / "two.jsonl").exists()


def test_a_group_with_a_stage_whose_questions_follow_from_answers_ends_with_an_error(batched):
    said = batched.here(
        "batch", "write", "--tasks", "perrec_medium", "--data", "sample", "--limit", "2",
        "--model", "openai", "--model_args", "base_url=http://127.0.0.1:9/v1,model=m",
        "--out", "one.jsonl",
    )  # fmt: skip
    assert said.code == 1
    assert "perrec_medium_pairwise/compare: the questions of this stage" in said.err
    assert "questions per item, each of which may depend on earlier answers" in said.err
    assert "`harness run` with the same options asks them live" in said.err
    assert "for perrec_medium_listwise/rank" in said.out
    assert (batched.folder / "one.jsonl").exists()


def test_models_that_take_no_batches_are_asked_as_in_a_run(batched, serve):
    words = ["--tasks", "interests", "--data", "sample", "--limit", "3", "--model", "baseline"]
    words += ["--judge", f"openai:base_url={batched.url},model=judge-model"]
    said = batched.here("batch", "write", *words, "--out", "one.jsonl", "--json")
    assert [file["stages"].keys() for file in said.json["requests"]] == [{"interests/support"}]
    service(batched, serve(), "one.jsonl", "one.out")
    replies(batched, "one.out")
    done = batched.here("batch", "write", *words, "--out", "two.jsonl").ok()
    assert "nothing is left to ask: the run is done" in done.out
    assert not (batched.folder / "two.jsonl").exists()


def test_kill_9_while_requests_are_written_leaves_no_half_file(batched, serve):
    words = batched.arguments("--limit", str(PEOPLE), "--out", "one.jsonl")
    words[3:3] = ["batch", "write"]
    out = batched.folder / "one.jsonl"
    process = subprocess.Popen(
        words, cwd=batched.folder, env=batched.environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    asked = "runs/*/batches/asked.jsonl"
    batched.wait_until(lambda: any(batched.folder.glob(asked)) or process.poll() is not None)
    batched.kill(process)
    assert not out.exists() or len(lines_of(batched, out.name)) == PEOPLE
    out.unlink(missing_ok=True)
    (folder,) = batched.folders
    requests(batched, "one.jsonl").ok()
    service(batched, serve(), "one.jsonl", "one.out")
    assert replies(batched, "one.out").out.startswith("12 replies imported\n")
    assert requests(batched, "two.jsonl").json["folder"].endswith(folder.name)


def test_a_torn_note_of_what_was_asked_costs_nothing(batched, serve):
    requests(batched, "one.jsonl")
    service(batched, serve(), "one.jsonl", "one.out")
    (folder,) = batched.folders
    asked = folder / "batches" / "asked.jsonl"
    asked.write_bytes(asked.read_bytes() + b'{"key":"00ff","task":"inter')
    again = requests(batched, "again.jsonl")
    assert again.json["requests"][0]["stages"] == {"interests/name": PEOPLE}
    assert replies(batched, "one.out").out.startswith("12 replies imported\n")
