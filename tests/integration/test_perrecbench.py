"""PerRecBench against models that know the truth: the nine tasks, and profiles.

In this small world a thing is named after all who are asked about it, level by level and in each
the strongest preference first: "Kettle 3 for u3a u3b u3c …". Whoever reads a prompt can tell the
truth from it, as everybody's own things are named after them.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import Any

import pytest

from harness.testing import FaultyServer

LEVELS = ("easy", "medium", "hard")
WAYS = ("pointwise", "pairwise", "listwise")
THINGS = 6
VARIANTS = ("noprofile", "fewshot", "fewshot_noprofile", "sc", "cot", "strict")

RATINGS = {"easy": (4.0, 2.0), "medium": (4.0, 3.0, 2.0), "hard": (4.5, 3.5, 2.5, 1.5)}
"""What the users of a group rate the thing, the strongest preference first."""

PLACES = [rating for ratings in RATINGS.values() for rating in ratings]
"""The same of all who are asked about a thing, as its name has them."""

LETTERS = "abcdefghi"
OWN = 22
"""Ratings that everybody gave to things of their own before anything else."""

BLOCK = re.compile(r"<\|The Start of User\d* Data\|>\n(.*?)\n<\|The End of User", re.DOTALL)
QUERY = re.compile(r"<\|The Start of Query Item Information\|>\n### Item Title\n(.*)")
OWNER = re.compile(r"^sh(?:elf|ed) of (\w+)$", re.MULTILINE)
BEGINNINGS = {"rate": "[User History]\n<|", "compare": "[User A]\n<|", "rank": "[Users]\n<|"}
"""How the question of each stage begins."""


@dataclass(frozen=True)
class Question:
    """What a prompt asks about."""

    stage: str
    title: str
    users: tuple[str, ...]


def question(body: dict[str, Any]) -> Question:
    """The question of a request."""
    prompt = body["messages"][-1]["content"]
    if "### User Behavior history" in prompt:
        return Question("profile", "", (prompt,))
    (stage,) = (name for name, start in BEGINNINGS.items() if start in prompt)
    return Question(stage, QUERY.findall(prompt)[0], tuple(BLOCK.findall(prompt)))


def true_answer(body: dict[str, Any]) -> str:
    """What a server says that knows the truth."""
    asked = question(body)
    if asked.stage == "profile":
        return f"The profile made of {len(re.findall('### Item Title', asked.users[0]))} things"
    names = asked.title.partition(" for ")[2].split()
    likings = [PLACES[names.index(OWNER.search(user)[1])] for user in asked.users]
    if asked.stage == "rate":
        return json.dumps({"predicted_rating": likings[0]})
    if asked.stage == "compare":
        return "[User A]" if likings[0] > likings[1] else "[User B]"
    numbers = sorted(range(len(likings)), key=lambda place: likings[place], reverse=True)
    return json.dumps({"predicted_ranking": [place + 1 for place in numbers]})


def write_world(folder: Path) -> None:
    """Writes the small world as published files: six things.

    Each of them has a group of every level, of users of its own.
    """
    histories: dict[str, list[dict[str, Any]]] = {}
    items: dict[str, dict[str, Any]] = {}
    groups: dict[str, dict[str, Any]] = {level: {} for level in RATINGS}
    for thing in range(THINGS):
        users = [f"u{thing}{one}" for one in LETTERS]
        item = f"Kettle-{thing}"
        items[item] = {"title": f"Kettle {thing} for {' '.join(users)}", "author": None}
        for place, user in enumerate(users):
            histories[user] = live(user, place + thing, items)
        for level, members in groups.items():
            asked, users = users[: len(RATINGS[level])], users[len(RATINGS[level]) :]
            told = [
                rate(item, user, rating, histories[user])
                for user, rating in zip(asked, RATINGS[level], strict=True)
            ]
            # Where the strongest stands is another place in each group.
            turn = thing % len(told)
            members[item] = [told[turn:] + told[:turn]]
    files = {f"item2group_avg_diff_sample-{level}": members for level, members in groups.items()}
    files |= {"userid2history": histories, "parentasin2item": items}
    files |= {"userid2profile": {user: f"{user} is fond of kettles." for user in histories}}
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def live(user: str, number: int, items: dict[str, Any]) -> list[dict[str, Any]]:
    """Ratings of things that nobody else rates, 3.0 to 3.2 on average."""
    for place in ("shelf", "shed"):
        items[f"{place}-{user}"] = {"title": f"{place} of {user}", "author": None}
    liked = OWN // 2 + number % 3
    return [
        {"parent_asin": f"shelf-{user}", "rating": 4.0} if one < liked else
        {"parent_asin": f"shed-{user}", "rating": 2.0}
        for one in range(OWN)
    ]  # fmt: skip


def rate(item: str, user: str, rating: float, history: list[dict[str, Any]]) -> dict[str, Any]:
    """Adds the rating that a group asks for; the user as the group's file has them."""
    history.append({"parent_asin": item, "rating": rating})
    average = fsum(one["rating"] for one in history) / len(history)
    return {
        "user_id": user, "history_len": len(history) - 1, "relative_rating": rating - average,
        "avg_rating": average,
    }  # fmt: skip


