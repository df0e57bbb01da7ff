"""Writes the bundled sample of HORIZON: `python tests/samples/horizon.py`.

Everybody and everything in it is invented; the layout is that of Amazon Reviews 2023. Things come
in series: who bought one of a series often buys its next one, so the order of a history foretells
what follows. Tastes drift: everybody begins with one domain and ends with another. New series
appear after 2020.

With `ordered=False` the things of all users before 2020 are dealt out again, and those from 2020
on. What is popular before and after stays the same, and no history foretells anything.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import harness_horizon
from harness_horizon.curation import build
from harness_horizon.curation.settings import Settings

from harness.base.seeded_random import shuffled

SAMPLE = Path(harness_horizon.__file__).parent / "sample"
SEED = 2020
USERS, SERIES, LENGTH = 2_000, 50, 10
"""Six domains of 50 series of ten things are 3,000 things."""

LATE_SERIES = 12
"""The series of each domain that appear after 2020."""

TAU, HOUR = 1_577_836_800_000, 3_600_000
YEAR = 8_766 * HOUR
START = TAU - 5 * YEAR
SPAN = 8.5

GO_ON = 0.7
"""How often somebody buys the next thing of the series of the last one."""

LATE_USERS = 0.15
"""The share of users who may join late, even after 2020."""

AGAIN = 0.01
UNTITLED = 30
"""Every so many things one has no title."""

DOMAINS = {
    "Arts_and_Crafts": ("Loom Yarn Easel Brush", "Beginner Studio Mini"),
    "Books": ("Mystery Atlas Cookbook Saga", "Paperback Hardcover Pocket"),
    "Garden": ("Trowel Planter Trellis Lantern", "Cedar Zinc Painted"),
    "Home_and_Kitchen": ("Kettle Skillet Teapot Ladle", "Copper Enamel Cast-Iron"),
    "Pet_Supplies": ("Leash Perch Aquarium Basket", "Small Large Travel"),
    "Toys_and_Games": ("Puzzle Railway Kite Marble", "Wooden Glow Classic"),
}
"""Each domain with its kinds of things, and what goes before them."""

MAKERS = "Brelto Kupfra Ostmill Tavina Wendel Norra Pelisse Oakhem Voltane Quirrel Lumo Hertzig"


class Bought(NamedTuple):
    """A review: the user, the thing's number, and the time."""

    user: int
    thing: int
    time: int


def domain_of(thing: int) -> str:
    """The domain of a thing."""
    return list(DOMAINS)[thing // (SERIES * LENGTH)]


def title(thing: int) -> str | None:
    """The title of a thing, None for some."""
    series, place = divmod(thing, LENGTH)
    if thing % UNTITLED == UNTITLED - 1:
        return None
    kinds, befores = (words.split() for words in DOMAINS[domain_of(thing)])
    makers = MAKERS.split()
    maker = makers[series % len(makers)]
    return f"{maker} {befores[series % 3]} {kinds[series % 4]} {series:03}, Part {place + 1}"


def appears(thing: int) -> int:
    """When a thing can first be bought."""
    series = thing // LENGTH % SERIES
    late = series - (SERIES - LATE_SERIES)
    return TAU + late * YEAR // 5 if late >= 0 else START


def history(rng: Random, user: int, weights: Sequence[float]) -> Iterator[Bought]:
    """The reviews of a user, oldest first."""
    count = 1 if rng.random() < 0.02 else 5 + int(rng.random() ** 2 * 40)
    joined = rng.random() * (SPAN - 2) if rng.random() < LATE_USERS else rng.random() ** 2 * 4
    joined *= YEAR
    hours = sorted(
        int((joined + rng.random() * (SPAN * YEAR - joined)) / HOUR) for _ in range(count)
    )
    first, last = shuffled(rng, range(len(DOMAINS)))[:2]
    thing, had = -1, set[int]()
    for hour in hours:
        time = START + hour * HOUR
        following = thing + 1
        if thing < 0 or following % LENGTH == 0 or following in had or rng.random() >= GO_ON:
            domain = last if rng.random() < (time - START) / (SPAN * YEAR) else first
            following = -1
            while following < 0 or appears(following) > time:
                series = bisect(weights, rng.random() * weights[-1])
                start = int(rng.random() * LENGTH / 2)
                following = (domain * SERIES + series) * LENGTH + start
        if following not in had or rng.random() < AGAIN:
            yield Bought(user, following, time)
        thing = following
        had.add(thing)


def reviews(seed: int, *, ordered: bool) -> list[Bought]:
    """All reviews, user by user."""
    rng = Random(seed)
    # Late series are no less popular than the others.
    popular = shuffled(rng, [1 / (1 + place) ** 0.8 for place in range(SERIES)])
    weights = list(accumulate(popular))
    made = [one for user in range(USERS) for one in history(rng, user, weights)]
    if ordered:
        return made
    places = defaultdict[bool, list[int]](list)
    for place, one in enumerate(made):
        places[one.time >= TAU].append(place)
    dealt = list(made)
    for within in places.values():
        for place, other in zip(within, shuffled(rng, within), strict=True):
            dealt[place] = made[place]._replace(thing=made[other].thing)
    return dealt


def write(folder: Path, *, seed: int = SEED, ordered: bool = True) -> Path:
    """Writes reviews and metadata of each domain into a folder."""
    rows: dict[str, list[Any]] = {f"reviews/{name}": [] for name in DOMAINS}
    for user, thing, time in reviews(seed, ordered=ordered):
        stars, asin = float(3 + (user + thing) % 3), f"B{thing:05}"
        rows[f"reviews/{domain_of(thing)}"].append(
            {"rating": stars, "parent_asin": asin, "user_id": f"A{user:05}", "timestamp": time}
        )
    for number, name in enumerate(DOMAINS):
        category = name.replace("_", " ")
        rows[f"meta/meta_{name}"] = [
            {"main_category": category, "title": title(thing), "parent_asin": f"B{thing:05}"}
            for thing in range(number * SERIES * LENGTH, (number + 1) * SERIES * LENGTH)
        ]
    for name, own in rows.items():
        file = folder / f"{name}.jsonl.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in own)
        file.write_bytes(gzip.compress(lines.encode(), mtime=0))
    return folder


def write_data(folder: Path) -> Path:
    """Writes the splits and cases that the curation makes of the sample into a folder."""
    with TemporaryDirectory() as made:
        raw = write(Path(made) / "raw")
        for file in raw.rglob("*.gz"):
            os.utime(file, (0, 0))  # the manifest has the times of the files
        out = Path(made) / "out"
        build.run(Settings(reviews=(raw / "reviews",), meta=(raw / "meta",), out=out, memory="2GB"))
        (out / ".lock").unlink()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(out, folder)
    return folder


if __name__ == "__main__":
    write(SAMPLE)
    write_data(SAMPLE / "data")
