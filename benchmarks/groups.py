"""Made-up users and groups in the published layout of PerRecBench, of the published size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

LEVELS = {"easy": 2, "medium": 3, "hard": 4}
GROUPS = 200
USERS = 3000
"""Test and held-out users are in one file, as published."""
TESTED = 1000
HISTORY = 70
ITEMS = 20_000
DAY = 86_400_000
WORDS = (
    "brass", "kettle", "river", "novel", "quiet", "garden", "lamp", "wool", "copper", "night",
    "stone", "paper", "winter", "bread", "glass", "train", "linen", "cedar", "harbour", "clock",
)  # fmt: skip
WORDS_A_TITLE = 14


def write(folder: Path, *, items: int = GROUPS) -> Path:
    """Writes the files of a data folder with groups of so many items, drawn with one seed."""
    rng = Random(11)
    folder.mkdir(parents=True)
    people = [f"U{number:06}" for number in range(USERS)]
    histories = {person: list(history(rng)) for person in people}
    tested = [f"Q{number:04}" for number in range(items)]
    groups = {level: {} for level in LEVELS}
    for item in tested:
        for level, members in LEVELS.items():
            groups[level][item] = [list(members_of(rng, item, members, people, histories))]
    _write(folder / "userid2history.json", histories)
    _write(folder / "userid2profile.json", {person: title(rng, 120) for person in people})
    things = [f"I{number:05}" for number in range(ITEMS)]
    _write(
        folder / "parentasin2item.json",
        {thing: {"title": title(rng, WORDS_A_TITLE), "author": None} for thing in things + tested},
    )
    for level in LEVELS:
        _write(folder / f"item2group_avg_diff_sample-{level}.json", groups[level])
    return folder


def history(rng: Random) -> Iterator[dict[str, object]]:
    """A user's ratings, oldest first."""
    for number in range(HISTORY):
        yield {
            "parent_asin": f"I{int(rng.random() * ITEMS):05}",
            "rating": float(1 + int(rng.random() * 5)),
            "timestamp": number * DAY,
        }


def members_of(
    rng: Random,
    item: str,
    members: int,
    people: list[str],
    histories: dict[str, list[dict[str, object]]],
) -> Iterator[dict[str, object]]:
    """So many users who rated an item last of all, each a star apart from the next."""
    first = int(rng.random() * (TESTED - members))
    for place, person in enumerate(people[first : first + members]):
        behaviours = histories[person]
        rating = float(1 + place)
        behaviours.append(
            {"parent_asin": item, "rating": rating, "timestamp": len(behaviours) * DAY}
        )
        yield {
            "user_id": person,
            "history_len": len(behaviours) - 1,
            "relative_rating": rating - 3.0,
            "avg_rating": 3.0,
        }


def title(rng: Random, words: int) -> str:
    """So many words."""
    return " ".join(WORDS[int(rng.random() * len(WORDS))] for _ in range(words))


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")
