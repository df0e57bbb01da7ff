"""Small logs in the official layouts, and their data opened as tasks of a domain open it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import harness_behaviour
import pytest
from harness_behaviour import data
from harness_behaviour.building.tool import Settings, run
from harness_behaviour.records import Options, Prompt, Recipe
from samples.behaviour import MIN_PLAYS

from harness.base.seeded_random import drawn, shuffled
from harness.contracts.task import DataSpec
from harness.data import TaskData, open_dataset
from harness.registry import load_plugins
from harness.registry.task_catalogue import Catalogue

EVENTS = "userid-timestamp-artid-artname-traid-traname.tsv"
PROFILE = "userid-profile.tsv"


@dataclass(frozen=True)
class Loaded:
    """The prompts of a setting, and what was noted."""

    prompts: tuple[Prompt, ...]
    notes: dict[str, int]


@cache
def spec_of(task: str) -> DataSpec:
    """The data of a task, as its files say it."""
    [found] = Catalogue(load_plugins()).select([task]).tasks
    return found.data


def opened(domain: str, folder: Path | str, **given: Any) -> TaskData:
    """The data in a folder as a task of the domain opens it."""
    options = {"limit": None, "seed": 0, "shared": None, **given}
    return open_dataset(
        spec_of(f"behaviour_{domain}_a"),
        data=str(folder),
        package=Path(harness_behaviour.__file__).parent,
        task=f"behaviour_{domain}_a",
        **options,
    )


def prompts_of(domain: str, folder: Path | str = "sample", **options: Any):
    """The prompts that are built of a domain's data for all cells, and the counts of each cell."""
    recipe = Recipe(domain=domain, min_interactions=MIN_PLAYS, **options)
    return data.build(opened(domain, folder), recipe)


@pytest.fixture
def open_data() -> Callable[..., TaskData]:
    return opened


def log_of(domain: str, folder: Path, **options: Any):
    """The log of a folder."""
    return data.read_log(opened(domain, folder), Recipe(domain=domain, **options))


@pytest.fixture
def read_log():
    return log_of


@pytest.fixture
def load_prompts():
    """Loads the prompts of a setting from a folder."""

    def load(
        domain: str,
        folder: Path | str,
        *,
        shared: dict[Any, Any] | None = None,
        limit: int | None = None,
        **options: Any,
    ) -> Loaded:
        dataset = opened(domain, folder, shared=shared, limit=limit)
        prompts = data.load(dataset, Options(domain=domain, **options))
        return Loaded(prompts, dict(dataset.notes))

    return load


def movies_files(
    inside: Path,
    *,
    users: Iterable[str] | None = None,
    ratings: Iterable[str] | None = None,
    movies: Iterable[str] | None = None,
    shuffle: int | None = None,
    name: str = "ml-1m",
) -> Path:
    """The files of MovieLens 1M: by default 70 movies, and 60 users with 15 of them each."""
    rng = Random(5)
    lines = {
        "users": [f"{n}::{'FM'[n % 2]}::25::{3 if n % 2 else 17}::01234" for n in range(60)],
        "ratings": [
            f"{user}::{movie}::4::978300760"
            for user in range(60)
            for movie in drawn(rng, range(70), 15)
        ],
        "movies": [f"{n}::Film ñ {n} (1999)::Drama" for n in range(70)],
    }
    given = {"users": users, "ratings": ratings, "movies": movies}
    lines |= {table: list(of) for table, of in given.items() if of is not None}
    folder = inside / name
    folder.mkdir()
    for table, rows in lines.items():
        order = rows if shuffle is None else shuffled(Random(shuffle), rows)
        text = "".join(f"{row}\n" for row in order)
        (folder / f"{table}.dat").write_bytes(text.encode("iso-8859-1"))
    return folder


@pytest.fixture
def write_movies(tmp_path: Path):
    return partial(movies_files, tmp_path)


FEW = {"tries": 300, "kept": 10}


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with a log, and with the prompts that are built of it."""
    folder = tmp_path_factory.mktemp("made")
    run(Settings(source=movies_files(folder), out=folder / "prompts", **FEW))
    return folder


@pytest.fixture
def built(made, tmp_path):
    """The folder of built prompts, with its log beside it, which a test may damage."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "prompts"


def music_files(
    inside: Path,
    *,
    profile: Iterable[str] | None = None,
    events: Iterable[str] | None = None,
    shuffle: int | None = None,
    name: str = "lastfm",
) -> Path:
    """The files of last.fm 1K: by default 80 tracks, and 24 users with 30 plays each."""
    rng = Random(6)
    countries = ("Brazil", "United Kingdom", "Poland", "United States")
    people = [f"u{n:02}\t{'fm'[n % 2]}\t\t{countries[n % 4]}\tx" for n in range(24)]
    plays = [
        f"u{user:02}\t2009-05-0{1 + place % 9}T10:00:00Z\t\tBand {track % 9}\t\tSong {track}"
        for user in range(24)
        for place, track in enumerate(drawn(rng, range(80), 30))
    ]
    plays = plays if events is None else list(events)
    people = people if profile is None else list(profile)
    if shuffle is not None:
        people, plays = shuffled(Random(shuffle), people), shuffled(Random(shuffle), plays)
    folder = inside / name
    folder.mkdir()
    head = "#id\tgender\tage\tcountry\tregistered"
    (folder / PROFILE).write_bytes("".join(f"{row}\n" for row in (head, *people)).encode())
    (folder / EVENTS).write_bytes("".join(f"{row}\n" for row in plays).encode())
    return folder


@pytest.fixture
def write_music(tmp_path: Path):
    return partial(music_files, tmp_path)
