"""GISTBench's histories, read from one file of engagements as a run of the task reads them."""

from __future__ import annotations

import argparse
from pathlib import Path

from harness.data import open_dataset
from harness.registry import load_plugins
from harness.registry.task_catalogue import Catalogue
from harness.tasks.options import typed_options


def read(data: Path):
    """The histories of the people that a run of gist_synthetic keeps, and the data opened."""
    from harness_gistbench.records import Options
    from harness_gistbench.sources import load

    [task] = Catalogue(load_plugins()).select(["gist_synthetic"]).tasks
    dataset = open_dataset(
        task.data, data=str(data), limit=None, seed=0, package=None, task=task.name
    )
    return load(dataset, typed_options(task, Options)), dataset


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    found, _ = read(parser.parse_args().data)
    assert found.users, "nobody is left"
    assert found.pool, "no object is left"
