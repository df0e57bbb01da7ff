"""Runs asked in batches of a service, over HTTP by the official client."""

import asyncio
import email
import json
import os
import shutil
import signal
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import msgspec
import pytest
from builders.requests import make_request
from harness_models import openai_batches

from harness.base.errors import Interrupted, ModelError, UsageError
from harness.calls import client
from harness.calls.store import Store
from harness.contracts.model import ModelSettings
from harness.runs import request_file

KEY = "hush-hush"
"""Too short, and too plain a word, to be known as a key by its looks."""


class Service(ThreadingHTTPServer):
    """A service of files and batches below /v1 and /openai, which also answers live.

    A batch ends as `look` says when it is looked at: `end` ends it. `live` has the bodies that were
    asked live. `asked` has method, path and headers of every request; `refuse` maps such a method
    and path to a status. With `lose` the answer to a request is not sent, though what it asked for
    is done; with `cut` half of it is sent, once.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.refuse: dict[tuple[str, str], int] = {}
        self.lose: set[tuple[str, str]] = set()
        self.cut: set[tuple[str, str]] = set()
        self.moved: dict[str, str] = {}
        self.live: list[dict[str, Any]] = []
        self.look: Callable[[str], None] = lambda name: self.end(batch=name)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def count(self, method: str, path: str) -> int:
        return sum((method, path) == (one, at) for one, at, _ in self.asked)

    @property
    def sent(self) -> list[bytes]:
        """The lines of all batches that were not refused as a whole."""
        made = (one for one in self.batches.values() if one["status"] != "failed")
        return [line for one in made for line in self.files[one["input_file_id"]].splitlines()]

    def file(self, content: bytes) -> str:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    def end(self, state: str = "completed", *, unanswered: int = 0, batch: str = "batch-0") -> None:
        """End a batch: all are answered but the last few, which have a failure in its words."""
        found = self.batches[batch]
        lines = [json.loads(line) for line in self.files[found["input_file_id"]].splitlines()]
        at = len(lines) - unanswered
        done = [self._answered(line) for line in lines[:at]]
        error = {"code": f"batch_{state}", "message": f"the batch was {state}"}
        failed = [{"custom_id": one["custom_id"], "response": None, "error": error}
                  for one in lines[at:]]  # fmt: skip
        # No line end after the last: what follows must not grow into that line.
        found["output_file_id"] = self.file("\n".join(map(json.dumps, done)).encode())
        found["error_file_id"] = self.file("\n".join(map(json.dumps, failed)).encode())
        found["request_counts"] = {"total": len(lines), "completed": at, "failed": unanswered}
        found["status"] = state

    def fail(self, name: str, errors: list[dict[str, Any]]) -> None:
        """Refuse a batch as a whole."""
        self.batches[name] |= {"status": "failed", "errors": {"object": "list", "data": errors}}

    def reply(self, asked: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.answer(asked)}
        return {
            "id": "c", "object": "chat.completion", "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }  # fmt: skip

    def _answered(self, line: dict[str, Any]) -> dict[str, Any]:
        body = self.reply(line["body"])
        response = {"status_code": 200, "request_id": "r", "body": body}
        return {"custom_id": line["custom_id"], "response": response, "error": None}


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def _answer(self, method: str) -> None:
        length = int(self.headers.get("content-length", 0))
        received = self.rfile.read(length)
        path = urlsplit(self.path).path
        place = path.split("/v1/")[-1].split("/openai/")[-1]
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((method, place, headers | {"target": self.path}))
        if place in self.server.moved:
            self.send_response(307)
            self.send_header("location", self.server.moved[place])
            self.send_header("content-length", "0")
            return self.end_headers()
        if status := self.server.refuse.get((method, place)):
            sent = f"no {self.headers['authorization'].split()[-1]} here"
            return self._send({"error": {"message": sent, "code": None}}, status)
        found = self._found(method, place.split("/"), received)
        if (method, place) in self.server.lose:
            self.connection.close()
            return None
        half = (method, place) in self.server.cut
        self.server.cut.discard((method, place))
        return self._send(found, half=half)

    def _found(self, method: str, place: list[str], received: bytes) -> Any:
        service = self.server
        match method, place:
            case "POST", ["files"]:
                head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
                parts = email.message_from_bytes(head + received).get_payload()
                fields = {part.get_param("name", header="content-disposition"): part
                          for part in parts}  # fmt: skip
                assert fields["purpose"].get_payload() == "batch"
                name = service.file(fields["file"].get_payload(decode=True))
                return {"id": name, "object": "file", "status": "processed"}
            case "GET", ["files", name]:
                return {"id": name, "object": "file", "status": "processed"}
            case "GET", ["files", name, "content"]:
                return service.files[name]
            case "POST", ["batches"]:
                name = f"batch-{len(service.batches)}"
                service.batches[name] = {
                    "id": name, "object": "batch", "created_at": 1, "status": "in_progress",
                    "expires_at": 1_900_000_000, "output_file_id": None, "error_file_id": None,
                    "errors": None, "request_counts": None, **json.loads(received),
                }  # fmt: skip
                return service.batches[name]
            case "GET", ["batches"]:
                after = parse_qs(urlsplit(self.path).query).get("after", [""])[0]
                newest = list(service.batches)[::-1]
                at = newest.index(after) + 1 if after else 0
                page = [service.batches[name] for name in newest[at : at + 1]]
                more = at + 1 < len(newest)
                return {"object": "list", "data": page, "has_more": more}
            case "GET", ["batches", name]:
                if service.batches[name]["status"] == "in_progress":
                    service.look(name)
                return service.batches[name]
            case "POST", ["chat", "completions"]:
                service.live.append(json.loads(received))
                return service.reply(service.live[-1])
            case "GET", ["models"]:
                names = ("candidate-model", "judge-model", "m")
                return {"object": "list", "data": [{"id": name} for name in names]}
        raise AssertionError((method, place))

    def _send(self, value: Any, status: int = 200, *, half: bool = False) -> None:
        sent = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent[: len(sent) // 2] if half else sent)


@pytest.fixture
def service(harness, monkeypatch) -> Iterator[Service]:
    monkeypatch.setenv("TEAM_PASS", KEY)
    with Service(harness.answer) as started, quickly():
        harness.url = f"{started.address}/v1,api_key_env=TEAM_PASS"
        threading.Thread(target=started.serve_forever, daemon=True).start()
        yield started
        started.shutdown()


@contextmanager
def quickly() -> Iterator[None]:
    """Batches are looked at often, and a file is sent soon after its last question."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "QUIET", 0.2)
        patch.setattr(openai_batches, "FIRST_PAUSE", 0.01)
        patch.setattr(openai_batches, "LONGEST_PAUSE", 0.01)
        yield


