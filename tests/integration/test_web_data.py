"""A task whose data is on the web: fetched, run, and run again without a network."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness.data.fetching import OFFLINE

ROWS = "".join(
    json.dumps({"user": f"u{user}", "title": f"story {user} {n}", "action": "liked"}) + "\n"
    for user in range(4)
    for n in range(6)
)


@pytest.fixture
def address():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("data/engagements.jsonl", ROWS)
    body = packed.getvalue()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_GET(self):
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def task(tmp_path, monkeypatch, address):
    """A task file with a source on the web, and an empty cache."""
    for name in OFFLINE:
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "web.yaml"
    file.write_text(
        "task: web_people\nextends: interests\ndata:\n  sources:\n  - url:\n"
        f"      address: http://127.0.0.1:{address.server_port}/people.zip\n"
        f"      digest: {address.digest}\n      terms: for research only\n"
        "  tables: {engagements: {files: [data/engagements.jsonl, engagements.jsonl]}}\n"
    )
    return file


def command(harness, *words):
    return harness.command([sys.executable, "-m", "harness", *words])


def run(harness, task, *options):
    return command(
        harness, "--model", "baseline", "--judge", "lexical", "--tasks", str(task),
        "--output_path", str(harness.folder / "web-runs"), *options,
    )  # fmt: skip


def test_the_data_of_a_task_comes_by_itself_and_stays(harness, task, address):
    refused = run(harness, task, "--offline")
    assert refused.code == 1
    for part in (
        "'people.zip'",
        address.digest,
        "nothing was fetched, because of --offline",
        "--data",
    ):
        assert part in refused.err
    ended = run(harness, task)
    assert ended.code == 0, ended.err
    assert "/people.zip; terms: for research only" in ended.err
    assert ended.err.count("fetching") == 1
    (manifest,) = (harness.folder / "web-runs").glob("*/manifest.json")
    data = json.loads(manifest.read_text())
    about = data["tasks"]["web_people"]["data"]
    assert about["origin"] == "url"
    assert about["digest"] == address.digest
    assert about["address"].endswith("/people.zip")
    again = run(harness, task, "--offline", "--fresh")
    assert again.code == 0, again.err


def test_data_is_fetched_beforehand_and_found(harness, task, address):
    absent = command(harness, "data", "where", str(task))
    assert absent.code == 1
    assert "not in the cache" in absent.err
    fetched = command(harness, "data", "fetch", str(task))
    assert fetched.code == 0, fetched.err
    assert address.digest in fetched.out.replace("\n", "").replace(" ", "")
    there = command(harness, "data", "where", str(task))
    assert (there.code, there.out) == (0, fetched.out)
    assert "engagements.jsonl" in there.out
    assert run(harness, task, "--offline").code == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("digest: sha256:12", "sha256: or md5: and the digits"),
        ("address: ftp://h/a.zip", "an address as https://host/file.zip"),
        ("address: https://me:secret@h/a.zip", "without a user or password"),
        ("name: ../a.zip", "a file name"),
    ],
)
def test_a_source_that_cannot_be_used_is_found_in_the_file(harness, task, wrong, said):
    key = wrong.partition(":")[0]
    lines = [line for line in task.read_text().splitlines() if not line.startswith(f"      {key}:")]
    at = lines.index("  - url:") + 1
    task.write_text("\n".join([*lines[:at], f"      {wrong}", *lines[at:]]) + "\n")
    ended = command(harness, "validate", str(task))
    assert ended.code == 2
    assert said in ended.err
