"""Which task reads its data from where."""

from pathlib import Path

import pytest

from harness.base.errors import DataError, UsageError
from harness.contracts.task import DataSpec, Group, HubSpec, SourceSpec, TableSpec
from harness.pipeline.preparation import places_of

CLICKS = DataSpec(tables={"clicks": TableSpec(), "items": TableSpec(required=False)})
RATINGS = DataSpec(tables={"ratings": TableSpec(files=("all/ratings.csv", "ratings.csv"))})
ON_HUB = DataSpec(sources=(SourceSpec(hub=HubSpec(repo="acme/ratings")),), tables=RATINGS.tables)
EASY = Group(name="easy", members=("easy_a", "easy_b"))
ALL = Group(name="all", members=("easy", "hard_a"))
TASKS = dict.fromkeys(("easy_a", "easy_b", "hard_a"), CLICKS)


def wrote(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("user\nu1\n")
    return str(folder)


@pytest.mark.parametrize(
    ("data", "places"),
    [
        (None, [None, None, None]),
        ("sample", ["sample", "sample", "sample"]),
        ({"easy": "x"}, ["x", "x", None]),
        ({"all": "x", "*": "z"}, ["x", "x", "x"]),
        ({"all": "x", "easy": "y", "easy_b": "z"}, ["y", "z", "x"]),
        ({"easy_*": "x", "*": "y"}, ["x", "x", "y"]),
        ({"*_a": "x", "easy": "y"}, ["y", "y", "x"]),
        ({"[eh]*_a": "x", "easy_a": "y"}, ["y", None, "x"]),
    ],
    ids=str,
)
def test_a_place_is_for_a_task_a_group_or_a_glob(data, places):
    assert list(places_of(data, TASKS, [ALL, EASY]).of.values()) == places


def test_two_places_for_a_task_are_refused():
    with pytest.raises(UsageError) as caught:
        places_of({"*_a": "x", "??????": "y", "easy*": "z"}, TASKS, [])
    assert caught.value.problem == "--data gives the task 'easy_a' two places"
    assert caught.value.found == "*_a=x, easy*=z"
    assert list(places_of({"*_a": "x", "h*_a": "x"}, TASKS, []).of.values()) == ["x", None, "x"]


@pytest.mark.parametrize(("name", "near"), [("esy", "easy"), ("medium_*", None)])
def test_a_name_of_nothing_that_is_run_is_refused(name, near):
    with pytest.raises(UsageError) as caught:
        places_of({name: "x"}, TASKS, [EASY])
    assert caught.value.expected == (
        "TASK=PLACE with one of: easy_a, easy_b, hard_a; or a group: easy"
    )
    path = f"write a path with = in its name as --data ./{name}=…"
    assert caught.value.hint == (f"did you mean {near!r}?" if near else path)


def test_a_folder_goes_to_the_tasks_whose_tables_it_holds(tmp_path):
    here = wrote(tmp_path, "clicks.jsonl")
    places = places_of(here, {"seen": CLICKS, "rated": ON_HUB, "rated_too": ON_HUB}, [])
    assert places.of == {"seen": here, "rated": None, "rated_too": None}
    assert places.notes == (
        f"rated, rated_too: no table in --data {here}, so read from the hub's acme/ratings",
    )
    both = wrote(tmp_path, "ratings.csv")
    found = places_of(both, {"seen": CLICKS, "rated": ON_HUB}, []).of
    assert found == {"seen": both, "rated": both}


def test_a_task_with_a_folder_of_its_own_reads_that_one(tmp_path):
    here = wrote(tmp_path, "clicks.jsonl")
    own = DataSpec(folder="mine", tables=RATINGS.tables)
    places = places_of(here, {"seen": CLICKS, "rated": own}, [])
    assert places.of == {"seen": here, "rated": "mine"}
    assert places.notes == (f"rated: no table in --data {here}, so read from mine",)


def test_a_file_goes_to_the_tasks_with_one_table(tmp_path):
    file = str(Path(wrote(tmp_path, "log.csv")) / "log.csv")
    on_hub = DataSpec(sources=(SourceSpec(hub=HubSpec(repo="acme/clicks")),), tables=CLICKS.tables)
    found = places_of(file, {"rated": RATINGS, "seen": on_hub}, []).of
    assert found == {"rated": file, "seen": None}


def test_the_error_names_the_task_that_found_nothing_and_what_it_looked_for(tmp_path):
    here = wrote(tmp_path, "clicks.jsonl")
    with pytest.raises(DataError) as caught:
        places_of(here, {"seen": CLICKS, "rated": RATINGS}, [])
    assert caught.value.problem == "--data holds no table of task 'rated'"
    assert caught.value.where == here
    assert caught.value.found == "a folder with clicks.jsonl"
    assert caught.value.expected == (
        "a folder with such files:\n      ratings: all/ratings.csv, ratings.csv"
    )
    assert caught.value.hint == "give the task a folder of its own with --data rated=DIR"


@pytest.mark.parametrize("data", ["{}", {"seen": "{}"}], ids=str)
def test_the_only_folder_inside_that_holds_the_tables_is_read(tmp_path, data):
    here = wrote(tmp_path, "raw/clicks.csv", "other/notes.txt", ".old/clicks.csv")
    given = data.format(here) if isinstance(data, str) else {"seen": here}
    places = places_of(given, {"seen": CLICKS}, [])
    assert places.of == {"seen": f"{here}/raw"}
    assert places.notes == (f"seen: the data is in {here}/raw",)


def test_a_folder_inside_is_not_read_for_what_a_glob_finds_in_it(tmp_path):
    parts = DataSpec(tables={"clicks": TableSpec(files=("*/clicks.csv",))})
    here = wrote(tmp_path, "raw/deep/clicks.csv")
    assert places_of(here, {"seen": parts}, []).of == {"seen": here}


OPTIONAL = DataSpec(tables={"clicks": TableSpec(required=False)})


@pytest.mark.parametrize(
    ("files", "below", "task", "hint"),
    [
        (
            ("one/clicks.csv", "two/clicks.csv"), "", "seen",
            "such files are in DIR/one, DIR/two: give one of them",
        ),
        (
            ("clicks.csv", "deep/notes.txt"), "/deep", "seen",
            "such files are in the folder above, DIR: give that folder",
        ),
        # A similar name is no reason to read the hub.
        (("clicks.csv", "rating.csv"), "", "rated", "'rating.csv' is the nearest name"),
    ],
)  # fmt: skip
def test_what_may_be_meant_is_named(tmp_path, files, below, task, hint):
    here = wrote(tmp_path, *files)
    with pytest.raises(DataError) as caught:
        places_of(f"{here}{below}", {"seen": OPTIONAL, "rated": ON_HUB}, [])
    assert caught.value.problem == f"--data holds no table of task {task!r}"
    assert caught.value.hint == hint.replace("DIR", here)