@pytest.fixture
def run(harness, service):
    """A run whose candidate is asked in batches; `batch` and other arguments may be given."""

    def run(*more: str, limit: int = 3, batch: str = "true", judge: str = "lexical"):
        args = f"base_url={harness.url},model=candidate-model,thinking=false"
        return harness.here(
            "--model", "openai", "--model_args", f"{args},batch={batch}", "--judge", judge,
            "--tasks", "interests", "--data", "sample", "--limit", str(limit), *more,
        )  # fmt: skip

    return run


def metrics_in(runs: Path) -> dict[str, Any]:
    (file,) = runs.glob("*/interests/summary.json")
    return json.loads(file.read_text())["metrics"]


def test_a_run_in_batches_asks_what_a_live_run_asks_and_comes_to_the_same(harness, service, run):
    judge = f"openai:base_url={harness.url},model=judge-model,thinking=false,batch=only"
    done = run(judge=judge, limit=12, batch="only").ok()
    assert "openai:candidate-model: 12 requests in batch-0" in done.err
    assert "openai:candidate-model: batch-0: completed, 12 of 12 done" in done.err
    assert service.live == []
    notes = [json.loads(one.read_text()) for one in harness.folder.rglob("batches/*/jobs.json")]
    noted = {(job["file_id"], job["batch_id"], job["ended"]) for jobs in notes for job in jobs}
    made = service.batches.items()
    assert noted == {(one["input_file_id"], name, True) for name, one in made}
    assert {headers["authorization"] for _, _, headers in service.asked} == {f"Bearer {KEY}"}
    for content in harness.files(harness.folder).values():
        assert KEY.encode() not in content
    sent = [json.loads(line) for line in service.sent]
    assert {(line["method"], line["url"]) for line in sent} == {("POST", "/v1/chat/completions")}
    models = [json.loads(service.files[one["input_file_id"]].splitlines()[0])["body"]["model"]
              for one in service.batches.values()]  # fmt: skip
    assert set(models) == {"candidate-model", "judge-model"}
    run("--output_path", "whole", "--reuse", "run", judge=judge.replace("only", "false"),
               limit=12, batch="false").ok()  # fmt: skip
    assert metrics_in(harness.folder / "runs") == metrics_in(harness.folder / "whole")
    (manifest,) = harness.folder.glob("runs/*/manifest.json")
    assert "batch" not in json.loads(manifest.read_text())["asked"]["model_args"]
    asked = (json.dumps(line["body"], sort_keys=True) for line in sent)
    assert sorted(asked) == sorted(json.dumps(body, sort_keys=True) for body in service.live)