@dataclass
class Perrec:
    """Runs the command on a folder of data, in a folder of its own."""

    harness: Any
    data: str
    url: str = ""

    def run(self, tasks: str, *more: str) -> Any:
        """Runs tasks in this process."""
        return self.harness.here(
            "--model", "openai", "--model_args", f"base_url={self.url},model=m,revision=1",
            "--tasks", tasks, "--data", self.data, "--json", *more,
        )  # fmt: skip

    @staticmethod
    def of(done: Any, name: str) -> dict[str, Any]:
        """One metric of each task of a run."""
        return {one["task"]: one["metrics"][name]["value"] for one in done.json["summaries"]}

    def folder(self, done: Any) -> Path:
        """The folder of a run."""
        return self.harness.folder / done.json["folder"]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the small world."""
    folder = tmp_path_factory.mktemp("world")
    write_world(folder)
    return str(folder)


@pytest.fixture(scope="module")
def true(tmp_path_factory: pytest.TempPathFactory, harnesses: Any, small: str) -> Any:
    """The nine tasks on six things, by a model that knows the truth; and the server asked."""
    perrec = Perrec(harnesses(tmp_path_factory.mktemp("true")), small)
    with FaultyServer(true_answer) as server:
        perrec.url = server.url
        yield perrec, perrec.run("perrec").ok(), server


def test_who_knows_the_truth_has_tau_1_in_all_nine_tasks(true):
    perrec, done, _ = true
    for name in ("ptc", "ptc_published", "exact"):
        tasks = [f"perrec_{level}_{way}" for level in LEVELS for way in WAYS]
        assert perrec.of(done, name) == dict.fromkeys(tasks, pytest.approx(1.0)), name
    assert [one["units"] for one in done.json["summaries"]] == [THINGS] * 9
    pointwise = [one for one in done.json["summaries"] if one["task"].endswith("pointwise")]
    assert [one["metrics"]["mae"]["value"] for one in pointwise] == [0.0] * 3
    pairwise = [one for one in done.json["summaries"] if one["task"].endswith("pairwise")]
    for one in pairwise:
        values = {name: metric["value"] for name, metric in one["metrics"].items()}
        assert values["first_position"] == 0.5
        assert values["inconsistent"] == values["undecided"] == 0.0


def test_each_user_is_rated_each_group_ranked_and_each_pair_compared_in_both_orders(true):
    _, _, server = true
    asked, pairs = Counter(), Counter()
    for body in server.requests:
        asks = question(body)
        asked[asks.stage, len(asks.users)] += 1
        if asks.stage == "compare":
            pairs[asks.title, frozenset(asks.users)] += 1
    assert asked["rate", 1] == THINGS * (2 + 3 + 4)
    assert [asked["rank", members] for members in (2, 3, 4)] == [THINGS] * 3
    assert set(pairs.values()) == {2}
    # At most 1, 3 and 6 pairs in groups of 2, 3 and 4; at least those of neighbours.
    assert THINGS * (1 + 2 + 3) <= len(pairs) <= THINGS * (1 + 3 + 6)
    assert {body["temperature"] for body in server.requests} == {0.1}
    lengths = {question(body).stage: body["max_tokens"] for body in server.requests}
    assert lengths == {"rate": 800, "compare": 512, "rank": 800}
    assert max(server.counts.values()) == 1


def test_profiles_are_made_once_for_all_tasks_and_runs_and_shown(tmp_path, harness, small, serve):
    bare = Perrec(harness, str(shutil.copytree(small, tmp_path / "world")))
    (tmp_path / "world/userid2profile.json").unlink()
    candidate, writer = serve(answer=true_answer), serve(answer=true_answer)
    bare.url = candidate.url
    profiler = "--role", f"profiler=openai:base_url={writer.url},model=p,revision=1"
    done = bare.run("perrec", *profiler).ok()
    assert set(bare.of(done, "ptc").values()) == {1.0}
    asked = Counter(question(body).stage for body in writer.requests)
    assert asked == {"profile": THINGS * 9}  # nine users are asked about each thing
    # Everybody has 22 ratings of their own and that of the thing.
    for body in candidate.requests:
        profile = "## User Profile\nThe profile made of 23 things\n"
        assert profile in body["messages"][-1]["content"]
    other = bare.run("perrec_medium_listwise", *profiler, "--set", "k=2").ok()
    assert max(writer.counts.values()) == 1
    stages = other.json["summaries"][0]["stages"]
    assert stages["profile"]["roles"]["profiler"]["from_store"] == THINGS * 3


def test_show_prints_the_analysis_of_the_nine_tasks(true):
    perrec, done, _ = true
    run = str(perrec.folder(done))
    shown = " ".join(perrec.harness.here("show", run).ok().out.split())
    assert " ".join(perrec.harness.here("analyse", "perrec", run).ok().out.split()) in shown
    assert "Only ptc_published is comparable to Table 1" in shown
    assert "of perrec_now, _plain, _dot or _older: without --limit, sample or strict" in shown


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
