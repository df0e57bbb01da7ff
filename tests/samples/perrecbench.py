"""Writes the bundled sample of PerRecBench: `python tests/samples/perrecbench.py`.

Everybody and everything in it is invented. A rating is made of three hidden numbers: how generous
the user is, how good the thing is, and how much the user likes its theme. Themes are the two ends
of scales: who likes one end dislikes the other as much.

Each group has its mirror image: the same users, asked about another thing, as good as the first,
from the other end of its scale. There their order is reversed. What is the same for a user in both,
the average above all, is therefore right about one group exactly where it is wrong about the other,
whatever the seed. Only taste can tell who comes first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

import harness_perrecbench
from harness_perrecbench.data.layout import ALWAYS
from harness_perrecbench.data.members import average
from harness_perrecbench.grouping.build import folder_of, groups_file
from harness_perrecbench.grouping.json_files import write_list, write_object
from harness_perrecbench.grouping.reading import ALL
from harness_perrecbench.records import Level

from harness.base.seeded_random import drawn, picked, shuffled

SAMPLE = Path(harness_perrecbench.__file__).parent / "sample"
PROFILES = "userid2profile.json"
BEHAVIOURS = "sample_behavior.json"
SEED = 1250
USERS = 200
TESTED_PAIRS, HELD_OUT_PAIRS = 30, 20
OTHER_THINGS = 120
ALONE = 200
"""Ratings that are asked about one by one."""

SHORTEST, LONGEST = 25, 40
EARLIER = 21
"""Ratings that everybody gave before any that a group asks about."""

MOST_ASKED = 10
"""How many ratings of a user groups ask about before others are taken."""

LIKINGS: dict[Level, tuple[float, ...]] = {
    "easy": (-0.5, 0.5),
    "medium": (-0.75, 0.0, 0.75),
    "hard": (-1.25, -0.5, 0.5, 1.25),
}
"""How much the users of a group like its theme, in stars."""

EVERY_LIKING = (-1.25, -0.75, -0.5, -0.5, 0.0, 0.5, 0.5, 0.75, 1.25)
GENEROSITY = (0.25, 0.5, 0.75, 1.0)
QUALITY = (0.5, 0.75)
"""By how many stars users and things differ from the middle, up or down. All are quarters, so that
those who rate a thing in nearly half stars are many; rounded, they stay more than 0.6 apart."""

NOISE = 0.05
"""How far averages are from quarters of a star at most."""

SCALES = (
    ("Nautical Harbour Sailor Lighthouse", "Alpine Mountain Glacier Edelweiss"),
    ("Minimal Plain Uncluttered Monochrome", "Baroque Gilded Ornate Brocade"),
    ("Retro Vintage Jukebox Bakelite", "Futuristic Robot Neon Holographic"),
    ("Pastel Candy Kitten Rainbow", "Gothic Raven Midnight Crypt"),
)
"""Opposite themes, each with its words."""

GOODS = {
    "book": (
        "Once My Our Another", "Mystery Romance Cookbook Memoir Saga",
        "Secrets Letters Stories", "Novel Anthology Collection",
    ),
    "kitchen": (
        "Brelto Kupfra Ostmill Tavina", "Kettle Skillet Teapot Apron Toaster",
        "Pattern Handle Trim", "Small Large Twin-Pack",
    ),
    "clothing": (
        "Wendel Norra Pelisse Oakhem", "Sweater Scarf Jacket Socks Cap",
        "Print Lining Buttons", "Adult Youth Unisex",
    ),
    "electronic": (
        "Voltane Quirrel Lumo Hertzig", "Speaker Headphones Charger Lamp Keyboard",
        "Case Finish Lights", "Black Silver Refurbished",
    ),
}  # fmt: skip
"""By domain: what titles begin with, kinds of things, what the second theme word is of, endings."""

FIRST_NAMES = ("Ada", "Bo", "Cleo", "Dirk", "Edda", "Finn", "Gus", "Hedi", "Ivo", "Juna")
LAST_NAMES = ("Aster", "Brandt", "Corvin", "Dahl", "Ember", "Falk", "Grimm", "Hollis", "Ilse")

OPENINGS = (
    "Shops for books and for the household alike.",
    "Writes short reviews, mostly on weekends.",
    "Buys for a family and for the shelf.",
    "Reads a lot and replaces things late.",
)
FOND = ("Cannot resist", "Is happiest with", "Keeps coming back to", "Has a weakness for")
MILD = ("Does not mind", "Now and then picks", "Is fairly fond of")
NO_TASTE = "No taste stands out."

STRETCH = 0.06
"""How far a rating asked about may be from the half star that it is rounded to."""

APART = 0.15
"""How far averages of users in a group are apart at least, so that they are never tied."""

DAY = 86_400_000
EARLY, EARLY_DAYS = 1_483_228_800_000, 1_820
LATE, LATE_DAYS = 1_640_995_200_000, 330
WINDOW_DAYS = 29


class Thing(NamedTuple):
    """Something that is rated: how good it is, and at which `end` (1 or -1) of which scale."""

    id: str
    title: str
    author: str | None
    scale: int
    end: int
    quality: float


class User(NamedTuple):
    """Who rates: the average aimed at, and how much the first end of each scale is liked."""

    id: str
    average: float
    tastes: tuple[float, ...]

    def rating(self, thing: Thing) -> float:
        """What generosity, quality and taste come to."""
        return self.average + thing.quality + thing.end * self.tastes[thing.scale]


class Rating(NamedTuple):
    """A rating of a history."""

    time: int
    thing: Thing
    rating: float


Members: TypeAlias = dict[Level, tuple[User, ...]]
Groups: TypeAlias = dict[Level, dict[str, tuple[User, ...]]]
Themes: TypeAlias = Mapping[tuple[int, int], Sequence[Thing]]


def write(folder: Path) -> None:
    """Writes users, things and ratings in the published layout."""
    rng = Random(SEED)
    catalogue = Catalogue(rng)
    users = tuple(
        User(
            id=catalogue.new_id("U"),
            average=3 + _of_either_sign(rng, GENEROSITY) + NOISE * (2 * rng.random() - 1),
            tastes=tuple(picked(rng, EVERY_LIKING) for _ in SCALES),
        )
        for _ in range(USERS)
    )
    asked = Asked(rng, users)
    tested = _groups(rng, catalogue, asked, pairs=TESTED_PAIRS)
    held_out = _groups(rng, catalogue, asked, pairs=HELD_OUT_PAIRS)
    for place in range(OTHER_THINGS):
        scale = place // 2 % len(SCALES)
        catalogue.add(scale, 1 - 2 * (place % 2), _of_either_sign(rng, QUALITY))
    themes: dict[tuple[int, int], list[Thing]] = defaultdict(list)
    for thing in catalogue.things:
        themes[thing.scale, thing.end].append(thing)
    histories = {user.id: _history(rng, user, asked.ratings[user.id], themes) for user in users}
    late = [(user, place) for user, one in histories.items() for place in range(EARLIER, len(one))]
    profiles = {user.id: profile(rng, user.tastes) for user in users}
    alone = drawn(rng, late, ALONE)

    place = folder_of(folder, ALL)
    things = (
        (one.id, {"title": one.title, "author": {"name": one.author} if one.author else None})
        for one in sorted(catalogue.things)
    )
    told = ((user, [_told(one) for one in histories[user]]) for user in profiles)
    behaviours = (
        {"user_id": user, **_told(histories[user][before]), "history_len": before}
        for user, before in alone
    )
    write_object(place / ALWAYS["items"], things, option="--out")
    write_object(place / ALWAYS["histories"], told, option="--out")
    write_object(place / PROFILES, profiles.items(), option="--out")
    write_list(place / BEHAVIOURS, behaviours, option="--out")
    for groups, is_held_out in ((tested, False), (held_out, True)):
        for level, by_thing in groups.items():
            published = (
                (item, [[_member(user.id, histories[user.id], item) for user in members]])
                for item, members in by_thing.items()
            )
            name = groups_file(level, held_out=is_held_out)
            write_object(place / name, published, option="--out")


class Catalogue:
    """The things there are so far; ids and titles are each given once."""

    def __init__(self, rng: Random) -> None:
        self.things: list[Thing] = []
        self._rng = rng
        self._taken: set[str] = set()

    def add(self, scale: int, end: int, quality: float) -> Thing:
        """A new thing."""
        name, author = title(self._rng, scale, end)
        while name in self._taken:
            name, author = title(self._rng, scale, end)
        self._taken.add(name)
        thing = Thing(self.new_id("B"), name, author, scale, end, quality)
        self.things.append(thing)
        return thing

    def new_id(self, letter: str) -> str:
        """An id that nobody and nothing has yet."""
        while (name := f"{letter}{int(self._rng.random() * 10**9):09}") in self._taken:
            pass
        self._taken.add(name)
        return name


class Asked:
    """The ratings that groups ask about so far, by user."""

    def __init__(self, rng: Random, users: Sequence[User]) -> None:
        self.ratings: dict[str, list[Rating]] = defaultdict(list)
        self._rng = rng
        self._users = users

    def rate(self, members: Members, thing: Thing) -> None:
        """Have all rate the thing within one window of time."""
        start = LATE + int(self._rng.random() * LATE_DAYS * DAY)
        for user in (user for group in members.values() for user in group):
            time = start + int(self._rng.random() * WINDOW_DAYS * DAY)
            self.ratings[user.id].append(Rating(time, thing, _halves(user.rating(thing))))

    def members(self, scale: int, quality: float) -> Members | None:
        """Users for each level, each in one of them; None where too few fit."""
        members: Members = {}
        left = list(shuffled(self._rng, self._users))
        for level, likings in LIKINGS.items():
            group: list[User] = []
            for liking in shuffled(self._rng, likings):
                of_taste = (user for user in left if user.tastes[scale] == liking)
                fit = (user for user in of_taste if self._fits(user, group, quality, abs(liking)))
                found = next(fit, None)
                if found is None:
                    return None
                group.append(found)
                left.remove(found)
            members[level] = shuffled(self._rng, group)
        return members

    def _fits(self, user: User, group: Sequence[User], quality: float, liking: float) -> bool:
        """Whether the user's ratings of both ends of the scale are half stars, from 1 to 5."""
        middle = user.average + quality
        return (
            len(self.ratings[user.id]) < MOST_ASKED
            and abs(middle + liking - _halves(middle + liking)) <= STRETCH
            and 1 <= _halves(middle - liking) <= _halves(middle + liking) <= 5
            and all(abs(user.average - other.average) >= APART for other in group)
        )


