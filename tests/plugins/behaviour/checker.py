"""Checks built prompts against Algorithm 1 with plain sets.

It is written from the specification alone and shares no code with what it checks. Values of
demography are what prompts show.
"""

import gzip
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness_behaviour.records import LENGTHS, PROXIES, Domain, Prompt

AGES = {
    "1": "Under 18", "18": "18-24", "25": "25-34", "35": "35-44", "45": "45-49", "50": "50-55",
    "56": "56+",
}  # fmt: skip
GENDERS = {"M": "Male", "F": "Female", "m": "Male", "f": "Female"}
OCCUPATIONS = (
    "other", "academic/educator", "artist", "clerical/admin", "college/grad student",
    "customer service", "doctor/health care", "executive/managerial", "farmer", "homemaker",
    "K-12 student", "lawyer", "programmer", "retired", "sales/marketing", "scientist",
    "self-employed", "technician/engineer", "tradesman/craftsman", "unemployed", "writer",
)  # fmt: skip
CONTINENTS = {
    "Europe": (
        "Belgium", "Finland", "France", "Germany", "Italy", "Netherlands", "Norway", "Poland",
        "Russian Federation", "Spain", "Sweden",
    ),
    "North America": ("Canada", "Mexico", "United States"),
    "South America": ("Argentina", "Brazil"),
    "United Kingdom": ("United Kingdom",),
}  # fmt: skip
"""The continents, each with its countries of nine users and more in the real profiles."""

FEW_USERS = {
    "Europe": (
        "Austria", "Belarus", "Bosnia and Herzegovina", "Bulgaria", "Croatia", "Czech Republic",
        "Estonia", "Greece", "Hungary", "Iceland", "Ireland", "Latvia", "Lithuania", "Macedonia",
        "Malta", "Portugal", "Romania", "Serbia", "Slovakia", "Slovenia", "Switzerland",
    ),
    "North America": ("Netherlands Antilles", "Nicaragua", "Trinidad and Tobago"),
    "South America": ("Chile", "Colombia", "Peru", "Venezuela"),
}  # fmt: skip
"""Their countries of fewer users there."""

PARTS: dict[Domain, dict[str, tuple[int, ...]]] = {
    "movies": {"none": (), "age": (0,), "gender": (1,), "occupation": (2,), "all": (0, 1, 2)},
    "music": {
        "none": (), "country": (0,), "continent": (1,), "gender": (2,), "gender_continent": (2, 1),
    },
}  # fmt: skip
"""Which values of a user's demography are the group, by proxy."""


@dataclass(frozen=True)
class Logs:
    """The users who count: the demography of each, with "" for what is unknown, and what each has.

    Titles are folded, since tracks that differ in case alone are one.
    """

    domain: Domain
    demography: Mapping[str, tuple[str, ...]]
    things: Mapping[str, set[str]]
    inventory: set[str]

    @cached_property
    def groups(self) -> dict[str, dict[tuple[str, ...], set[str]]]:
        """The groups of each proxy with their users: those who have something, and of whom all is
        known that it needs."""
        found: dict[str, dict[tuple[str, ...], set[str]]] = {}
        for proxy, parts in PARTS[self.domain].items():
            groups = found.setdefault(proxy, {})
            for user in filter(self.things.__getitem__, self.demography):
                group = tuple(self.demography[user][part] for part in parts)
                if "" not in group:
                    groups.setdefault(group, set()).add(user)
        return found

    @cached_property
    def popular(self) -> dict[tuple[str, tuple[str, ...]], Counter[str]]:
        """How many users of each group of each proxy have each thing."""
        return {
            (proxy, group): Counter(one for user in users for one in self.things[user])
            for proxy, groups in self.groups.items()
            for group, users in groups.items()
        }


def lines(file: Path, encoding: str) -> list[str]:
    """The lines of a file, or of the file that it is packed in."""
    if not file.exists():
        file = file.with_name(f"{file.name}.gz")
    data = file.read_bytes()
    data = gzip.decompress(data) if file.suffix == ".gz" else data
    return data.decode(encoding).removesuffix("\n").split("\n")


def folded(title: str) -> str:
    """A title as it is compared."""
    return " ".join(title.casefold().split())