@pytest.mark.parametrize("batch", ["true", "only"])
@pytest.mark.parametrize("state", ["expired", "cancelled"])
def test_what_a_batch_left_unanswered_is_asked_again(harness, service, run, state, batch):
    def look(name: str) -> None:
        service.end(*([state] if name == "batch-0" else []),
                    unanswered=2 * (name == "batch-0"), batch=name)  # fmt: skip

    service.look = look
    done = run(batch=batch).ok()
    assert f"batch_{state}: the batch was {state}; retrying" in done.err
    assert len(service.live) == (0 if batch == "only" else 2)
    assert (len(service.batches) > 1) is (batch == "only")
    calls = [call for record in harness.records("name") for call in record["calls"]]
    assert sorted(call.get("attempts", 1) for call in calls) == (
        [1, 2, 2] if batch == "only" else [1, 1, 1]
    )


def test_a_second_try_is_asked_live(harness, service, run):
    service.answer = lambda body: "no idea"

    def look(name: str) -> None:
        service.end(batch=name)
        service.answer = harness.answer

    service.look = look
    run().ok()
    assert (len(service.batches), len(service.live)) == (1, 3)
    assert [len(record["calls"]) for record in harness.records("name")] == [2, 2, 2]


def test_an_interrupt_says_that_live_calls_in_flight_finish(harness, service, run):
    service.answer = lambda body: "no idea"
    signals = iter([signal.SIGINT])

    def answer(body: dict[str, Any]) -> str:
        for number in signals:
            os.kill(os.getpid(), number)
        return harness.answer(body)

    def look(name: str) -> None:
        service.end(batch=name)
        service.answer = answer

    service.look = look
    stopped = run()
    assert (stopped.code, len(service.batches)) == (130, 1)
    assert "finishing the calls in flight; press Ctrl-C again to stop at once" in stopped.err


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        ([{"code": "invalid", "message": "no such model", "line": 2}], "line 2: no such model"),
        ([], "the service refused the whole batch"),
    ],
)
def test_a_file_that_fails_whole_is_sent_once_more_and_its_failures_are_typed(
    harness, service, run, errors, words
):
    service.look = lambda name: service.fail(name, errors)
    said = run()
    assert said.code == 3
    assert len(service.batches) == 2
    assert f"batch-0: {words}; it is sent once more" in said.err
    outcomes = [record["outcome"] for record in harness.records("name")]
    assert {(one["cause"], one["detail"]) for one in outcomes} == {("bad_request", words)}


def test_what_failed_and_was_sent_again_is_not_sent_a_third_time_after_a_kill(
    harness, service, run
):
    def look(name: str) -> None:
        if name == "batch-0":
            service.end("expired", unanswered=2, batch=name)
        else:
            os.kill(os.getpid(), signal.SIGINT)

    service.look = look
    assert run(batch="only").code == 130
    (file,) = harness.folder.glob("runs/*/batches/*/jobs.json")
    noted = json.loads(file.read_text())
    assert [job.pop("ended", None) for job in noted] == [True, None]
    file.write_text(json.dumps(noted))  # as kill -9 leaves it
    looks = iter(range(30))
    service.look = lambda name: next(looks, None) is None and service.end(batch=name)
    again = run(batch="only").ok()
    assert "retrying" not in again.err, "the failure of the first batch was answered before"
    assert (len(service.sent), len(service.batches)) == (5, 2)


