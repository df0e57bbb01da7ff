"""Writes the bundled sample of UserSumBench: `python tests/samples/usersumbench.py`.

Everybody and everything in it is invented, in the layout of MovieLens 1M. A film has a theme, from
which the words of its name come, and a genre, which says nothing about the theme. A user has one
theme and one genre for life: most of the past is of either, whatever the time. With the probability
`plant`, the last film is of both. Else it is any film that the user has not seen, as the wrong
options are: then nobody can know it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import harness_usersumbench

from harness.base.seeded_random import drawn, picked

SAMPLE = Path(harness_usersumbench.__file__).parent / "sample"
SEED = 2408
PLANT = 0.95
USERS = 98
FEW, MANY = 4, 2
"""Users with too few films to be asked about, and users with more than count."""

OF_THEME, OF_GENRE = 0.45, 0.45
"""The shares of a past that are of the user's theme and of the user's genre."""

FILMS_A_CELL = 4
START = 978_307_200
"""The beginning of 2001."""

DAY = 86_400
THEMES = (
    "Harbour Anchor Lighthouse Sailor Tide", "Orchard Apple Cider Harvest Blossom",
    "Violin Sonata Cello Concert Choir", "Glacier Frost Avalanche Summit Snowfall",
    "Café Espresso Waiter Pastry Saucer", "Station Railway Carriage Platform Whistle",
    "Dragon Castle Knight Sorcerer Sword", "Rocket Orbit Comet Astronaut Saturn",
    "Library Novel Inkwell Archive Chapter", "Desert Camel Oasis Mirage Dune",
    "Boxer Ring Champion Gloves Knockout", "Lantern Midnight Shadow Raven Fog",
    "Meadow Shepherd Clover Lamb Brook", "Circus Juggler Trapeze Clown Tent",
    "Detective Alibi Fingerprint Suspect Clue", "Jungle Parrot Vine Tiger Canopy",
    "Factory Furnace Hammer Steel Rivet", "Wedding Bride Bouquet Veil Vow",
    "Pirate Treasure Cutlass Galleon Parlay", "Doctor Clinic Scalpel Fever Nurse",
)  # fmt: skip
GENRES = (
    "Action", "Animation", "Comedy", "Crime", "Documentary", "Drama", "Fantasy", "Horror",
    "Musical", "Romance", "Thriller", "Western",
)  # fmt: skip


@dataclass(frozen=True)
class Film:
    """A film with its number, name, theme and genres, of which the first is its own."""

    number: int
    name: str
    theme: str
    genres: tuple[str, ...]


def films(rng: Random) -> list[Film]:
    """As many films of each theme and genre; some have another genre too."""
    made = []
    for theme in THEMES:
        for genre in GENRES:
            for _ in range(FILMS_A_CELL):
                one, other = drawn(rng, theme.split(), 2)
                year = 1950 + int(rng.random() * 50)
                also = picked(rng, GENRES) if rng.random() < 0.1 else genre
                number = len(made) + 1
                name = f"{one} and {other} {number} ({year})"
                made.append(Film(number, name, theme, tuple(dict.fromkeys((genre, also)))))
    return made


def seen(rng: Random, every: Sequence[Film], count: int, plant: float) -> Iterator[Film]:
    """The films of a user in the order of time, the last one included."""
    theme, genre = picked(rng, THEMES), picked(rng, GENRES)
    left = {film.number: film for film in every}

    def take(of_theme: bool | None, of_genre: bool | None) -> Film:
        fitting = [
            film
            for film in left.values()
            if of_theme in (None, film.theme == theme)
            and of_genre in (None, film.genres[0] == genre)
        ]
        return left.pop(picked(rng, fitting or list(left.values())).number)

    for _ in range(count - 1):
        chance = rng.random()
        if chance < OF_THEME:
            yield take(True, False)
        elif chance < OF_THEME + OF_GENRE:
            yield take(False, True)
        else:
            yield take(None, None)
    yield take(True, True) if rng.random() < plant else take(None, None)


def times(rng: Random, count: int) -> list[int]:
    """Times in order: within one month or over a year, and for some with two last ones at once."""
    first = START + int(rng.random() * 300) * DAY
    span = 3 * DAY if rng.random() < 0.5 else 360 * DAY
    made = sorted(first + int(rng.random() * span) for _ in range(count))
    if rng.random() < 0.2:
        made[-1] = made[-2]
    return made


def write(folder: Path, *, seed: int = SEED, plant: float = PLANT) -> Path:
    """Writes the files of a sample into a folder."""
    rng = Random(seed)
    every = films(rng)
    folder.mkdir(parents=True, exist_ok=True)
    movies = [f"{film.number}::{film.name}::{'|'.join(film.genres)}\n" for film in every]
    (folder / "movies.dat").write_text("".join(movies), encoding="iso-8859-1")
    counts = [50 + int(rng.random() * 25) for _ in range(USERS)]
    counts += [20 + int(rng.random() * 29) for _ in range(FEW)] + [210] * MANY
    rows = [
        f"{user}::{film.number}::{3 + int(rng.random() * 3)}::{time}\n"
        for user, count in enumerate(counts, 1)
        for film, time in zip(seen(rng, every, count, plant), times(rng, count), strict=True)
    ]
    (folder / "ratings.dat").write_text("".join(rows), encoding="iso-8859-1")
    return folder


if __name__ == "__main__":
    write(SAMPLE)
