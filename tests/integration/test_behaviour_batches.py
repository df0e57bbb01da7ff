"""User behaviour prediction asked in batches: the whole benchmark is one file."""

from __future__ import annotations

import ast
import json
import re

import pytest

TASKS = [f"behaviour_{domain}_{setting}" for domain in ("movies", "music") for setting in "abc"]


def answer(prompt):
    """The candidates of a prompt in the order of the alphabet, without the first of them."""
    return repr(sorted(ast.literal_eval(re.search(r"Candidates: (\[.*\])$", prompt)[1]))[1:11])


def service(folder, name):
    """Answers a file of requests; the name of the file with the answers."""
    replies = []
    for line in map(json.loads, (folder / name).read_text("utf-8").splitlines()):
        body = line["body"]
        message = {"role": "assistant", "content": answer(body["messages"][-1]["content"])}
        completion = {
            "id": "c", "object": "chat.completion", "created": 1, "model": body["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 1_000, "completion_tokens": 200, "total_tokens": 1_200},
        }  # fmt: skip
        response = {"status_code": 200, "request_id": "r", "body": completion}
        replies.append(
            {"id": "b", "custom_id": line["custom_id"], "error": None, "response": response}
        )
    out = f"{name}.out"
    (folder / out).write_text("".join(json.dumps(one) + "\n" for one in replies), "utf-8")
    return out


@pytest.mark.slow
def test_the_whole_benchmark_is_one_file_of_questions(harness):
    harness.url = "http://127.0.0.1:9/v1"
    prices = harness.folder / "prices.toml"
    prices.write_text('[prices."openai:m"]\ninput = 2.5\noutput = 10\n', "utf-8")
    words = [
        "--model", "openai", "--model_args", f"base_url={harness.url},model=m",
        "--tasks", "behaviour", "--data", "sample", "--set", "kept=4",
    ]  # fmt: skip
    told = harness.here(*words, "--dry_run", "--prices", str(prices)).ok()
    assert re.search(r"in total at most [\d.]+ USD", told.out)
    written = harness.here("batch", "write", *words, "--json", "--out", "all.jsonl").ok()
    [file] = written.json["requests"]
    assert sorted(file["stages"]) == [f"{task}/recommend" for task in TASKS]
    lines = [json.loads(one) for one in (harness.folder / "all.jsonl").read_text().splitlines()]
    assert len(lines) == sum(file["stages"].values())
    assert {line["body"]["temperature"] for line in lines} == {0.0}
    [folder] = harness.folders
    read = harness.here("batch", "read", str(folder), service(harness.folder, "all.jsonl"))
    assert read.code == 0, read.err
    ended = harness.here("batch", "write", *words, "--json", "--out", "more.jsonl").ok()
    assert ended.json["status"] == "done"
    for task in TASKS:
        summary = json.loads((folder / task / "summary.json").read_text("utf-8"))
        assert summary["metrics"]["gap"]["missing"] == {}
        assert summary["stages"]["recommend"]["done"] == file["stages"][f"{task}/recommend"]
