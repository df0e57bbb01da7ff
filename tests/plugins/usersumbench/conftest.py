"""Opened data of the benchmark's layouts, and people made of it."""

import json
from pathlib import Path
from types import SimpleNamespace

import harness_usersumbench
import msgspec
import pytest
import yaml
from harness_usersumbench.data import load
from harness_usersumbench.records import Options

from harness.contracts.task import DataSpec
from harness.data import open_dataset

TASKS = Path(__file__).parents[3] / "task_configs/usersumbench"
WORDS = {"query": "q", "thing": "movie", "category": "genre", "verb": "watched"}


@pytest.fixture
def load_people():
    """Loads the people of a source from a folder, with the notes of the data.

    `shared` is given where several tasks of a run load the same data.
    """

    def read(source, folder, *, limit=None, seed=0, shared=None, **options):
        written = yaml.safe_load((TASKS / f"usersumbench_{source}.yaml").read_text())
        dataset = open_dataset(
            msgspec.convert(written["data"], DataSpec),
            data=str(folder),
            limit=limit,
            seed=seed,
            package=Path(harness_usersumbench.__file__).parent,
            task=f"usersum_{source}",
            shared=shared,
        )
        asked = {**WORDS, **written["options"], **options}
        people = load(dataset, msgspec.convert(asked, Options))
        return SimpleNamespace(
            all=people.people,
            by_id={one.id: one for one in people.people},
            seed=people.seed,
            others=people.others,
            notes=dict(dataset.notes),
        )

    return read


@pytest.fixture
def options():
    """Makes the benchmark's options from those that differ from the usual."""
    return lambda **given: Options(**{**WORDS, **given})


@pytest.fixture
def movielens(tmp_path):
    """Writes ratings, as user, movie and time, and movies, as number, title and genres."""

    def write(ratings, movies, name="data"):
        folder = tmp_path / name
        folder.mkdir()
        lines = [f"{user}::{movie}::5::{time}\n" for user, movie, time in ratings]
        (folder / "ratings.dat").write_text("".join(lines), encoding="iso-8859-1")
        lines = ["::".join(map(str, movie)) + "\n" for movie in movies]
        (folder / "movies.dat").write_text("".join(lines), encoding="iso-8859-1")
        return folder

    return write


@pytest.fixture
def json_lines(tmp_path):
    """Writes files of JSON lines, given by their names, into a folder."""

    def write(name="data", **files):
        folder = tmp_path / name
        folder.mkdir()
        for file, rows in files.items():
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / f"{file}.json").write_text(text, encoding="utf-8")
        return folder

    return write
