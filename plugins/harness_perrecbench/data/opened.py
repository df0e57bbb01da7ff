"""A folder of data opened for tools as the tasks of the three levels find it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness import DataError
from harness_perrecbench.data import recorded
from harness_perrecbench.records import MEMBERS, Level

if TYPE_CHECKING:
    from harness import Dataset
    from harness.plugin_manager import Plugins


def open_levels(folder: Path, plugins: Plugins) -> dict[Level, Dataset]:
    """The data of each level, whatever `--data` may be, with all of its groups."""
    from harness.data import open_dataset
    from harness.tasks.catalogue import Catalogue

    catalogue = Catalogue(plugins)
    datasets: dict[Level, Dataset] = {}
    for level in MEMBERS:
        [task] = catalogue.select([f"perrec_{level}_listwise"]).tasks
        datasets[level] = open_dataset(
            msgspec.structs.replace(task.data, size=None),
            data=str(folder),
            limit=None,
            seed=0,
            package=plugins.package_of(task.benchmark),
            task=task.name,
        )
    return datasets


def refuse_recorded(folder: Path, datasets: Mapping[Level, Dataset], needs: str) -> None:
    """Raise DataError for a folder of recorded groups; `needs` says what wants whole histories."""
    for dataset in datasets.values():
        there = [name for name in recorded.GROUPS.values() if name in dataset.tables]
        if there and "histories" not in dataset.tables:
            raise DataError(
                "recorded groups are not taken",
                where=str(folder),
                found=", ".join(dataset.path(name).name for name in there),
                expected=f"the published files: {needs} whole histories, which recorded groups "
                "do not hold",
            )
