"""Writes the samples of user behaviour prediction: `python tests/samples/behaviour.py`.

Everybody and everything in them is invented, in the layouts of MovieLens 1M and of last.fm 1K. A
thing has a genre, a theme and some popularity. Which genres somebody likes follows from who the
person is: each age, gender, occupation, continent and country likes some and avoids others. Two
themes are a person's own, and follow from nothing. So demography foretells one part of what people
have, and their history another; the first word of a title tells the theme, the second the genre.

Some people are there to be removed: of the occupation "other", of combinations that are too small,
without a country or a gender, of another continent, or with few plays.
"""

import gzip
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate, chain, product
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import UUID

import harness_behaviour

from harness.base.seeded_random import drawn, picked, shuffled

SAMPLE = Path(harness_behaviour.__file__).parent / "sample"
SEED = 2024
LIKED, AVOIDED, OWN = 3.0, 0.3, 10.0
"""How much likelier than others things of a liked genre, an avoided genre or an own theme are."""

LIKES, AVOIDS, OWNS = 2, 2, 2
"""How many genres a group likes and avoids, and how many themes are a person's own."""

START, DAY = 978_307_200, 86_400
"""The beginning of 2001, and the seconds of a day."""

AGES = {"Under 18": 1, "18-24": 18, "25-34": 25, "35-44": 35, "50-55": 50, "56+": 56}
OCCUPATIONS = {
    "other": 0, "academic/educator": 1, "college/grad student": 4, "K-12 student": 10,
    "retired": 13, "technician/engineer": 17, "writer": 20,
}  # fmt: skip
MOVIE_GROUPS = {
    ("18-24", "Female", "college/grad student"): 34,
    ("18-24", "Male", "college/grad student"): 36,
    ("25-34", "Male", "technician/engineer"): 34,
    ("35-44", "Female", "academic/educator"): 32,
    ("35-44", "Male", "technician/engineer"): 33,
    ("50-55", "Female", "academic/educator"): 30,
    ("25-34", "Female", "writer"): 29,
    ("Under 18", "Male", "K-12 student"): 3,
    ("56+", "Male", "retired"): 5,
    ("25-34", "Male", "other"): 31,
}
"""How many people of each combination there are: those below 30, and of "other", are removed."""

UNRATED = 4
"""People of the first combination who have rated nothing: it is still one of 30 and more."""

FILMS_A_CELL = 5
FILMS = (40, 60)
FEW_FILMS = (20, 24)
"""How many films people have rated, and how many those who are removed."""

THEMES = (
    "Harbour Anchor Sailor Tide", "Orchard Cider Harvest Apple", "Violin Sonata Cello Chorus",
    "Glacier Summit Frost Avalanche", "Café Espresso Waiter Pâtisserie", "Railway Station Platform",
    "Dragon Castle Knight Sorcerer", "Rocket Comet Astronaut Saturn", "Desert Oasis Mirage Camel",
    "Señor Hacienda Niño Corrida",
)  # fmt: skip
GENRES = {
    "Action": "Chase Ambush Showdown", "Comedy": "Mix-Up Prank Honeymoon",
    "Crime": "Heist Alibi Ransom", "Drama": "Farewell Silence Reunion",
    "Horror": "Scream Curse Cellar", "Musical": "Serenade Encore Refrain",
    "Romance": "Rendezvous Kiss Fiancée", "Sci-Fi": "Paradox Signal Mutation",
}  # fmt: skip
FORMS = ("{} {}", "{} {}, The", "{}'s {}", "{} {}, The (À {} )", "{} & {}", "{} {}: Part II")
"""How titles are made of a theme's word and a genre's, as MovieLens writes titles."""

COUNTRIES = {
    "United Kingdom": "United Kingdom", "Germany": "Europe", "Poland": "Europe",
    "Belgium": "Europe", "United States": "North America", "Canada": "North America",
    "Brazil": "South America", "Argentina": "South America", "Japan": "Asia",
    "Australia": "Oceania", "": "",
}  # fmt: skip
LISTENERS = {
    "United Kingdom": (11, 9), "Germany": (8, 7), "Poland": (7, 6), "Belgium": (2, 2),
    "United States": (10, 10), "Canada": (5, 6), "Brazil": (8, 7), "Argentina": (6, 5),
    "Japan": (1, 2), "Australia": (5, 5), "": (3, 2),
}  # fmt: skip
"""The women and men of each country; Belgium has too few to be a group, others are removed."""

UNKNOWN_GENDER, FEW_PLAYS = 6, 9
"""Listeners of whom the gender is unknown, and those with too few plays."""