def read_movies(folder: Path) -> Logs:
    """The users of MovieLens who have an occupation and are of a combination of thirty or more."""
    demography = {}
    for line in lines(folder / "users.dat", "iso-8859-1"):
        user, gender, age, occupation, _ = line.split("::")
        if occupation != "0":
            demography[user] = (AGES[age], GENDERS[gender], OCCUPATIONS[int(occupation)])
    sizes = Counter(demography.values())
    kept = {user: group for user, group in demography.items() if sizes[group] >= 30}
    films = (line.split("::") for line in lines(folder / "movies.dat", "iso-8859-1"))
    titles = {movie: folded(title) for movie, title, _ in films}
    things: dict[str, set[str]] = {user: set() for user in kept}
    for line in lines(folder / "ratings.dat", "iso-8859-1"):
        user, movie = line.split("::")[:2]
        if user in kept:
            things[user].add(titles[movie])
    return Logs("movies", kept, things, set(titles.values()))


def read_music(folder: Path, *, least: int) -> Logs:
    """The users of last.fm with so many plays at least who are of no other continent."""
    profiles = [line.split("\t") for line in lines(folder / "userid-profile.tsv", "utf-8")[1:]]
    sizes = Counter(country for _, _, _, country, _ in profiles)
    countries = [*CONTINENTS.items(), *FEW_USERS.items()]
    continent_of = {one: continent for continent, all in countries for one in all}
    plays: Counter[str] = Counter()
    things: dict[str, set[str]] = {}
    inventory = set()
    events = folder / "userid-timestamp-artid-artname-traid-traname.tsv"
    for line in lines(events, "utf-8"):
        user, _, _, artist, _, track = line.split("\t")
        title = folded(f"{track} — {artist}")
        plays[user] += 1
        things.setdefault(user, set()).add(title)
        inventory.add(title)
    demography = {}
    for user, gender, _, country, _ in profiles:
        if plays[user] >= least and (not country or country in continent_of):
            named = country if sizes[country] >= 9 else ""
            continent = continent_of.get(country, "")
            demography[user] = (named, continent, GENDERS.get(gender, ""))
    return Logs("music", demography, things, inventory)


SHOWN = {(False, False): "none", (False, True): "b", (True, False): "c", (True, True): "a"}
"""The setting, by whether a demography and a history are shown."""


def faults(logs: Logs, prompt: Prompt) -> list[str]:
    """What does not hold of a prompt, in words."""
    history = [folded(title) for title in prompt.history]
    candidates = [folded(title) for title in prompt.candidates]
    if prompt.length not in LENGTHS or prompt.group not in logs.groups.get(prompt.proxy, {}):
        return ["a cell and a group that exist"]
    wanted, group = {*history}, logs.groups[prompt.proxy][prompt.group]
    users = [one for one in group if 10 * len(logs.things[one] & wanted) >= 6 * len(wanted)]
    counts = Counter(one for user in users for one in logs.things[user])
    none = len(logs.inventory - set(counts) - set(history))
    in_group = logs.popular[prompt.proxy, prompt.group]

    def counted(of: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(of[one] for one in candidates)

    holds = {
        "its setting": prompt.setting == SHOWN[prompt.proxy != "none", prompt.length > 0],
        "a history of its length": len({*history}) == len(history) == prompt.length,
        "50 different candidates": len({*candidates}) == len(candidates) == 50,
        "things of the inventory": {*history, *candidates} <= logs.inventory,
        "no candidate of the history": not {*history} & {*candidates},
        "the number of users": prompt.users == len(users),
        "three users at least": not prompt.length or len(users) >= 3,
        "25 candidates that no user has, or all": counted(counts).count(0) == min(25, none),
        "the counts of the users": prompt.counts == counted(counts),
        "popularity": prompt.popular == counted(logs.popular["none", ()]),
        "popularity in the group": prompt.popular_in_group == counted(in_group),
    }
    return [what for what, true in holds.items() if not true]


def faulty(logs: Logs, prompts: Sequence[Prompt]) -> dict[str, str]:
    """What does not hold of all prompts, each with the id of the first that lacks it."""
    found: dict[str, str] = {}
    for prompt in prompts:
        for fault in faults(logs, prompt):
            found.setdefault(fault, prompt.id)
    bare = Counter((one.proxy, one.group) for one in prompts if not one.length)
    expected = {(proxy, group) for proxy in PROXIES[logs.domain] for group in logs.groups[proxy]}
    if bare and bare != Counter(expected):
        found["one prompt without history for each group"] = ""
    return found
