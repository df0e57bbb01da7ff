"""A small world for PerRecBench, servers that know its truth, and the command that is run on it.

In this world a thing is named after all who are asked about it, level by level and in each the
strongest preference first: "Kettle 3 for u3a u3b u3c …". Whoever reads a prompt can tell the truth
from it, as everybody's own things are named after them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.testing import FaultyServer

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
"""How the question of each stage begins; the examples before it begin so as well."""


@dataclass(frozen=True)
class Question:
    """What a prompt asks about, without the examples before it."""

    stage: str
    title: str
    users: tuple[str, ...]
    thought: bool


def question(body: dict[str, Any]) -> Question:
    """The question of a request."""
    prompt = body["messages"][-1]["content"]
    if "### User Behavior history" in prompt:
        return Question("profile", "", (prompt,), False)
    (stage,) = (name for name, start in BEGINNINGS.items() if start in prompt)
    own = prompt[prompt.rindex(BEGINNINGS[stage]) :]
    thought = "step by step" in own or "thinking step" in own
    return Question(stage, QUERY.findall(own)[0], tuple(BLOCK.findall(own)), thought)


def liking(user: str, title: str) -> float:
    """The true rating in the small world; elsewhere any that the prompt alone decides."""
    owner = OWNER.search(user)
    names = title.partition(" for ")[2].split()
    if owner is None or owner[1] not in names:
        return 1 + len(user) % 9 / 2
    return PLACES[names.index(owner[1])]


def true_answer(body: dict[str, Any]) -> str:
    """What a server says that knows the truth."""
    asked = question(body)
    if asked.stage == "profile":
        return f"The profile made of {len(re.findall('### Item Title', asked.users[0]))} things"
    # Users whom a rating does not part are parted by what is shown of them, in any order.
    likings = [(liking(user, asked.title), user) for user in asked.users]
    if asked.stage == "rate":
        said = json.dumps({"predicted_rating": likings[0][0]})
        doubt = '{"predicted_rating": 1}'
    elif asked.stage == "rank":
        numbers = sorted(range(len(likings)), key=lambda place: likings[place], reverse=True)
        said = json.dumps({"predicted_ranking": [place + 1 for place in numbers]})
        doubt = '{"predicted_ranking": [9]}'
    else:
        said, doubt = ("[User A]", "[User B]")
        if likings[0] < likings[1]:
            said, doubt = doubt, said
    return f"At first sight {doubt}. On reflection: {said}" if asked.thought else said


def write_world(folder: Path) -> None:
    """Writes the small world as published files: six things, and four that are held out.

    Each of them has a group of every level, of users of its own. The first user of each has
    rated it before, which strict tasks are not to show, and liked three of five better than others.
    """
    histories: dict[str, list[dict[str, Any]]] = {}
    items: dict[str, dict[str, Any]] = {}
    files: dict[str, Any] = {"userid2history": histories, "parentasin2item": items}
    for file, kind, letter, number in (
        ("item2group_avg_diff_sample", "Kettle", "u", 6),
        ("held_out", "Pot", "h", 4),
    ):
        groups: dict[str, dict[str, Any]] = {level: {} for level in RATINGS}
        for thing in range(number):
            users = [f"{letter}{thing}{one}" for one in LETTERS]
            item = f"{kind}-{thing}"
            items[item] = {"title": f"{kind} {thing} for {' '.join(users)}", "author": None}
            for place, user in enumerate(users):
                histories[user] = live(user, place + thing, items)
            earlier = 2.0 if thing % 5 in (1, 3) else 5.0
            histories[users[0]].insert(3, {"parent_asin": item, "rating": earlier})
            for level, members in groups.items():
                asked, users = users[: len(RATINGS[level])], users[len(RATINGS[level]) :]
                told = [
                    rate(item, user, rating, histories[user])
                    for user, rating in zip(asked, RATINGS[level], strict=True)
                ]
                # Where the strongest stands is another place in each group.
                turn = thing % len(told)
                members[item] = [told[turn:] + told[:turn]]
        files |= {f"{file}-{level}": members for level, members in groups.items()}
    files["userid2profile"] = {user: f"{user} is fond of kettles." for user in histories}
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
        "user_id": user,
        "history_len": len(history) - 1,
        "relative_rating": rating - average,
        "avg_rating": average,
    }


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

    def prompts(self, done: Any, task: str) -> list[str]:
        """The user's part of all that a task asked the candidate."""
        return [
            call["messages"][-1]["content"]
            for journal in sorted((self.folder(done) / task).glob("?-[!p]*.jsonl"))
            for line in journal.read_text().splitlines()
            for call in json.loads(line)["calls"]
        ]


@pytest.fixture(scope="session")
def answers() -> SimpleNamespace:
    """How a server answers, and what tells questions apart."""
    return SimpleNamespace(true=true_answer, question=question)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the small world."""
    folder = tmp_path_factory.mktemp("world")
    write_world(folder)
    return str(folder)


@pytest.fixture(scope="session")
def perrecs(harnesses: Any, small: str) -> Callable[..., Perrec]:
    """Makes what runs the command in a folder, for fixtures that outlive a test."""
    return lambda folder, data=small: Perrec(harnesses(folder), data)


@pytest.fixture
def perrec(tmp_path: Path, perrecs: Callable[..., Perrec]) -> Perrec:
    return perrecs(tmp_path)


@pytest.fixture(scope="session")
def true(tmp_path_factory: pytest.TempPathFactory, perrecs: Callable[..., Perrec]) -> Any:
    """The nine tasks on six things, by a model that knows the truth; and the server asked."""
    perrec = perrecs(tmp_path_factory.mktemp("true"))
    with FaultyServer(true_answer) as server:
        perrec.url = server.url
        done = perrec.run("perrec").ok()
    return perrec, done, server
