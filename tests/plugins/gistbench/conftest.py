"""Finished runs, and histories loaded from files."""

from pathlib import Path

import msgspec
import pytest
import yaml
from builders.runs import keep_task, make_summary, make_task
from harness_gistbench.benchmark import GISTBENCH
from harness_gistbench.metrics import COLUMNS, scored_against, verified_categories
from harness_gistbench.records import SIGNALS, Options, Profile
from harness_gistbench.sources import load

from harness.contracts.records import Score
from harness.contracts.task import DataSpec
from harness.data import open_dataset
from harness.runs.manifest import RoleEntry, StageEntry


@pytest.fixture
def kept(tmp_path):
    """A finished run, from what it found of each user: judged interests, or why there is nothing.

    Runs agree in everything that is not given.
    """

    def make(
        model, users, *, dataset="gist_synthetic", options=None, signals=SIGNALS[:3], run=None,
        label=None, judge="judge-70b",
    ):  # fmt: skip
        options = options or Options()
        task = make_task(
            dataset, benchmark="gistbench", metrics=("ig_f1", "is"), least_scored=0.5,
            options=msgspec.to_builtins(options),
        )  # fmt: skip
        names = (stage.name for stage in GISTBENCH.stages)
        asked = {"judge": judge, "retrieval_judge": judge}
        return keep_task(
            tmp_path / (run or f"run-of-{model}"), task,
            *(StageEntry(name=name, key="", file=f"{name}.jsonl") for name in names),
            scores=(_scored(user, found, options, signals) for user, found in users.items()),
            label=label or model, model=model, benchmark=GISTBENCH, options=options,
            roles={"candidate": RoleEntry(name=model), "judge": RoleEntry(name=judge)},
            summary=make_summary(dataset, benchmark="gistbench", model=model, roles=asked),
        )  # fmt: skip

    return make


def _scored(user, found, options, signals):
    if isinstance(found, str):
        return Score(id=user, user=user, missing=dict.fromkeys(COLUMNS, found))
    profile = Profile(signals=signals, windows=1, unreadable=0, interests=tuple(found))
    verified = verified_categories(profile, options.verification)
    details = msgspec.structs.replace(profile, verified=verified)
    return scored_against(Score(id=user, user=user, details=details), verified, options)


@pytest.fixture
def load_histories():
    """Loads the histories of a task from files, as the task describes its data and options.

    Everybody is kept, however short their history, unless `min_engagements` says otherwise. What
    was noted of the data loaded last stands in `load_histories.notes`.
    """
    tasks = Path(__file__).parents[3] / "task_configs/gistbench"

    def read(task, data, *, limit=None, seed=0, tables=None, shared=None, name=None, **options):
        written = yaml.safe_load((tasks / f"{task}.yaml").read_text())
        for table, changes in (tables or {}).items():
            written["data"]["tables"][table].update(changes)
        spec = msgspec.convert({**written["data"], "size": 1000}, DataSpec)
        given = {"data": str(data), "limit": limit, "seed": seed, "shared": shared}
        dataset = open_dataset(spec, **given, package=None, task=name or task)
        read.notes = dataset.notes
        asked = {**written["options"], "min_engagements": 1, **options}
        return load(dataset, msgspec.convert(asked, Options))

    return read