@pytest.mark.parametrize(
    "line",
    ['{"custom_id": "%s", "x": "\udcff"}', '{"custom_id": "%s", "x": %d}', '{"x": %n}'],
    ids=["bytes that are no text", "a number of 5,000 digits", "nested a million times"],
)
def test_a_line_that_cannot_be_read_is_a_failure_of_its_question_alone(harness, service, run, line):
    def look(name: str) -> None:
        service.end(batch=name)
        file = service.batches[name]["output_file_id"]
        first, *others = service.files[file].split(b"\n")
        bad = line.replace("%s", json.loads(first)["custom_id"])
        bad = bad.replace("%d", "1" * 5_000).replace("%n", "[" * 10**6 + "]" * 10**6)
        service.files[file] = b"\n".join([bad.encode("utf-8", "surrogateescape"), *others])

    service.look = look
    run("--attempts", "1")
    outcomes = [record["outcome"] for record in harness.records("name")]
    causes = [one["cause"] for one in outcomes if one["type"] != "done"]
    assert causes == ["server_error" if "%n" in line else "bad_response"]


def test_answers_that_were_cut_are_fetched_again(service, run):
    service.cut.add(("GET", "files/file-1/content"))
    said = run().ok().err
    assert "peer closed connection" in said and "it is tried again" in said
    assert (len(service.batches), service.live) == (1, [])


def test_a_file_that_the_queue_has_no_room_for_is_halved_and_sent_one_after_the_other(service, run):
    def look(name: str) -> None:
        open_now = [one for one, made in service.batches.items() if made["status"] == "in_progress"]
        assert open_now == [name], "the queue has no room for both"
        lines = service.files[service.batches[name]["input_file_id"]].count(b"\n")
        if lines > 4:
            service.fail(name, [{"code": "token_limit_exceeded", "message": "full"}])
        else:
            service.end(batch=name)

    service.look = look
    run(limit=12).ok()
    sizes = [service.files[one["input_file_id"]].count(b"\n") for one in service.batches.values()]
    assert sizes == [12, 6, 3, 3, 3, 3]
    assert service.live == []


def test_files_have_at_most_so_many_requests_and_bytes(service, run, monkeypatch):
    monkeypatch.setattr(request_file, "MOST_LINES", 5)
    run(limit=12, batch="only").ok()
    sizes = [service.files[one["input_file_id"]].count(b"\n") for one in service.batches.values()]
    assert sizes == [5, 5, 2]
    largest = max(len(line) for line in service.sent)
    monkeypatch.setattr(request_file, "MOST_LINES", 50_000)
    monkeypatch.setattr(request_file, "MOST_BYTES", 3 * largest)
    service.batches.clear()
    run("--reuse", "none", limit=12, batch="only").ok()
    files = [service.files[one["input_file_id"]] for one in service.batches.values()]
    assert len(files) > 3 and max(map(len, files)) <= 3 * largest


@pytest.mark.parametrize("lost", [True, False], ids=["answer lost", "refused"])
def test_a_batch_whose_id_was_lost_is_found_and_none_is_paid_twice(harness, service, run, lost):
    service.batches["batch-other"] = {"id": "batch-other", "input_file_id": "file-x"}
    place = ("POST", "batches")
    if lost:
        service.lose.add(place)
    else:
        service.refuse[place] = 500
    failed = run()
    assert failed.code == 1
    assert "the batch" in failed.err
    assert service.count(*place) == 1, "what may be paid for is sent once"
    service.lose.clear()
    service.refuse.clear()
    run().ok()
    del service.batches["batch-other"]
    assert len(service.batches) == 1 and len(service.sent) == 3


def test_where_nothing_was_uploaded_no_batch_goes_on(service, run):
    service.refuse["POST", "files"] = 500
    failed = run()
    assert (failed.code, "the batch service refuses the upload" in failed.err) == (1, True)
    assert "the batches go on" not in failed.err


def test_a_service_that_does_not_answer_for_a_while_is_asked_again(service, run, monkeypatch):
    monkeypatch.setattr(openai_batches, "LONGEST_PAUSE", 60.0)  # which it does not reach
    place = ("GET", "batches/batch-0")
    service.refuse[place] = 503

    def wait() -> None:
        while service.count(*place) < 3:  # the client itself asks three times
            time.sleep(0.01)
        service.refuse.clear()

    threading.Thread(target=wait, daemon=True).start()
    assert "HTTP 503: no *** here; it is tried again" in run().ok().err


