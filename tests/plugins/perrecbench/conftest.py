"""Data written by hand, and finished tasks of runs."""

import json
from functools import cache

import msgspec
import pytest
from builders.runs import keep_task, make_summary, make_task
from harness_perrecbench.benchmark import PERRECBENCH
from harness_perrecbench.data import load
from harness_perrecbench.records import Options
from msgspec.structs import replace

from harness.contracts.records import Score
from harness.contracts.task import DataSpec, RoleSpec
from harness.data import open_dataset
from harness.registry import load_plugins
from harness.registry.task_catalogue import Catalogue
from harness.runs.manifest import RoleEntry


@cache
def spec_of(level):
    """The tables of groups of a level and of ratings, as their task files say, all optional."""
    tasks = Catalogue(load_plugins()).select([f"perrec_{level}_listwise", "perrec_rating"]).tasks
    tables = {name: table for task in tasks for name, table in task.data.tables.items()}
    return DataSpec(tables={name: replace(table, required=False) for name, table in tables.items()})


@pytest.fixture
def publish(tmp_path):
    """Writes the published files: histories of (item, rating), groups of (user, before, relative).

    Items have their id as title and are by "Someone" where their id ends in "_by". The average of a
    group's user is that of the whole history, as in the real files; a third number of a rating is
    its time.
    """

    def told(groups, histories):
        def user(name, before, relative):
            ratings = [rating for _, rating, *_ in histories[name]]
            average = sum(ratings) / len(ratings)
            told = {"history_len": before, "relative_rating": relative, "avg_rating": average}
            return {"user_id": name, **told}

        return {
            item: [[user(*one) for one in group] for group in several]
            for item, several in groups.items()
        }

    def write(
        histories, *, level="easy", groups=None, held_out=None, profiles=None, items=None, inside=""
    ):
        known = {item for history in histories.values() for item, *_ in history}
        known |= set(groups or ()) | set(held_out or ())
        about = {
            item: {"title": item, "author": {"name": "Someone"} if item.endswith("_by") else None}
            for item in sorted(known)
        }
        files = {
            "userid2history": {
                user: [
                    {"parent_asin": item, "rating": rating, "timestamp": (*time, place)[0]}
                    for place, (item, rating, *time) in enumerate(history)
                ]
                for user, history in histories.items()
            },
            "parentasin2item": {**about, **(items or {})},
            "userid2profile": profiles,
            f"item2group_avg_diff_sample-{level}": groups and told(groups, histories),
            f"held_out-{level}": held_out and told(held_out, histories),
        }
        folder = tmp_path / inside
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            if content is not None:
                (folder / f"{name}.json").write_text(json.dumps(content))
        return folder

    return write


@pytest.fixture
def load_data():
    """Loads what a folder holds as a task with these options would.

    What was noted of the data stands in `load_data.notes`, what was chosen in `load_data.chosen`.
    """

    def read(folder, *, limit=None, seed=0, **options):
        options = msgspec.convert(options, Options)
        given = {"data": str(folder), "limit": limit, "seed": seed}
        dataset = open_dataset(spec_of(options.level), **given, package=None, task="perrec")
        read.notes, read.chosen = dataset.notes, dataset.chosen
        return load(dataset, options)

    return read


def _score(item, found, always):
    """A number is both taus, a text the cause why there is none, a dict whatever it holds."""
    values, missing = found, {}
    if isinstance(found, str):
        missing = dict.fromkeys(("ptc", "ptc_published", "like_higher_average"), found)
        values = {}
    elif not isinstance(found, dict):
        values = {"ptc": found, "ptc_published": found}
    return Score(id=item, user=item, values={**always, **values}, missing=missing)


@pytest.fixture
def kept(tmp_path):
    """A finished task, from what it found of each item.

    `always` are values that every item has, `because` says why it is not comparable, `more` are
    options. Each model has a run of its own, unless one is named.
    """

    def make(
        model, found, *, level="easy", ask="pointwise", always=None, run=None, label=None,
        limit=None, data=None, because=(), prompts=None, sampling=None, revision="1", seed=0,
        **more,
    ):  # fmt: skip
        options = Options(level=level, ask=ask, **more)
        task = make_task(
            "_".join(["perrec", level, ask, *map(str, more.values())]), benchmark="perrecbench",
            metrics=("ptc", "ptc_published"), options=msgspec.to_builtins(options),
            prompts=dict(prompts or {}),
            roles={"candidate": RoleSpec(sampling=dict(sampling or {}))},
        )  # fmt: skip
        details = {"revision": revision}
        identity = {"kind": "served", "name": model, "details": details, "run": run}
        both = {"model": model, "limit": limit}
        given = {"comparable": not because, "not_comparable_because": because, "units": len(found)}
        return keep_task(
            tmp_path / (run or f"run-of-{model}"), task, label=label or model, seed=seed,
            scores=(_score(item, one, always or {}) for item, one in found.items()),
            roles={"candidate": RoleEntry(name=model, identity=identity)}, **both,
            entry={"data": dict(data or {})}, benchmark=PERRECBENCH, options=options,
            summary=make_summary(
                task.name, benchmark=task.benchmark, roles={"candidate": model}, **both, **given
            ),
        )  # fmt: skip

    return make