MIN_PLAYS = 50
TRACKS = (30, 42)
MOODS = {
    "Ambient": "Slow Quiet", "Folk": "Old Wooden", "Metal": "Burning Iron",
    "Pop": "Sweet Golden", "Electro": "Neon Static", "Blues": "Lonesome Blue",
}  # fmt: skip
NOUNS = ("River", "Heart", "Morning", "Road", "Machine", "Winter", "Señorita", "Don't")
SHARED = ("Intro", "Home", "Rain", "Untitled")
"""Titles that several artists' tracks have."""

ARTISTS = {
    "Harbour": ("The Tidemarks", "Anchor & Sons", "Low Ebb"),
    "Orchard": ("Cider House Quartet", "Apple's Edge", "Blóm"),
    "Glacier": ("Frostbiten", "Névé", "Summit Choir"),
    "Railway": ("Ночной Экспресс", "Platform 9", "The Whistlers"),
    "Rocket": ("Cometa", "Saturn Rings' Club", "Orbit"),
    "Desert": ("Oasis of Dust", "Mirage", "Los Camellos"),
}
TRACKS_AN_ARTIST = 15


class Thing(NamedTuple):
    """A film or track: its title as prompts show it, what makes people like it, and its parts."""

    title: str
    genre: str
    theme: str
    popularity: float
    name: str
    artist: str = ""


class Person(NamedTuple):
    """Somebody with the values of the demography, and places of things had."""

    demography: tuple[str, ...]
    things: tuple[int, ...]


Likings = dict[str, dict[str, float]]
"""How much each value of demography favours genres."""


def weights(
    things: Sequence[Thing], liking: Likings, demography: Sequence[str], themes: Sequence[str]
) -> list[float]:
    """How likely each thing is for somebody, compared with the others."""
    genres = {thing.genre: 1.0 for thing in things}
    for value in dict.fromkeys(demography):
        for genre in genres:
            genres[genre] *= liking[value][genre]
    return [
        thing.popularity * genres[thing.genre] * (OWN if thing.theme in themes else 1.0)
        for thing in things
    ]


def likings(rng: Random, values: Sequence[str], genres: Sequence[str]) -> Likings:
    """What each value of demography likes and avoids."""
    made = {}
    for value in values:
        chosen = drawn(rng, genres, LIKES + AVOIDS)
        liking = dict.fromkeys(genres, 1.0)
        liking.update(dict.fromkeys(chosen[:LIKES], LIKED))
        liking.update(dict.fromkeys(chosen[LIKES:], AVOIDED))
        made[value] = liking
    return made


def weighted(rng: Random, weights: Sequence[float], count: int) -> tuple[int, ...]:
    """The places of so many different things, in the order of drawing."""
    sums = list(accumulate(weights))
    taken: dict[int, None] = {}
    while len(taken) < count:
        taken[bisect(sums, rng.random() * sums[-1])] = None
    return tuple(taken)


def between(rng: Random, bounds: tuple[int, int]) -> int:
    """A whole number within bounds."""
    low, high = bounds
    return low + int(rng.random() * (high - low + 1))


def popularity(rng: Random) -> float:
    """Few things are much more popular than the rest, and one of a hundred is nobody's."""
    chance = rng.random()
    return 0.4 + 2 * chance**3 if chance > 0.01 else 0.0


def films(rng: Random) -> tuple[Thing, ...]:
    """As many films of each theme and genre, with titles that occur once."""
    made: dict[str, Thing] = {}
    for words, genre in product(THEMES, GENRES):
        theme = words.split()[0]
        cell = len(made) + FILMS_A_CELL
        while len(made) < cell:
            word, other = picked(rng, words.split()), picked(rng, GENRES[genre].split())
            name = picked(rng, FORMS).format(word, other, f"la recherche du {theme}")
            title = f"{name} ({between(rng, (1950, 2000))})"
            made.setdefault(title, Thing(title, genre, theme, popularity(rng), name))
    return shuffled(rng, list(made.values()))


def movies(seed: int) -> tuple[tuple[Thing, ...], tuple[Person, ...]]:
    """The films and people of the sample."""
    rng = Random(seed)
    made = films(rng)
    liking = likings(rng, ("Female", "Male", *AGES, *OCCUPATIONS), list(GENRES))
    themes = tuple(words.split()[0] for words in THEMES)
    people: list[Person] = []
    for demography, size in MOVIE_GROUPS.items():
        few = size < 30 or "other" in demography
        for _ in range(size):
            own = drawn(rng, themes, OWNS)
            count = 0 if len(people) < UNRATED else between(rng, FEW_FILMS if few else FILMS)
            had = weighted(rng, weights(made, liking, demography, own), count)
            people.append(Person(demography, had))
    return made, shuffled(rng, people)