async def test_an_answer_that_nobody_took_is_left_to_the_next_asker_and_session(service, tmp_path):
    service.answer = lambda body: "yes"
    model = batched(base_url=f"{service.address}/v1", api_key_env="TEAM_PASS")
    model.folder = tmp_path
    await model.open()
    requests = [msgspec.structs.replace(make_request("a"), key=key) for key in ("00", "01", "02")]
    soon, later, stays = (asyncio.create_task(model.ask(each)) for each in requests)
    await asyncio.sleep(0)
    model.gathered(live=True)
    soon.cancel()
    later.cancel()
    assert model.holds("00")
    assert (await stays).text == (await model.ask(requests[0])).text == "yes"
    assert not model.holds("00")
    await model.close()
    await model.open()
    assert model.holds("01"), "else it is asked again, and paid twice"
    assert (await model.ask(requests[1])).text == "yes"
    await model.close()
    assert len(service.sent) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_session_at_once_and_the_same_command_takes_the_batches_up(
    service, run, number
):
    service.look = lambda name: os.kill(os.getpid(), number)
    stopped = run()
    assert stopped.code == 130
    assert "the batches go on; the same command takes them up" in stopped.err
    assert stopped.err.splitlines()[-3:-1] == [
        "harness: interrupted",
        "  to do:    the batches go on; the same command takes them up",
    ]
    assert "finishing the calls" not in stopped.err
    service.look = lambda name: service.end(batch=name)
    run().ok()
    assert (len(service.batches), len(service.sent)) == (1, 3)


@pytest.mark.parametrize("second", ["", ";http://127.0.0.1:9/v1"], ids=["one address", "two"])
def test_a_command_without_batch_is_refused_while_batches_are_open(harness, service, run, second):
    harness.url = f"{service.address}/v1,api_key_env=TEAM_PASS,revision=1"
    service.look = lambda name: os.kill(os.getpid(), signal.SIGINT)
    assert run().code == 130
    harness.url = f"{service.address}/v1{second},api_key_env=TEAM_PASS,revision=1"
    refused = run(batch="false")
    assert (refused.code, service.live) == (2, [])
    (jobs,) = harness.folder.glob("runs/*/batches/*/jobs.json")
    for said in (
        "openai:candidate-model: batches of this run are open",
        "found:    1 with 3 requests: batch-0",
        f"delete {jobs.relative_to(harness.folder)}",
    ):
        assert said in refused.err
    jobs.unlink()
    harness.url = f"{service.address}/v1,api_key_env=TEAM_PASS,revision=1"
    run(batch="false").ok()
    assert len(service.live) == 3


def test_answers_that_are_here_are_used_and_never_given_up(harness, service, run):
    service.look = lambda name: os.kill(os.getpid(), signal.SIGINT)
    assert run().code == 130
    (jobs,) = harness.folder.glob("runs/*/batches/*/jobs.json")
    (job,) = json.loads(jobs.read_text())
    service.end()
    answers = service.files[service.batches["batch-0"]["output_file_id"]]
    jobs.with_name(f"{job['id']}.out").write_bytes(answers + b"\n")  # as kill -9 leaves it
    refused = run(batch="false")
    assert (refused.code, service.live) == (2, [])
    assert "answers of batches of this run are here" in refused.err
    assert "with batch=true, which uses them\n" in refused.err
    run().ok()
    assert (len(service.batches), service.live) == (1, [])


@pytest.fixture
def itself(harness, service):
    """A judge with the weights of the candidate."""
    harness.url += ",revision=1"
    service.answer = lambda body: harness.answer(body) if names(body) else "1"
    return f"openai:base_url={harness.url},model=candidate-model,thinking=false"


def names(body: dict[str, Any]) -> bool:
    """Whether the candidate is asked, and not the judge."""
    return "[liked]" in body["messages"][-1]["content"]


def test_batches_of_one_role_do_not_keep_another_from_asking_the_same_model_live(
    service, run, itself
):
    service.look = lambda name: os.kill(os.getpid(), signal.SIGINT)
    stopped = run("--allow_self_judging", judge=itself)
    assert (stopped.code, "finishing the calls" in stopped.err) == (130, False)
    service.look = lambda name: service.end(batch=name)
    run("--allow_self_judging", judge=itself).ok()
    assert len(service.sent) == 3 and service.live and not any(map(names, service.live))


