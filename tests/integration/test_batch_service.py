"""Runs asked in batches of a service, over HTTP by the official client."""

import email
import hashlib
import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from builders.requests import make_request

from harness.base.errors import ModelError, UsageError
from harness.contracts.model import Batches, BatchStatus, ModelSettings

KEY = "hush-hush"
"""Too short, and too plain a word, to be known as a key by its looks."""


class Service(ThreadingHTTPServer):
    """A service of files and batches below /v1 and /openai; `end` ends a batch.

    `asked` has method, path and headers of every request; `refuse` maps such a method and path to
    a status. With `lose` the answer to a request is not sent, though what it asked for is done.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.refuse: dict[tuple[str, str], int] = {}
        self.lose: set[tuple[str, str]] = set()
        self.moved: dict[str, str] = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def count(self, method: str, path: str) -> int:
        return sum((method, path) == (one, at) for one, at, _ in self.asked)

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

    def _answered(self, line: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.answer(line["body"])}
        body = {
            "id": "c", "object": "chat.completion", "model": line["body"]["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }  # fmt: skip
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
        return self._send(found)

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
                return service.batches[name]
        raise AssertionError((method, place))

    def _send(self, value: Any, status: int = 200) -> None:
        sent = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)


@pytest.fixture
def service(harness, monkeypatch) -> Iterator[Service]:
    monkeypatch.setenv("TEAM_PASS", KEY)
    with Service(harness.answer) as started:
        harness.url = f"{started.address}/v1,api_key_env=TEAM_PASS"
        threading.Thread(target=started.serve_forever, daemon=True).start()
        yield started
        started.shutdown()


@pytest.fixture
def batch(harness, service):
    """What a command of `harness batch` says; `write` takes a file, the others the run."""

    def command(name: str, *more: str):
        if name == "write":
            words = harness.arguments("--limit", "3", "--out", *more)[3:]
            return harness.here("batch", "write", *words)
        (folder,) = harness.folders
        return harness.here("batch", name, str(folder), *more)

    return command


def jobs(harness) -> list[dict[str, Any]]:
    (folder,) = harness.folders
    return json.loads((folder / "batches" / "jobs.json").read_text())


def test_a_run_is_asked_in_batches_to_its_end(harness, service, batch):
    batch("write", "one.jsonl")
    submitted = batch("submit").ok()
    assert submitted.out.splitlines()[0] == (
        f"{harness.folder / 'one.jsonl'}: 3 requests to openai:candidate-model: batch-0"
    )
    assert batch("submit").out == "nothing is left to submit\n"
    again = batch("write", "again.jsonl").json
    assert (again["status"], again["under_way"]) == ("waiting", 3)
    assert not (harness.folder / "again.jsonl").exists()
    assert (service.count("POST", "files"), service.count("POST", "batches")) == (1, 1)
    assert service.files["file-0"] == (harness.folder / "one.jsonl").read_bytes()
    made = service.batches["batch-0"]
    assert (made["input_file_id"], made["endpoint"], made["completion_window"]) == (
        "file-0", "/v1/chat/completions", "24h",
    )  # fmt: skip
    service.end()
    collected = batch("collect").ok()
    assert collected.out.splitlines()[1] == "3 replies imported"
    batch("write", "two.jsonl")
    batch("submit")
    service.end(batch="batch-1")
    assert batch("collect").code == 0
    done = batch("write", "three.jsonl")
    assert done.json["status"] == "done"
    assert not (harness.folder / "three.jsonl").exists()
    assert batch("submit").out == "nothing is left to submit\n"


def test_what_was_submitted_is_noted_and_no_key(harness, service, batch):
    batch("write", "one.jsonl")
    batch("submit")
    (job,) = jobs(harness)
    assert job["path"] == str(harness.folder / "one.jsonl")
    sent = (harness.folder / "one.jsonl").read_bytes()
    assert job["digest"] == hashlib.sha256(sent).hexdigest()
    assert (job["file_id"], job["batch_id"]) == ("file-0", "batch-0")
    assert job["model"] == "openai:candidate-model"
    assert job["submitted_at"].startswith("20")
    assert {headers["authorization"] for _, _, headers in service.asked} == {f"Bearer {KEY}"}
    for content in harness.files(harness.folder).values():
        assert KEY.encode() not in content


def test_of_files_with_the_same_questions_the_last_is_submitted(harness, service, batch):
    batch("write", "one.jsonl")
    batch("write", "two.jsonl")
    assert batch("submit").code == 0
    assert [Path(job["path"]).name for job in jobs(harness)] == ["two.jsonl"]
    assert len(service.batches) == 1


@pytest.mark.parametrize("lost", [True, False], ids=["answer lost", "refused"])
def test_a_file_without_a_batch_gets_one_and_no_second(harness, service, batch, lost):
    service.batches["batch-other"] = {"id": "batch-other", "input_file_id": "file-x"}
    batch("write", "one.jsonl")
    place = ("POST", "batches")
    if lost:
        service.lose.add(place)
    else:
        service.refuse[place] = 500
    failed = batch("submit")
    assert failed.code == 1
    assert "the batch" in failed.err
    assert service.count(*place) == 1, "what may be paid for is sent once"
    assert jobs(harness)[0]["file_id"] == "file-0"
    found = json.loads(batch("status", "--json").out)
    assert found[0]["status"]["state"] == "uploaded"
    service.batches["batch-last"] = {"id": "batch-last", "input_file_id": "file-y"}
    service.lose.clear()
    service.refuse.clear()
    assert batch("submit").code == 0
    made = [name for name, one in service.batches.items() if one["input_file_id"] == "file-0"]
    assert [jobs(harness)[0]["batch_id"]] == made
    assert service.count("POST", "files") == 1


def test_status_shows_how_far_batches_are(harness, service, batch):
    batch("write", "one.jsonl")
    rows = batch("status").out.split()
    assert rows[-8:] == ["one.jsonl", "openai:candidate-model", "–", "written", "0", "0", "3", "–"]
    batch("submit")
    service.batches["batch-0"]["request_counts"] = {"total": 3, "completed": 1, "failed": 1}
    before = harness.files(harness.folder)
    said = batch("status").ok()
    assert said.out.split()[-10:] == [
        "one.jsonl", "openai:candidate-model", "batch-0", "in_progress", "1", "1", "3",
        "2030-03-17", "17:46", "UTC",
    ]  # fmt: skip
    (found,) = json.loads(batch("status", "--json").out)
    assert found["status"] == {
        "state": "in_progress", "ended": False, "total": 3, "done": 1, "failed": 1,
        "expires_at": 1_900_000_000,
    }  # fmt: skip
    assert harness.files(harness.folder) == before


def test_what_has_not_ended_is_named_and_the_exit_code_says_so(harness, service, batch):
    batch("write", "one.jsonl")
    written = batch("collect")
    assert written.code == 4
    assert written.out == (f"{harness.folder / 'one.jsonl'}: written, 0 done and 0 failed of 3\n")
    batch("submit")
    assert batch("collect").code == 4
    assert "in_progress" in batch("collect").out
    service.end()
    assert batch("collect").code == 0
    asked = len(service.asked)
    assert batch("collect").code == 0
    assert batch("status").out.split()[-7:-3] == ["completed", "3", "0", "3"]
    assert len(service.asked) == asked, "what has ended is asked and downloaded once"


@pytest.mark.parametrize("state", ["expired", "cancelled"])
def test_what_a_batch_left_unanswered_is_counted_and_asked_again(harness, service, batch, state):
    batch("write", "one.jsonl")
    batch("submit")
    service.end(state, unanswered=2)
    said = batch("collect").ok()
    assert said.out.splitlines()[:4] == [
        f"{harness.folder / 'one.jsonl'}: {state}, 1 done and 2 failed of 3",
        "1 replies imported",
        f"failed, to be repeated: 2: batch_{state} 2",
        "not answered yet: 2; `harness batch write` writes them again",
    ]
    again = batch("write", "again.jsonl")
    assert again.json["requests"][0]["stages"] == {"interests/name": 2}
    assert batch("submit").code == 0
    assert list(service.batches) == ["batch-0", "batch-1"]


def test_a_batch_that_failed_as_a_whole_says_why(harness, service, batch):
    batch("write", "one.jsonl")
    batch("submit")
    errors = {"object": "list", "data": [{"code": "x", "message": "no such model", "line": 2}]}
    service.batches["batch-0"] |= {"status": "failed", "errors": errors}
    said = batch("collect")
    assert said.out.splitlines()[:3] == [
        f"{harness.folder / 'one.jsonl'}: failed, 0 done and 0 failed of 3: line 2: no such model",
        "0 replies imported",
        "not answered yet: 3; `harness batch write` writes them again",
    ]
    assert batch("write", "two.jsonl").json["requests"][0]["stages"] == {"interests/name": 3}


def test_questions_that_others_answered_are_not_submitted(harness, service, batch):
    batch("write", "one.jsonl")
    lines = [json.loads(line) for line in (harness.folder / "one.jsonl").read_text().splitlines()]
    answers = [json.dumps(service._answered(line)) for line in lines]
    (harness.folder / "part").write_text(answers[0])
    batch("read", "part")
    refused = batch("submit")
    assert refused.code == 2
    assert "some questions of this file are already answered" in refused.err
    assert "2 of 3 without an answer" in refused.err
    (harness.folder / "rest").write_text("\n".join(answers[1:]))
    batch("read", "rest")
    assert batch("submit").out == "nothing is left to submit\n"
    assert service.asked == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (Path.unlink, "is missing"),
        (lambda file: file.write_text("{}\n"), "was changed after it was written"),
    ],
    ids=["gone", "changed"],
)
def test_a_file_is_looked_at_before_anything_is_uploaded(harness, service, batch, spoil, said):
    batch("write", "one.jsonl")
    spoil(harness.folder / "one.jsonl")
    refused = batch("submit")
    assert refused.code == 1
    assert f"one.jsonl: this file of requests {said}" in refused.err
    assert service.asked == []


def test_a_missing_key_and_a_wrong_one_are_said_and_none_is_shown(
    harness, service, batch, monkeypatch
):
    batch("write", "one.jsonl")
    service.refuse["POST", "files"] = 401
    refused = batch("submit")
    assert refused.code == 1
    assert "HTTP 401: no *** here" in refused.err
    assert "check the key in TEAM_PASS" in refused.err
    assert KEY not in refused.err
    monkeypatch.delenv("TEAM_PASS")
    assert batch("submit").code == 2
    assert "TEAM_PASS is not set" in batch("submit").err


def test_no_redirect_of_a_batch_service_is_followed(service):
    service.batches["b"] = {"id": "b", "status": "failed"}
    service.moved["batches/a"] = f"{service.address}/v1/batches/b?key={KEY}"
    with pytest.raises(ModelError) as caught:
        own(service).status("a")
    said = f"HTTP 307: the server points to {service.address}, and no redirect is followed"
    assert caught.value.found == said
    assert [place for _, place, _ in service.asked] == ["batches/a"]


def test_answers_are_kept_as_they_came_but_without_the_key(service, monkeypatch):
    key = f"{KEY}-of-many-signs"
    monkeypatch.setenv("TEAM_PASS", key)
    lines = ['{"a": "\u2028 \x85"}', json.dumps({"b": f"no {key}"}), '{"c": 1}']
    raw = "\n".join(lines).encode() + b'\n{"half": "\xe2"}'
    service.batches["b"] = {"id": "b", "status": "completed", "output_file_id": service.file(raw)}
    assert b"".join(own(service).answers("b")) == raw.replace(key.encode(), b"***") + b"\n"


def test_a_line_of_answers_without_end_is_refused(service, monkeypatch):
    from harness_models import openai_batches

    monkeypatch.setattr(openai_batches, "LARGEST_BODY", 1_000)
    found = service.file(b"x" * 1_000_000)
    service.batches["b"] = {"id": "b", "status": "completed", "output_file_id": found}
    with pytest.raises(ModelError, match="more than 1,000 bytes"):
        list(own(service).answers("b"))


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
    assert own(service).status("b").problem == f"line 1: {shown}"


def test_models_without_a_service_are_sent_by_others(harness, service, batch, monkeypatch):
    from harness_models.openai import OpenAIModel

    batch("write", "one.jsonl")
    monkeypatch.setattr(OpenAIModel, "batches", lambda self: None)
    refused = batch("submit")
    assert refused.code == 2
    assert "this model has no batch service" in refused.err
    assert "harness batch read RUN" in refused.err


def batches_of(**args: str) -> Batches:
    from harness_models.openai import make

    return make(ModelSettings(args={"model": "m", **args})).batches()


def own(service: Service) -> Batches:
    return batches_of(base_url=f"{service.address}/v1", api_key_env="TEAM_PASS")


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
    found = batches_of(azure_endpoint=service.address, **args).status("b")
    assert found == BatchStatus(state="completed", ended=True)
    ((_, _, headers),) = service.asked
    assert headers["target"] == target
    assert headers.get("api-key") == ("a-key" if keyed else None)
    assert (headers.get("authorization") == "Bearer a-token") is not keyed


def identity(monkeypatch, token: Callable[[], str]) -> None:
    """Put a module in the place of azure-identity, which tests do not install."""
    module = SimpleNamespace(
        DefaultAzureCredential=lambda: "mine",
        get_bearer_token_provider=lambda credential, scope: token,
    )
    monkeypatch.setitem(sys.modules, "azure", SimpleNamespace(identity=module))
    monkeypatch.setitem(sys.modules, "azure.identity", module)


def test_azure_identity_gives_a_token_or_says_why_not(service, monkeypatch):
    identity(monkeypatch, lambda: "its-token")
    service.file(b"")
    assert batches_of(azure_endpoint=service.address).create("file-0", "/v1/x") == "batch-0"
    assert [place for _, place, _ in service.asked] == ["files/file-0", "batches"]
    assert {headers["authorization"] for _, _, headers in service.asked} == {"Bearer its-token"}

    def refused() -> str:
        raise RuntimeError("sign in first")

    identity(monkeypatch, refused)
    for args in ({}, {"api_version": "1"}):
        with pytest.raises(ModelError, match="Azure gave no token") as error:
            batches_of(azure_endpoint=service.address, **args).status("b")
        assert error.value.found == "sign in first"


def test_azure_without_key_and_token_wants_a_key(service, monkeypatch):
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    with pytest.raises(UsageError, match="AZURE_OPENAI_API_KEY is not set"):
        batches_of(azure_endpoint=service.address)


def test_lines_for_azure_name_the_deployment(service):
    from harness_models.openai import make

    args = {
        "model": "m", "azure_endpoint": service.address, "azure_deployment": "mine",
        "api_version": "1",
    }  # fmt: skip
    request = make_request("Hello")
    assert make(ModelSettings(args=args)).batch_line(request)["body"]["model"] == "mine"


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "named by a file alone"])
def test_headers_of_the_environment_go_to_a_trusted_service_alone(service, monkeypatch, trusted):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: red")
    service.batches["b"] = {"id": "b", "status": "failed"}
    from harness_models.openai_args import OpenAIArgs
    from harness_models.openai_batches import OpenAIBatches
    from harness_models.openai_screen import Screen

    args = OpenAIArgs(model="m", base_url=f"{service.address}/v1")
    OpenAIBatches(args, "sk-1", None, Screen(), trusted=trusted).status("b")
    ((_, _, headers),) = service.asked
    given = (headers.get("openai-organization"), headers.get("x-team"))
    assert given == (("org-1", "red") if trusted else (None, None))
    assert headers["user-agent"].startswith("user-understanding-harness/")
    assert headers["authorization"] == "Bearer sk-1"


def test_a_service_that_cannot_be_reached_is_named():
    with pytest.raises(ModelError) as refused:
        batches_of(base_url="http://127.0.0.1:9/v1").status("b")
    assert refused.value.where == "http://127.0.0.1:9/v1"
    assert "nothing is submitted twice" in str(refused.value)
