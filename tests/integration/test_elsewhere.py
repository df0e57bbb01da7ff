"""Runs whose questions go to files: an engine elsewhere answers these, and its answers are read."""

import json
import os
import random
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from builders.requests import make_request
from builders.texts import read_json_lines, write_json_lines
from harness_models.openai import make
from harness_models.server.served import Engine, ServedModel

from harness.calls import client
from harness.calls.client import OwnAnswers
from harness.calls.store import Store
from harness.contracts.identity import Identity
from harness.contracts.model import ModelSettings
from harness.pipeline import elsewhere
from harness.runs.run_folder import RunFolder
from harness.testing import faults

PEOPLE = 12


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """A file is finished soon after its last question."""
    monkeypatch.setattr(client, "QUIET", 0.2)


@pytest.fixture
def asked(harness, serve):
    """A run at an address at which nobody answers, with `--write_requests asked`."""
    harness.url = "http://127.0.0.1:9/v1"

    def asked(*answers: str, limit: int = PEOPLE, more: tuple[str, ...] = ()):
        given = [word for file in answers for word in ("--answers", file)]
        words = words_of(harness, "--limit", str(limit), *given, *more)
        return harness.here(*words, "--write_requests", "asked")

    return asked


def words_of(harness, *more: str) -> list[str]:
    candidate = f"base_url={harness.url},model=candidate-model"
    return [
        "--model", "openai", "--model_args", candidate, "--judge", f"openai:{candidate}",
        "--allow_self_judging", "--tasks", "interests", "--data", "sample", *more,
    ]  # fmt: skip


def lines_of(harness, name: str) -> list[dict[str, Any]]:
    return read_json_lines(harness.folder / name)


def engine(harness, server, requests: str, answers: str) -> list[dict[str, Any]]:
    """Have the server answer a file of requests, and write the answers to another."""
    found = [answered(server, line) for line in lines_of(harness, requests)]
    write_json_lines(harness.folder / answers, found)
    return found


def answered(server, line: dict[str, Any]) -> dict[str, Any]:
    """A line as a batch engine writes it, which sends a request's body to the server."""
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


def both(body: dict[str, Any]) -> str:
    """The answers of the candidate and of the judge, who are one model here."""
    prompt = body["messages"][-1]["content"]
    if "[liked]" not in prompt:
        return "1"
    return '[{"interest": "geese", "items": [1]}]'


def test_two_stages_elsewhere_ask_what_a_live_run_asks_and_come_to_the_same(harness, asked, serve):
    server = serve(answer=both)
    first = asked().ok()
    assert f"asked/requests-1.jsonl: {PEOPLE} requests" in first.out
    assert first.out.splitlines()[-1].startswith("when they are answered: harness --model openai")
    assert first.out.splitlines()[-1].endswith("--write_requests asked --answers FILE")
    assert harness.records("name") == []
    assert not list(harness.folders[0].glob("interests/2-*")), "the next stage has not begun"
    engine(harness, server, "asked/requests-1.jsonl", "one.out")
    second = asked("one.out").ok()
    assert f"{PEOPLE} replies imported" in second.err
    assert "asked/requests-2.jsonl: " in second.out
    assert second.out.splitlines()[-1].count("--answers") == 1
    engine(harness, server, "asked/requests-2.jsonl", "two.out")
    done = asked("one.out", "two.out", more=("--json",)).ok()
    assert done.json["status"] == "done"
    (folder,) = harness.folders
    sessions = json.loads((folder / "manifest.json").read_text())["sessions"]
    assert [one["status"] for one in sessions] == ["interrupted", "interrupted", "done"]
    sent = sorted(json.dumps(body, sort_keys=True) for body in server.requests)
    server.asked.clear()
    harness.url = server.url
    more = ("--limit", str(PEOPLE), "--output_path", "live", "--reuse", "run", "--json")
    wanted = harness.here(*words_of(harness, *more)).ok()
    assert done.summary()["metrics"] == wanted.summary()["metrics"]
    assert sent == sorted(json.dumps(body, sort_keys=True) for body in server.requests)