@pytest.mark.parametrize("second", ["", ";http://127.0.0.1:9/v1"], ids=["one address", "two"])
def test_what_a_role_sent_is_not_asked_live_while_another_takes_it_up(service, run, itself, second):
    service.look = lambda name: (
        os.kill(os.getpid(), signal.SIGINT) if name == "batch-1" else service.end(batch=name)
    )
    assert run("--allow_self_judging", judge=f"{itself},batch=only", batch="only").code == 130
    live = itself.replace("/v1", f"/v1{second}")
    refused = run("--allow_self_judging", judge=live, batch="only")
    small = [body for body in service.live if "17 times 23" in body["messages"][-1]["content"]]
    assert (refused.code, service.live) == (2, small)
    assert "batches of this run are open" in refused.err and ": batch-1" in refused.err


@pytest.mark.parametrize(("taken_up", "ended"), [(0, False), (1, False), (1, True)])
def test_batches_of_version_0_1_are_open_until_they_are_taken_up(tmp_path, taken_up, ended):
    job = {"id": "a", "requests": 2, "endpoint": "", "file_id": "f", "batch_id": "b"}
    model = batched(base_url="http://127.0.0.1:9/v1").live
    model.folder = tmp_path / "own"
    model.folder.mkdir()
    (tmp_path / "jobs.json").write_text(json.dumps(
        [{**job, "model": "openai:m"}, {**job, "id": "c", "model": "openai:another"}]
    ))  # fmt: skip
    if taken_up:
        (model.folder / "jobs.json").write_text(json.dumps([{**job, "ended": ended}]))
    if ended:
        return model.require()
    with pytest.raises(UsageError) as refused:
        model.require()
    assert refused.value.found == "1 with 2 requests: b"
    return None


def test_batches_that_ended_do_not_keep_a_command_from_asking_live(service, run):
    service.answer = lambda body: "no idea"
    assert run("--max_failures", "0", batch="only").code == 3
    run("--max_failures", "0", "--retry_failures", batch="false")
    assert service.live


def test_a_spent_budget_sends_what_it_pays_for_and_ends(harness, service, run):
    service.look = lambda name: None
    spent = run("--max_calls", "2", batch="only")
    assert spent.code == 130
    assert "the budget of calls is spent" in spent.err
    assert "the batches go on; the same command takes them up" in spent.err
    assert len(service.sent) == 2
    service.look = lambda name: service.end(batch=name)
    run("--max_calls", "2", batch="only").ok()  # what an earlier session paid does not count
    assert len(service.sent) == len(set(service.sent)) == 3


@pytest.mark.parametrize("batch", ["true", "only"])
def test_what_the_budget_cannot_reserve_waits_for_a_later_file(harness, service, run, batch):
    (harness.folder / "prices.toml").write_text(
        '[prices."openai:candidate-model"]\ninput = 0\noutput = 1000\n'
    )
    # Each call may cost 1,024 tokens at most, and costs one.
    run("--prices", "prices.toml", "--max_cost", "2.2", batch=batch).ok()
    sizes = [service.files[one["input_file_id"]].count(b"\n") for one in service.batches.values()]
    assert sizes == [2, 1]


def test_a_call_in_flight_takes_two_kilobytes_beside_what_the_stage_holds(tmp_path):
    many = 4_000
    requests = [make_request(f"{'x' * 10_000} {number}") for number in range(many)]

    async def measured() -> int:
        model = batched(base_url="http://127.0.0.1:9/v1")
        model.folder = tmp_path / "batches"
        asking = client.Client(store=None, run_id="r")
        first = asyncio.ensure_future(asking.ask(model, make_request("a"), role="c", stage="s"))
        await asyncio.sleep(0.01)  # the model is open
        tracemalloc.start()
        calls = [asking.ask(model, one, role="c", stage="s") for one in requests]
        for call in calls:
            call.send(None)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(model._places) == many + 1
        for call in calls:
            call.close()
        asking.stop(Interrupted("enough"))
        await asyncio.gather(first, return_exceptions=True)
        await asking.close()
        return held // many

    assert asyncio.run(measured()) <= 2_000


def test_a_stage_that_asks_in_sequence_is_asked_live_and_the_forecast_says_so(harness, service):
    service.answer = lambda body: "1"
    words = (
        "--model", "openai", "--model_args", f"base_url={harness.url},model=m,thinking=false,"
        "batch=true", "--tasks", "perrec_medium_pairwise", "--data", "sample", "--limit", "2",
    )  # fmt: skip
    forecast = harness.here(*words, "--dry_run").ok()
    assert "asked live, not in batches" in forecast.out
    assert "perrec_medium_pairwise/compare" in forecast.out
    harness.here(*words, "--max_failures", "1", "--json")
    assert service.live and not service.batches


