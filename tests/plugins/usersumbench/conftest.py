"""Opened data of the benchmark's layouts, and people made of it."""

from pathlib import Path
from types import SimpleNamespace

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
            package=None,
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
