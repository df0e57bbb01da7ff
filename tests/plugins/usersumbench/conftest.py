"""Opened data of the benchmark's layouts, and people made of it."""

from pathlib import Path
from types import SimpleNamespace

import harness_usersumbench
import msgspec
import pytest
import yaml
from builders.texts import write_json_lines
from builders.usersumbench import WORDS
from harness_usersumbench.data import load
from harness_usersumbench.records import Options

from harness.contracts.task import DataSpec
from harness.data import open_dataset

TASKS = Path(__file__).parents[3] / "task_configs/usersumbench"


def opened(source, folder, **given):
    """The data in a folder as the tasks of a source open it, and their options."""
    written = yaml.safe_load((TASKS / f"usersumbench_{source}.yaml").read_text())
    spec, package = msgspec.convert(written["data"], DataSpec), Path(harness_usersumbench.__file__)
    given = {"limit": None, "seed": 0, "shared": None, "package": package.parent, **given}
    data = open_dataset(spec, data=str(folder), task=f"usersum_{source}", **given)
    return data, written["options"]


def load_people(source, folder, *, limit=None, seed=0, shared=None, **options):
    """The people of a source from a folder, with the notes of the data.

    `shared` is given where several tasks of a run load the same data.
    """
    dataset, usual = opened(source, folder, limit=limit, seed=seed, shared=shared)
    people = load(dataset, msgspec.convert({**WORDS, **usual, **options}, Options))
    return SimpleNamespace(
        all=people.people,
        by_id={one.id: one for one in people.people},
        seed=people.seed,
        others=people.others,
        notes=dict(dataset.notes),
    )


@pytest.fixture
def movielens(tmp_path):
    """Writes ratings, as user, movie and time, and movies, as number, title and genres."""

    def write(ratings, movies, name="data"):
        folder = tmp_path / name
        folder.mkdir()
        rated = [(user, movie, 5, time) for user, movie, time in ratings]
        for file, rows in (("ratings", rated), ("movies", movies)):
            text = "".join("::".join(map(str, row)) + "\n" for row in rows)
            (folder / f"{file}.dat").write_text(text, encoding="iso-8859-1")
        return folder

    return write


@pytest.fixture
def json_lines(tmp_path):
    """Writes files of JSON lines, given by their names, into a folder."""

    def write(**files):
        for file, rows in files.items():
            write_json_lines(tmp_path / f"{file}.json", rows)
        return tmp_path

    return write