def test_batches_are_sent_to_one_server_by_one_process(run):
    urls = "http://127.0.0.1:1/v1;http://127.0.0.1:2/v1"
    with pytest.raises(UsageError, match="a batch is sent to one server") as caught:
        batched(base_url=urls)
    assert caught.value.found == f"base_url={urls}"
    elsewhere = run("--executor", "ray")
    assert elsewhere.code == 2
    assert "batches are asked by one process, not by workers elsewhere" in elsewhere.err


@pytest.mark.parametrize("refused", [False, True])
def test_batches_of_version_0_1_are_taken_up_once(harness, service, run, refused):
    """A folder as 0.1 left it: a question answered, one in a batch, one not yet asked."""
    service.look = lambda name: os.kill(os.getpid(), signal.SIGINT)
    assert run().code == 130
    (folder,) = harness.folders
    (own,) = folder.glob("batches/*/")
    lines = [*map(json.loads, next(own.glob("*.jsonl")).read_bytes().splitlines())]
    shutil.rmtree(own)
    (folder / "batches" / "asked.jsonl").write_text("".join(
        json.dumps({"key": line["custom_id"], "task": "interests", "stage": "name",
                    "role": "candidate", "job": job}) + "\n"
        for line, job in zip(lines, ("first", "second", "none"), strict=True)
    ))  # fmt: skip
    job = {"id": "second", "path": "gone.jsonl", "model": "openai:candidate-model", "requests": 1,
           "endpoint": "/v1/chat/completions", "digest": "d", "file_id": "file-x",
           "batch_id": "batch-x"}  # fmt: skip
    ended = {**job, "id": "first", "ended": {"state": "completed", "ended": True}}
    (folder / "batches" / "jobs.json").write_text(json.dumps([ended, job]))
    answers = Store.open(folder / "batches" / "answers.sqlite")
    reply = json.dumps({"reply": {"text": harness.answer(lines[0]["body"])}})
    answers.put(bytes.fromhex(lines[0]["custom_id"]), reply.encode())
    answers.close()
    name = service.file(json.dumps(lines[1]).encode())
    service.batches = {"batch-x": {
        "id": "batch-x", "object": "batch", "input_file_id": name, "status": "in_progress",
        "created_at": 1, "completion_window": "24h", "endpoint": "/v1/chat/completions",
    }}  # fmt: skip
    if refused:
        service.look = lambda name: (
            service.fail(name, []) if name == "batch-x" else service.end(batch=name)
        )
        assert run("--max_failures", "1", batch="only").code == 0
        run("--retry_failures", batch="false").ok()
        assert len(service.live) == 1, "nor do they keep a command from asking live"
        return
    service.look = lambda name: service.end(batch=name)
    run().ok()
    assert (len(service.batches), len(service.live)) == (1, 1)
    calls = [call for record in harness.records("name") for call in record["calls"]]
    assert {call.get("source", "model") for call in calls} == {"model"}


def test_no_redirect_of_a_batch_service_is_followed(service):
    service.batches["b"] = {"id": "b", "status": "failed"}
    service.moved["batches/a"] = f"{service.address}/v1/batches/b?key={KEY}"
    with pytest.raises(ModelError) as caught:
        own(service).batch("a")
    said = f"HTTP 307: the server points to {service.address}, and no redirect is followed"
    assert caught.value.found == said
    assert [place for _, place, _ in service.asked] == ["batches/a"]


