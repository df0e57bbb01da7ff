"""A task whose data is on the web: fetched, run, and run again without a network."""

import json
from pathlib import Path

import harness_perrecbench
import pytest
from builders.web_server import Page, point_google_drive_at, serving, sha256, zipped
from requests.adapters import HTTPAdapter

from harness.data.fetch import OFFLINE

ROWS = "".join(
    json.dumps({"user": f"u{user}", "title": f"story {user} {n}", "action": "liked"}) + "\n"
    for user in range(4)
    for n in range(6)
)


@pytest.fixture
def web():
    with serving() as web:
        web.pages["/people.zip"] = Page(zipped(**{"data/engagements.jsonl": ROWS.encode()}))
        yield web


@pytest.fixture
def task(tmp_path, monkeypatch, web):
    """A task file with a source on the web, and an empty cache."""
    for name in OFFLINE:
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "web.yaml"
    file.write_text(
        "task: web_people\nextends: interests\ndata:\n  sources:\n  - url:\n"
        f"      address: {web.url}/people.zip\n"
        f"      digest: {digest(web)}\n      terms: for research only\n"
        "  tables: {engagements: {files: [data/engagements.jsonl, engagements.jsonl]}}\n"
    )
    return file


def digest(web):
    return sha256(web.pages["/people.zip"].body)


def run(harness, task, *options):
    return harness.here(
        "--model", "baseline", "--judge", "lexical", "--tasks", str(task),
        "--output_path", str(harness.folder / "web-runs"), *options,
    )  # fmt: skip


def test_the_data_of_a_task_comes_by_itself_and_stays(harness, task, web):
    refused = run(harness, task, "--offline")
    assert refused.code == 1
    told = ("'people.zip'", digest(web), "nothing was fetched, because of --offline", "--data")
    assert [part for part in told if part not in refused.err] == []
    absent = harness.here("data", "where", str(task))
    assert absent.code == 1
    assert "not in the cache" in absent.err and "offline" not in absent.err
    ended = run(harness, task).ok()
    assert "/people.zip; terms: for research only" in ended.err
    assert ended.err.count("fetching") == 1
    (manifest,) = (harness.folder / "web-runs").glob("*/manifest.json")
    data = json.loads(manifest.read_text())
    about = data["tasks"]["web_people"]["data"]
    assert about["origin"] == "url"
    assert about["digest"] == digest(web)
    assert about["address"].endswith("/people.zip")
    run(harness, task, "--offline", "--reuse", "none").ok()


def test_no_output_and_no_file_of_a_run_holds_the_query_of_an_address(harness, task, web):
    web.pages["/people.zip?token=abc123"] = web.pages["/people.zip"]
    task.write_text(task.read_text().replace("people.zip", "people.zip?token=abc123"))
    ended = run(harness, task).ok()
    shown = harness.here("tasks", str(task))
    texts = [ended.err, ended.out, shown.out]
    files = [one for one in (harness.folder / "web-runs").rglob("*") if one.is_file()]
    texts += [one.read_bytes().decode("utf-8", "replace") for one in files]
    assert not [text for text in texts if "abc123" in text]
    assert "people.zip?[redacted]" in "".join(texts)
    assert "abc123" not in run(harness, task, "--offline", "--reuse", "none").err


SAMPLE = Path(harness_perrecbench.__file__).parent / "sample"


@pytest.mark.parametrize("top", ["", "data-public/"])
def test_the_groups_of_perrecbench_come_from_google_drive(harness, web, monkeypatch, top):
    files = {
        f"{top}{path.relative_to(SAMPLE).as_posix()}": path.read_bytes()
        for path in SAMPLE.rglob("*.json")
    }
    page = Page(zipped(**files), headers={"content-disposition": "attachment"})
    web.pages["/uc?id=1Px0VosZH0YHmg6y9BbMMFEwraDKAzs4o"] = page
    monkeypatch.setattr(HTTPAdapter, "send", HTTPAdapter.send)
    point_google_drive_at(web.url)
    environment = dict.fromkeys(OFFLINE, "")
    fetched = harness.here("data", "fetch", "perrec_hard", **environment).ok()
    assert fetched.err.count("fetching") == 1
    assert len(web.asked) == 1
    assert fetched.out.count("userid2history.json") == 3
    where = harness.here("data", "where", "perrec_hard", **environment)
    assert (where.code, where.out) == (0, fetched.out)
    done = harness.here(
        "--model", "baseline", "--tasks", "perrec_hard", "--limit", "5", "--offline", "--json",
        **environment,
    ).ok()  # fmt: skip
    assert len(web.asked) == 1
    about = done.summary("perrec_hard_listwise")["data"]
    assert (about["origin"], about["digest"]) == ("drive", sha256(page.body))
    assert about["address"].startswith("https://drive.google.com/file/d/1Px0VosZH0YHmg6y9Bb")
