"""User behaviour prediction asked in batches: the whole benchmark is one file."""

from __future__ import annotations

import ast
import json
import re

import msgspec
from builders.behaviour import a_prompt
from harness_behaviour.building import prompt_files
from harness_behaviour.building.cells import setting_of, table1
from harness_behaviour.records import Recipe

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


def write_prompts(domain, folder):
    """Writes made-up prompts, as many in each cell as the paper's Table 1 has."""
    prompts = []
    for (proxy, length), number in table1(domain).items():
        value = {"setting": setting_of(proxy, length), "proxy": proxy, "length": length}
        for place in range(1, number + 1):
            one = a_prompt(id=f"{domain}/{proxy}/{length}/{place:03}", **value)
            titles = one.id, *one.candidates[1:]  # prompts of one text would be one question
            prompts.append(msgspec.structs.replace(one, user=one.id, candidates=titles))
    built = prompt_files.Built(
        recipe=Recipe(domain=domain), prompts=tuple(prompts), cells=(), notes={}
    )
    prompt_files.write(folder, built, {}, option="--out")
    return len(prompts)


def test_the_whole_benchmark_of_the_paper_is_one_file_whose_price_is_told_before(harness):
    numbers = {
        f"behaviour_{domain}": write_prompts(domain, harness.folder / domain)
        for domain in ("movies", "music")
    }
    assert numbers == {"behaviour_movies": 5_096, "behaviour_music": 4_924}
    prices = harness.folder / "prices.toml"
    prices.write_text('[prices."openai:m"]\ninput = 2.5\noutput = 10\n', "utf-8")
    words = [
        "--model", "openai", "--model_args", "base_url=http://127.0.0.1:9/v1,model=m",
        "--tasks", "behaviour", "--data", f"behaviour_movies={harness.folder / 'movies'}",
        "--data", f"behaviour_music={harness.folder / 'music'}",
    ]  # fmt: skip
    told = harness.here(*words, "--dry_run", "--prices", str(prices)).ok().out
    assert "in total ~10,020 calls (10,020 to 10,020)" in told
    assert re.search(r"in total at most [\d.]+ USD", told)
    harness.here("batch", "write", *words, "--out", "all.jsonl").ok()
    with (harness.folder / "all.jsonl").open("rb") as file:
        assert sum(1 for _ in file) == 10_020
