"""PerRecBench whole: its profiles and variants, and groups that are built from reviews."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders.web_server import Page, Web, point_google_drive_at, serving
from requests.adapters import HTTPAdapter

from harness.data.fetch import OFFLINE

WAYS = ("pointwise", "pairwise", "listwise")
VARIANTS = ("noprofile", "fewshot", "fewshot_noprofile", "sc", "cot", "strict")
RATED = {"ann": 5.0, "bob": 4.0, "cid": 3.0, "dee": 2.0}
"""What everybody rates each of the shared things, with an average near 3."""

QUOTA = (
    b'<html><p class="uc-error-subcaption">Too many users have viewed or downloaded this file '
    b"recently.</p></html>"
)

TASKS = """
task: small_{ask}
extends: perrec_hard_{ask}
matrix: {ask: [pairwise, listwise]}
data:
  size: null
  sources:
    - drive: {file: 1AbCdEfGhIjKlMnOpQrStUvWxYz012345, name: published.zip, terms: none known}
    - build:
        tool: perrec-groups
        options: {test_items: 4, behaviours: 5, domains: [book=Books, kitchen=Home]}
        inputs:
          reviews: [{url: {address: WEB/Books.jsonl}}, {url: {address: WEB/Home.jsonl}}]
          meta: [{url: {address: WEB/meta.jsonl}}]
"""


def pages() -> dict[str, Page]:
    """Reviews of two domains, in which four people rated the same six things, and all items."""
    reviews: dict[str, list[dict[str, Any]]] = {"Books": [], "Home": []}
    items = set()

    def rate(domain: str, user: str, item: str, rating: float, day: int) -> None:
        items.add(item)
        time = 1_600_000_000_000 + day * 86_400_000
        reviews[domain].append(
            {"user_id": user, "parent_asin": item, "rating": rating, "timestamp": time}
        )

    for place, (user, rating) in enumerate(RATED.items()):
        for number in range(22):
            rate("Books", user, f"{user}-{number}", 2.0 + 2 * (number % 2), number)
        for thing in range(6):
            rate("Home", user, f"thing-{thing}", rating, 30 + 3 * thing + place % 2)
    meta = [{"parent_asin": item, "title": f"The {item}"} for item in sorted(items)]
    return {
        f"/{name}.jsonl": Page(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
        for name, rows in {**reviews, "meta": meta}.items()
    }


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A server with reviews, which answers for Google Drive too: too many fetched the file."""
    for name in OFFLINE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(HTTPAdapter, "send", HTTPAdapter.send)
    with serving() as web:
        web.pages.update(pages())
        web.pages["/uc?id=1AbCdEfGhIjKlMnOpQrStUvWxYz012345"] = Page(QUOTA, kind="text/html")
        point_google_drive_at(web.url)
        yield web


@pytest.fixture
def task(tmp_path: Path, web: Web) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(TASKS.replace("WEB", web.url))
    return file


def test_groups_are_built_where_the_published_ones_cannot_be_had(harness, task, web):
    absent = harness.here("data", "where", str(task))
    assert absent.code == 1
    assert "the data of task 'small_pairwise' was not built yet" in absent.err
    assert absent.err.count("cannot get its data") == 1
    assert "no data from" not in absent.err
    assert absent.out.count("not on this machine") == 2
    assert absent.out.count("item2group") == 1
    assert web.asked == []

    fetched = harness.here("data", "fetch", str(task)).ok()
    assert "no data from published.zip on Google Drive" in fetched.err
    assert fetched.err.count("building data from 3 files, once") == 1
    assert "built by harness data perrec-groups" in fetched.out
    web.asked.clear()
    there = harness.here("data", "where", str(task)).ok()
    assert there.out == fetched.out

    baselines = ("--model", "baseline", "--role", "profiler=baseline")
    ended = harness.here(*baselines, "--tasks", str(task), "--json", "--offline").ok()
    assert web.asked == []
    assert "building data" not in ended.err
    for summary in ended.json["summaries"]:
        assert summary["units"] == 4
        assert summary["metrics"]["higher_average_first"]["value"] == 1.0
        assert "data built here, not the published data" in summary["not_comparable_because"]
    manifest = json.loads((harness.folder / ended.json["folder"] / "manifest.json").read_text())
    data = manifest["tasks"]["small_listwise"]["data"]
    assert (data["origin"], data["tool"], data["comparable"]) == ("build", "perrec-groups", False)
    assert data["options"]["test_items"] == 4
    assert data["options"]["seed"] == 0
    assert [one["file"] for one in data["inputs"]["reviews"]] == ["Books.jsonl", "Home.jsonl"]
    built = Path(data["tables"]["groups"]["files"][0]["file"]).parents[2]
    assert (built / "kitchen/kitchen-processed/parentasin2item.json").exists()


@pytest.mark.parametrize(
    ("written", "wrong", "said"),
    [
        ("test_items: 4", "test_itemz: 4", "no option 'test_itemz' for a task to set"),
        ("test_items: 4", "out: elsewhere", "no option 'out' for a task to set"),
        ("book=Books", "Books", "text of the form"),
    ],
)
def test_a_build_that_cannot_be_is_found_in_the_file(harness, task, written, wrong, said):
    assert written in TASKS
    task.write_text(TASKS.replace(written, wrong).replace("WEB", "http://h"))
    ended = harness.here("validate", str(task))
    assert ended.code == 2
    assert said in ended.err
    assert "small.yaml:" in ended.err


def test_profiles_are_made_once_for_all_tasks_and_runs_and_shown(harness, serve):
    def answer(body: dict[str, Any]) -> str:
        ranked = "predicted_ranking" in body["messages"][-1]["content"]
        return json.dumps({"predicted_ranking": [1, 2]} if ranked else {"predicted_rating": 3})

    candidate, writer = serve(answer=answer), serve(answer=lambda body: "Fond of kettles.")
    words = (
        "--model", "openai", "--model_args", f"base_url={candidate.url},model=m,revision=1",
        "--role", f"profiler=openai:base_url={writer.url},model=p,revision=1", "--data", "sample",
        "--limit", "3", "--json",
    )  # fmt: skip
    listwise = "perrec_easy_listwise_strict"
    done = harness.here("--tasks", f"{listwise},perrec_easy_pointwise_strict", *words).ok()
    assert [one["metrics"]["ptc"]["n"] for one in done.json["summaries"]] == [3, 3]
    assert writer.count == 6, "two users are asked about each thing"
    for body in candidate.requests:
        assert "## User Profile\nFond of kettles.\n" in body["messages"][-1]["content"]
    other = harness.here("--tasks", listwise, "--set", "k=2", *words).ok()
    assert writer.count == 6
    made = other.summary(listwise)["stages"]["profile"]["roles"]["profiler"]
    assert made["from_store"] == 6


def test_the_bundled_sample_is_enough_for_every_variant_and_for_ratings(harness):
    tasks = [f"perrec_easy_{way}_{one}" for way, one in zip(WAYS * 2, VARIANTS, strict=True)]
    done = harness.here(
        "--model", "baseline", "--role", "profiler=baseline", "--tasks",
        ",".join([*tasks, "perrec_easy_pairwise_shots5_k16", "perrec_rating_published"]),
        "--data", "sample", "--limit", "2", "--json",
    ).ok()  # fmt: skip
    assert len(done.json["summaries"]) == len(VARIANTS) + 2
    for summary in done.json["summaries"]:
        foremost = summary["metrics"]["mae" if "rating" in summary["task"] else "ptc"]
        assert (foremost["n"], foremost["missing"]) == (2, {}), summary["task"]
