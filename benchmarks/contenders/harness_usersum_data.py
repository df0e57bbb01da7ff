"""The data of UserSumBench loaded for all methods of a dataset, as a run of its group loads it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, get_args

import msgspec
import yaml
from harness_usersumbench.data import load
from harness_usersumbench.records import Method, Options

from harness.contracts.task import DataSpec
from harness.data import open_dataset

TASKS = Path(__file__).resolve().parents[2] / "task_configs/usersumbench"
WORDS = {"query": "", "thing": "", "category": "", "verb": ""}

if __name__ == "__main__":
    source, folder = sys.argv[1:]
    written = yaml.safe_load((TASKS / f"usersumbench_{source}.yaml").read_text("utf-8"))
    shared: dict[Any, Any] = {}
    for method in get_args(Method):
        dataset = open_dataset(
            msgspec.convert(written["data"], DataSpec),
            data=folder,
            limit=None,
            seed=0,
            package=None,
            task=f"usersum_{source}_{method}",
            shared=shared,
        )
        options = msgspec.convert({**WORDS, **written["options"], "method": method}, Options)
        people = load(dataset, options)
        dataset.describe()
    print(f"{len(people.people):,} users; {'; '.join(dataset.noted)}")
