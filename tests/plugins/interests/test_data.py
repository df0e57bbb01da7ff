"""The task, and people from files through the real reader."""

import json
from pathlib import Path

import msgspec
import pytest
import yaml
from harness_interests.benchmark import INTERESTS
from harness_interests.data import load
from harness_interests.records import Engagement, Options, Person

from harness.base.errors import DataError
from harness.contracts.task import DataSpec
from harness.data import open_dataset

ROOT = Path(__file__).parents[3]
TASK = yaml.safe_load((ROOT / "task_configs/interests/interests.yaml").read_text())


def test_the_task_says_what_the_code_takes_as_usual():
    assert TASK["options"] == msgspec.to_builtins(Options())
    assert TASK["metrics"] == list(INTERESTS.metrics)
    assert INTERESTS.main == ("support",)


@pytest.fixture
def people():
    """Loads the people of a file, by the task's own description of its data."""
    spec = msgspec.convert(TASK["data"], DataSpec)

    def read(data):
        dataset = open_dataset(
            spec, data=str(data), limit=None, seed=0, package=None, task="interests"
        )
        return load(dataset, Options())

    return read


def test_rows_of_one_person_need_not_stand_together(people, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text(
        "user_id,title,action\n7,Rye bread,liked\n8,Night trains,liked\n7,Owls at night,skipped\n"
    )
    assert sorted(people(file), key=lambda person: person.id) == [
        Person("7", (Engagement("Rye bread", True), Engagement("Owls at night", False))),
        Person("8", (Engagement("Night trains", True),)),
    ]


@pytest.mark.parametrize(
    ("title", "action", "said"),
    [
        pytest.param(" ", "liked", ("mine.jsonl", "title"), id="blank title"),
        pytest.param("Rye bread", "shared", ("shared", "liked"), id="unknown action"),
    ],
)
def test_a_bad_value_is_named_with_its_place(people, tmp_path, title, action, said):
    file = tmp_path / "mine.jsonl"
    file.write_text(json.dumps({"user": "7", "title": title, "action": action}) + "\n")
    with pytest.raises(DataError) as caught:
        people(file)
    assert all(one in str(caught.value) for one in said)