def test_answers_are_kept_as_they_came_without_the_key_and_a_line_without_end_is_refused(
    service, monkeypatch
):
    key = f"{KEY}-of-many-signs"
    monkeypatch.setenv("TEAM_PASS", key)
    lines = ['{"a": "\u2028 \x85"}', json.dumps({"b": f"no {key}"}), '{"c": 1}']
    raw = "\n".join(lines).encode() + b'\n{"half": "\xe2"}'
    service.batches["b"] = {"id": "b", "status": "completed", "output_file_id": service.file(raw)}
    found = own(service)
    assert b"".join(found.answers(found.batch("b"))) == raw.replace(key.encode(), b"***") + b"\n"
    monkeypatch.setattr(openai_batches, "LARGEST_BODY", 1_000)
    found = service.file(b"x" * 1_000_000)
    service.batches["b"] = {"id": "b", "status": "completed", "output_file_id": found}
    with pytest.raises(ModelError, match="more than 1,000 bytes"):
        list(own(service).answers(own(service).batch("b")))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"no {quote(KEY)} here", "no *** here"),
        # The key begins inside the first 500 characters, "line 1: " included, and ends behind them.
        ("x" * 489 + KEY + "y" * 200_000, "x" * 489 + "**…"),
    ],
    ids=["short", "cut"],
)
def test_what_a_service_says_of_a_batch_shows_no_key(service, said, shown):
    errors = {"data": [{"line": 1, "message": said}]}
    service.batches["b"] = {"id": "b", "status": "failed", "errors": errors}
    assert own(service).problem(own(service).batch("b")) == f"line 1: {shown}"


def batched(**args: str) -> openai_batches.BatchedModel:
    return openai_batches.make(ModelSettings(args={"model": "m", "batch": "true", **args}))


def own(service: Service) -> openai_batches.OpenAIBatches:
    return batched(base_url=f"{service.address}/v1", api_key_env="TEAM_PASS").batches()


@pytest.mark.parametrize(
    "args, target",
    [
        ({"api_version": "2025-01-01"}, "/openai/batches/b?api-version=2025-01-01"),
        ({}, "/openai/v1/batches/b"),
    ],
)
@pytest.mark.parametrize("keyed", [True, False], ids=["key", "token"])
def test_azure_takes_a_key_or_a_token(service, monkeypatch, args, target, keyed):
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "a-token")
    if keyed:
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "a-key")
    service.batches["b"] = {"id": "b", "status": "completed"}
    batches = batched(azure_endpoint=service.address, **args).batches()
    assert batches.batch("b").status == "completed"
    ((_, _, headers),) = service.asked
    assert headers["target"] == target
    assert headers.get("api-key") == ("a-key" if keyed else None)
    assert (headers.get("authorization") == "Bearer a-token") is not keyed


def test_azure_identity_gives_a_token_or_says_why_not(service, monkeypatch):
    """With a module in the place of azure-identity, which tests do not install."""
    refused = []

    def token():
        if refused:
            raise RuntimeError(*refused)
        return "its-token"

    identity = SimpleNamespace(
        DefaultAzureCredential=lambda: "mine",
        get_bearer_token_provider=lambda credential, scope: token,
    )
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(UsageError, match="AZURE_OPENAI_API_KEY is not set"):
        batched(azure_endpoint=service.address).batches()
    monkeypatch.setitem(sys.modules, "azure", SimpleNamespace(identity=identity))
    monkeypatch.setitem(sys.modules, "azure.identity", identity)
    service.file(b"")
    assert batched(azure_endpoint=service.address).batches().create("file-0", "/v1/x") == "batch-0"
    assert [place for _, place, _ in service.asked] == ["files/file-0", "batches"]
    assert {headers["authorization"] for _, _, headers in service.asked} == {"Bearer its-token"}
    refused.append("sign in first")
    for args in ({}, {"api_version": "1"}):
        with pytest.raises(ModelError, match="Azure gave no token") as error:
            batched(azure_endpoint=service.address, **args).batches().batch("b")
        assert error.value.found == "sign in first"


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "named by a file alone"])
def test_headers_of_the_environment_go_to_a_trusted_service_alone(service, monkeypatch, trusted):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: red")
    service.batches["b"] = {"id": "b", "status": "failed"}
    from harness_models.openai_args import OpenAIArgs
    from harness_models.openai_screen import Screen

    args = OpenAIArgs(model="m", base_url=f"{service.address}/v1")
    openai_batches.OpenAIBatches(args, "sk-1", None, Screen(), trusted=trusted).batch("b")
    ((_, _, headers),) = service.asked
    given = (headers.get("openai-organization"), headers.get("x-team"))
    assert given == (("org-1", "red") if trusted else (None, None))
    assert headers["user-agent"].startswith("user-understanding-harness/")
    assert headers["authorization"] == "Bearer sk-1"


def test_a_service_that_cannot_be_reached_is_named():
    with pytest.raises(ModelError) as refused:
        batched(base_url="http://127.0.0.1:9/v1").batches().batch("b")
    assert refused.value.where == "http://127.0.0.1:9/v1"
    assert "nothing is submitted twice" in str(refused.value)