def _groups(rng: Random, catalogue: Catalogue, asked: Asked, *, pairs: int) -> Groups:
    """Groups and their mirror images, about so many pairs of things; levels share the things."""
    groups: Groups = {level: {} for level in LIKINGS}
    for place in range(pairs):
        scale = place % len(SCALES)
        members = None
        while members is None:
            quality = _of_either_sign(rng, QUALITY)
            members = asked.members(scale, quality)
        for end in (1, -1):
            thing = catalogue.add(scale, end, quality)
            asked.rate(members, thing)
            for level, group in members.items():
                groups[level][thing.id] = group
    return groups


def _history(rng: Random, user: User, asked: Sequence[Rating], themes: Themes) -> list[Rating]:
    """What a user rated, oldest first: what groups ask about, and others of all themes alike.

    The others are moved until the average is the one aimed at, so that it tells nothing of how the
    user rated what groups ask about.
    """
    length = SHORTEST + int(rng.random() * (LONGEST - SHORTEST + 1))
    count = max(EARLIER, length - len(asked))
    without = {one.thing.id for one in asked}
    decks = [
        [thing for thing in shuffled(rng, deck) if thing.id not in without]
        for deck in shuffled(rng, tuple(themes.values()))
    ]
    dealt = [deck[place] for place in range(count) for deck in decks if place < len(deck)]
    chosen = shuffled(rng, dealt[:count])
    # With a whim of up to a star.
    stars = [
        _possible(_halves(user.rating(one) + (rng.random() + rng.random() - 1))) for one in chosen
    ]
    total = _halves(user.average * (count + len(asked))) - sum(one.rating for one in asked)
    while missing := total - sum(stars):
        place = int(rng.random() * count)
        stars[place] = _possible(stars[place] + (0.5 if missing > 0 else -0.5))
    others = []
    for place, (thing, rating) in enumerate(zip(chosen, stars, strict=True)):
        start, days = (EARLY, EARLY_DAYS) if place < EARLIER else (LATE, LATE_DAYS)
        others.append(Rating(start + int(rng.random() * days * DAY), thing, rating))
    return sorted([*others, *asked], key=lambda one: one.time)