def test_answers_hold_in_any_order_in_parts_and_twice(harness, asked, serve):
    asked()
    found = engine(harness, serve(answer=both), "asked/requests-1.jsonl", "all.out")
    random.Random(1).shuffle(found)
    write_json_lines(harness.folder / "first.out", found[:5])
    os.mkfifo(pipe := harness.folder / "last.out")
    threading.Thread(target=write_json_lines, args=(pipe, found[3:]), daemon=True).start()
    some = asked("first.out", "first.out").ok()
    assert "5 replies imported\nnot answered yet: 7\n" in some.err
    ids = {line["custom_id"] for line in found[5:]}
    assert {line["custom_id"] for line in lines_of(harness, "asked/requests-2.jsonl")} == ids
    assert "7 replies imported\n" in asked("last.out").ok().err


def test_of_two_answers_to_one_question_the_same_holds_in_either_order(tmp_path):
    model = make(ModelSettings(args={"model": "m", "base_url": "http://127.0.0.1:9/v1"}))
    folder = RunFolder(tmp_path)
    folder.asked.parent.mkdir()
    folder.asked.write_text('{"key": "00ff"}\n')
    lines = [
        {"custom_id": "00ff", "response": {"status_code": 200, "body": {
            "choices": [{"finish_reason": "stop", "message": {"content": text}}]
        }}}
        for text in ("[1]", "[2]")
    ]  # fmt: skip
    late = {"custom_id": "00ff", "error": {"code": "batch_expired", "message": "too late"}}
    kept = set()
    for number, order in enumerate(([*lines, late], [late, *lines[::-1]])):
        file = tmp_path / "answers"
        write_json_lines(file, order)
        store = Store.open(tmp_path / f"{number}.sqlite")
        own = OwnAnswers(store, session=0)
        said = [*elsewhere.import_answers([file], folder, model, own)]
        assert said == ["1 replies imported"]
        kept.update(store.values())
        store.close()
    assert len(kept) == 1


def test_what_failed_in_passing_is_written_again_and_what_failed_for_good_is_recorded(
    harness, asked, serve
):
    wrong = {
        0: faults.status(429),
        1: faults.status(400, message="maximum context length is 8"),
        2: faults.TRUNCATED,
    }
    asked()
    server = serve(answer=both, faults=lambda asked: wrong.get(asked.number))
    found = engine(harness, server, "asked/requests-1.jsonl", "one.out")
    found[4]["response"], found[4]["error"] = None, {"code": "batch_expired", "message": "late"}
    write_json_lines(harness.folder / "one.out", found)
    said = asked("one.out", more=("--max_failures", "1"))
    assert (
        "9 replies imported\nfailed permanently: overflow 1\n"
        "failed, to be asked again: rate_limited 1, server_error 1\n"
    ) in said.err
    assert "not answered yet" not in said.err
    again = {line["custom_id"] for line in lines_of(harness, "asked/requests-2.jsonl")}
    assert again == {found[0]["custom_id"], found[4]["custom_id"]}
    causes = [one["outcome"].get("cause") for one in harness.records("name")]
    assert sorted(filter(None, causes)) == ["overflow", "truncated"]


def test_what_cannot_be_used_is_said_with_its_place_and_files_without_use_are_refused(
    harness, asked, serve
):
    asked()
    found = engine(harness, serve(answer=both), "asked/requests-1.jsonl", "all.out")
    found[1]["response"]["body"] = {"text": "[1]"}
    write_json_lines(harness.folder / "some.out", found[:3])
    write_json_lines(harness.folder / "wrong.out", found[1:2])
    write_json_lines(harness.folder / "none.out", [])
    expected = "an answer with status_code 200 and the body of a chat completion"
    for file, there in (("none.out", "no line"), ("wrong.out", "wrong.out:1: ")):
        refused = asked(file)
        assert (refused.code, f"{file}: no answer can be used" in refused.err) == (1, True)
        assert f"found:    {there}" in refused.err
        assert f"expected: {expected}" in refused.err
        assert "--write_requests DIR in place of --answers writes these questions" in refused.err
    some = asked("some.out", "none.out").ok().err
    assert "2 replies imported\nnone.out: no answer can be used\n" in some
    assert "failed, to be asked again: bad_response 1\nthe first at some.out:2: " in some
    assert f"; expected {expected}\n" in some


