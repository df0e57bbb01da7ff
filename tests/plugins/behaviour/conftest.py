"""Small logs in the official layouts, and their data opened as tasks of a domain open it."""

import shutil
from functools import cache
from pathlib import Path
from random import Random

import harness_behaviour
import pytest
from harness_behaviour import data
from harness_behaviour.building.tool import Settings, run
from harness_behaviour.records import Options, Recipe
from samples.behaviour import MIN_PLAYS

from harness.base.seeded_random import drawn, shuffled
from harness.data import open_dataset
from harness.registry import load_plugins
from harness.registry.task_catalogue import Catalogue

EVENTS = "userid-timestamp-artid-artname-traid-traname.tsv"
PROFILE = "userid-profile.tsv"


@cache
def spec_of(task):
    """The data of a task, as its files say it."""
    [found] = Catalogue(load_plugins()).select([task]).tasks
    return found.data


def opened(domain, folder, **given):
    """The data in a folder as a task of the domain opens it."""
    task, package = f"behaviour_{domain}_a", Path(harness_behaviour.__file__).parent
    options = {"limit": None, "seed": 0, "shared": None, **given}
    return open_dataset(spec_of(task), data=str(folder), package=package, task=task, **options)


def prompts_of(domain, folder="sample", **options):
    """The prompts that are built of a domain's data for all cells, and the counts of each cell."""
    recipe = Recipe(domain=domain, min_interactions=MIN_PLAYS, **options)
    return data.build(opened(domain, folder), recipe)


def log_of(domain, folder, **options):
    """The log of a folder."""
    return data.read_log(opened(domain, folder), Recipe(domain=domain, **options))


def load_prompts(domain, folder, *, shared=None, **options):
    """The prompts of a setting from a folder, and what was noted."""
    dataset = opened(domain, folder, shared=shared)
    return data.load(dataset, Options(domain=domain, **options)), dict(dataset.notes)


def movies_files(inside, *, shuffle=None, name="ml-1m", **tables):
    """The files of MovieLens 1M: by default 70 movies, and 60 users with 15 of them each."""
    rng = Random(5)
    usual = {
        "users": [f"{n}::{'FM'[n % 2]}::25::{3 if n % 2 else 17}::01234" for n in range(60)],
        "ratings": [
            f"{user}::{movie}::4::978300760"
            for user in range(60)
            for movie in drawn(rng, range(70), 15)
        ],
        "movies": [f"{n}::Film ñ {n} (1999)::Drama" for n in range(70)],
    }
    files = {f"{table}.dat": rows for table, rows in (usual | tables).items()}
    return written(inside / name, files, shuffle, encoding="iso-8859-1")


def music_files(inside, *, shuffle=None, name="lastfm", **tables):
    """The files of last.fm 1K: by default 80 tracks, and 24 users with 30 plays each."""
    rng = Random(6)
    countries = ("Brazil", "United Kingdom", "Poland", "United States")
    usual = {
        "profile": [f"u{n:02}\t{'fm'[n % 2]}\t\t{countries[n % 4]}\tx" for n in range(24)],
        "events": [
            f"u{user:02}\t2009-05-0{1 + place % 9}T10:00:00Z\t\tBand {track % 9}\t\tSong {track}"
            for user in range(24)
            for place, track in enumerate(drawn(rng, range(80), 30))
        ],
    }
    rows = usual | tables
    return written(inside / name, {PROFILE: rows["profile"], EVENTS: rows["events"]}, shuffle)


def written(folder, files, shuffle, encoding="utf-8"):
    """A folder with files of these lines, in this order or in one by chance."""
    folder.mkdir()
    for name, rows in files.items():
        order = rows if shuffle is None else shuffled(Random(shuffle), rows)
        head = ["#id\tgender\tage\tcountry\tregistered"] if name == PROFILE else []
        text = "".join(f"{row}\n" for row in (*head, *order))
        (folder / name).write_bytes(text.encode(encoding))
    return folder


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