def _of_either_sign(rng: Random, values: Sequence[float]) -> float:
    return picked(rng, (-1, 1)) * picked(rng, values)


def _halves(stars: float) -> float:
    """The nearest number of half stars."""
    return round(2 * stars) / 2


def _possible(stars: float) -> float:
    return min(5.0, max(1.0, stars))


def _member(user: str, history: Sequence[Rating], item: str) -> dict[str, Any]:
    usual = average([one.rating for one in history])
    before, asked = next((n, one) for n, one in enumerate(history) if one.thing.id == item)
    return {
        "user_id": user,
        "history_len": before,
        "relative_rating": asked.rating - usual,
        "avg_rating": usual,
    }


def _told(one: Rating) -> dict[str, Any]:
    return {"parent_asin": one.thing.id, "rating": one.rating, "timestamp": one.time}


def theme(scale: int, end: int) -> list[str]:
    """The words of one end, 1 or -1, of a scale."""
    return SCALES[scale][end < 0].split()


def title(rng: Random, scale: int, end: int) -> tuple[str, str | None]:
    """A title with two words of a theme, neither first nor last, and the author of a book."""
    domain = picked(rng, tuple(GOODS))
    start, kind, part, ending = (picked(rng, words.split()) for words in GOODS[domain])
    one, other = drawn(rng, theme(scale, end), 2)
    author = f"{picked(rng, FIRST_NAMES)} {picked(rng, LAST_NAMES)}"
    text = f"{start} {one} {kind} with {other} {part} {ending}"
    return text, author if domain == "book" else None


def profile(rng: Random, tastes: Sequence[float]) -> str:
    """Likings in prose, from how much the first end of each scale is liked."""
    sentences = []
    for scale, taste in enumerate(tastes):
        if taste:
            one, other, third = drawn(rng, theme(scale, 1 if taste > 0 else -1), 3)
            phrase = picked(rng, FOND if abs(taste) > 0.5 else MILD)
            words = f"{one.lower()}, {other.lower()} or {third.lower()}"
            sentences.append(f"{phrase} whatever says {words}.")
    return " ".join([picked(rng, OPENINGS), *(sentences or [NO_TASTE])])


if __name__ == "__main__":
    write(SAMPLE)