def test_a_model_here_is_asked_and_the_candidate_alone_is_written(harness, serve):
    server = serve(harness)
    candidate = "base_url=http://127.0.0.1:9/v1,model=candidate-model"
    words = [
        "--model", "openai", "--model_args", candidate,
        "--judge", f"openai:base_url={server.url},model=judge-model", "--data", "sample",
        "--tasks", "interests,interests_short", "--limit", "3", "--write_requests", "asked",
    ]  # fmt: skip
    harness.here(*words).ok()
    assert server.count == 0
    asked = engine(harness, server, "asked/requests-1.jsonl", "one.out")
    assert len(asked) == 6, "all tasks are in one file"
    done = harness.here(*words, "--answers", "one.out").ok()
    assert "when they are answered" not in done.out
    assert {body["model"] for body in server.requests} == {"candidate-model", "judge-model"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--model", "baseline"], "the questions to this model cannot be written to files"),
        (["--executor", "ray"], "--write_requests needs --executor local"),
        (["--retry_failures"], "--write_requests cannot be combined with --retry_failures"),
    ],
)
def test_what_cannot_be_written_is_refused(harness, more, said):
    words = ["--model", "openai:model=m,base_url=http://127.0.0.1:9/v1", "--judge", "lexical",
             "--tasks", "interests", "--data", "sample", "--write_requests", "asked"]  # fmt: skip
    refused = harness.here(*words, *more)
    assert (refused.code, said in refused.err) == (2, True)


def test_a_candidate_asked_elsewhere_needs_no_key(harness):
    words = ["--model", "openai:model=m", "--judge", "lexical", "--tasks", "interests",
             "--limit", "2", "--write_requests", "asked", "--data"]  # fmt: skip
    refused = harness.here(*words, "gone.jsonl")
    assert (refused.code, "gone.jsonl" in refused.err) == (1, True)
    assert "OPENAI_API_KEY" not in refused.err
    harness.here(*words, "sample").ok()
    assert len(lines_of(harness, "asked/requests-1.jsonl")) == 2


def test_kill_9_while_requests_are_written_leaves_no_half_file(harness, asked, serve):
    words = words_of(harness, "--limit", str(PEOPLE), "--write_requests", "asked")
    process = subprocess.Popen(
        [*harness.arguments()[:3], *words], cwd=harness.folder, env=harness.environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    notes = "runs/*/batches/asked.jsonl"
    harness.wait_until(lambda: any(harness.folder.glob(notes)) or process.poll() is not None)
    harness.kill(process)
    (notes,) = harness.folder.glob(notes)
    notes.write_bytes(notes.read_bytes() + b'{"key":"00ff')
    asked().ok()
    files = sorted(Path(harness.folder / "asked").glob("requests-*.jsonl"))
    assert {len(read_json_lines(file)) for file in files} == {PEOPLE}
    engine(harness, serve(answer=both), f"asked/{files[-1].name}", "one.out")
    assert f"{PEOPLE} replies imported" in asked("one.out").ok().err


def test_an_engine_of_weights_writes_the_lines_that_it_would_send(tmp_path, monkeypatch):
    who = Identity(kind="acme", name="small")
    engine = Engine(identity=who, model="weights", command=lambda address: [], concurrency=2,
                    requests={"stop": ("END",)})  # fmt: skip
    model = ServedModel(engine, ModelSettings(args={}))
    body = model.batch_line(make_request("hello"))["body"]
    assert (body["model"], body["stop"]) == ("weights", ["END"])
    message = {"choices": [{"finish_reason": "stop", "message": {"content": "hi"}}]}
    assert model.read_batch(200, message).text == "hi"