def tracks(rng: Random) -> tuple[Thing, ...]:
    """The tracks of all artists: an artist has no title twice, some have a title of another's."""
    made = []
    for theme, artists in ARTISTS.items():
        for artist in artists:
            names = {name: picked(rng, list(MOODS)) for name in drawn(rng, SHARED, 2)}
            while len(names) < TRACKS_AN_ARTIST:
                mood = picked(rng, list(MOODS))
                name = f"{picked(rng, MOODS[mood].split())} {picked(rng, NOUNS)}"
                names.setdefault(name, mood)
            for name, mood in names.items():
                title = f"{name} — {artist}"
                made.append(Thing(title, mood, theme, popularity(rng), name, artist))
    return shuffled(rng, made)


def music(seed: int) -> tuple[tuple[Thing, ...], tuple[Person, ...]]:
    """The tracks and listeners of the sample."""
    rng = Random(seed)
    made = tracks(rng)
    values = dict.fromkeys(("Female", "Male", *COUNTRIES, *COUNTRIES.values()))
    liking = likings(rng, list(values), list(MOODS))
    people = []
    for country, counts in LISTENERS.items():
        for gender, count in zip(("Female", "Male"), counts, strict=True):
            for _ in range(count):
                demography = (country, COUNTRIES[country], gender)
                own = drawn(rng, tuple(ARTISTS), OWNS)
                had = weighted(rng, weights(made, liking, demography, own), between(rng, TRACKS))
                people.append(Person(demography, had))
    return made, shuffled(rng, people)


def write_movies(folder: Path, *, seed: int = SEED) -> Path:
    """Writes users.dat, ratings.dat and movies.dat into a folder."""
    (things, people), rng = movies(seed), Random(seed + 1)
    users, ratings = [], []
    for number, person in enumerate(people, 1):
        age, gender, occupation = person.demography
        code = f"{AGES[age]}::{OCCUPATIONS[occupation]}::{between(rng, (10_000, 99_999))}"
        users.append(f"{number}::{gender[0]}::{code}\n")
        time = START + between(rng, (0, 600)) * DAY
        for place in person.things:
            time += between(rng, (0, 90))
            ratings.append(f"{number}::{place + 1}::{between(rng, (2, 5))}::{time}\n")
    lines = [f"{number}::{film.title}::{film.genre}\n" for number, film in enumerate(things, 1)]
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("users", users), ("ratings", ratings), ("movies", lines)):
        (folder / f"{name}.dat").write_bytes("".join(rows).encode("iso-8859-1"))
    return folder


def write_music(folder: Path, *, seed: int = SEED) -> Path:
    """Writes the profiles and the packed events into a folder."""
    (things, people), rng = music(seed), Random(seed + 1)
    ids = {
        name: "" if rng.random() < 0.4 else str(UUID(int=int(rng.random() * 2**53) << 72))
        for thing in things
        for name in (thing.artist, thing.title)
    }
    profile, events = ["#id\tgender\tage\tcountry\tregistered\n"], []
    for number, person in enumerate(people, 1):
        user = f"user_{number:06}"
        country, _, gender = person.demography
        letter = "" if number <= UNKNOWN_GENDER else gender[0].lower()
        age = between(rng, (17, 48)) if rng.random() < 0.3 else ""
        registered = f"{picked(rng, ('Feb', 'Aug', 'Nov'))} {between(rng, (1, 28))}, 2006"
        profile.append(f"{user}\t{letter}\t{age}\t{country}\t{registered}\n")
        few = UNKNOWN_GENDER < number <= UNKNOWN_GENDER + FEW_PLAYS
        count = between(rng, (20, MIN_PLAYS - 1) if few else (MIN_PLAYS, MIN_PLAYS + 15))
        minute = between(rng, (200_000, 400_000))
        own = [things[place] for place in person.things]
        # Each track at least once if the plays suffice.
        more = (picked(rng, own) for _ in range(count - len(own)))
        for track in chain(shuffled(rng, own)[:count], more):
            minute -= between(rng, (3, 400))
            day, left = divmod(minute, 1440)
            year, month = 2007 + day // 336, day % 336 // 28 + 1
            time = f"{year}-{month:02}-{day % 28 + 1:02}T{left // 60:02}:{left % 60:02}:00Z"
            name = track.name.lower() if rng.random() < 0.02 else track.name
            cells = (user, time, ids[track.artist], track.artist, ids[track.title], name)
            events.append("\t".join(cells) + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "userid-profile.tsv").write_bytes("".join(profile).encode())
    packed = gzip.compress("".join(events).encode(), compresslevel=9, mtime=0)
    (folder / "userid-timestamp-artid-artname-traid-traname.tsv.gz").write_bytes(packed)
    return folder


if __name__ == "__main__":
    write_movies(SAMPLE / "movies")
    write_music(SAMPLE / "music")
