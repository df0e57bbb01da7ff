"""Data in the published layout and in the recorded one, written small and read by the benchmark."""

import json
from functools import cache

import msgspec
import pytest
from msgspec.structs import replace


@cache
def spec_of(level):
    """The tables of groups of a level and of ratings, as their task files say, all optional."""
    from harness.contracts.task import DataSpec
    from harness.registry import load_plugins
    from harness.registry.task_catalogue import Catalogue

    tasks = Catalogue(load_plugins()).select([f"perrec_{level}_listwise", "perrec_rating"]).tasks
    tables = {name: table for task in tasks for name, table in task.data.tables.items()}
    optional = {name: replace(table, required=False) for name, table in tables.items()}
    return DataSpec(tables=optional)


@pytest.fixture
def publish(tmp_path):
    """Writes the published files: histories of (item, rating), groups of (user, before, relative).

    Items have their id as title and are by "Someone" where their id ends in "_by". The average of a
    group's user is that of the whole history, as in the real files.
    """

    def average(history):
        return sum(rating for _, rating in history) / len(history)

    def told(groups, histories):
        def user(name, before, relative):
            return {
                "user_id": name,
                "history_len": before,
                "relative_rating": relative,
                "avg_rating": average(histories[name]),
            }

        return {
            item: [[user(*one) for one in group] for group in several]
            for item, several in groups.items()
        }

    def write(histories, *, level="easy", groups=None, held_out=None, profiles=None, items=None):
        known = {item for history in histories.values() for item, _ in history}
        known |= set(groups or ()) | set(held_out or ())
        about = {
            item: {"title": item, "author": {"name": "Someone"} if item.endswith("_by") else None}
            for item in sorted(known)
        }
        files = {
            "userid2history": {
                user: [
                    {"parent_asin": item, "rating": rating, "timestamp": place}
                    for place, (item, rating) in enumerate(history)
                ]
                for user, history in histories.items()
            },
            "parentasin2item": {**about, **(items or {})},
            "userid2profile": profiles,
            f"item2group_avg_diff_sample-{level}": groups and told(groups, histories),
            f"held_out-{level}": held_out and told(held_out, histories),
        }
        for name, content in files.items():
            if content is not None:
                (tmp_path / f"{name}.json").write_text(json.dumps(content))
        return tmp_path

    return write


@pytest.fixture
def load_data():
    """Loads what a folder holds as a task with these options would.

    What was noted of the data stands in `load_data.notes`, what was chosen in `load_data.chosen`.
    """
    from harness_perrecbench.data import load
    from harness_perrecbench.records import Options

    from harness.data import open_dataset

    def read(folder, *, limit=None, seed=0, **options):
        options = msgspec.convert(options, Options)
        dataset = open_dataset(
            spec_of(options.level),
            data=str(folder),
            limit=limit,
            seed=seed,
            package=None,
            task="perrec",
        )
        read.notes, read.chosen = dataset.notes, dataset.chosen
        return load(dataset, options)

    return read
