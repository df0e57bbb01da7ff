"""The two layouts of data: their files and tables, and folders of them opened for tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec

from harness import DataError
from harness.data.files import SUFFIXES
from harness_perrecbench.records import MEMBERS, Example, Group, Level, Single

if TYPE_CHECKING:
    from harness import Dataset
    from harness.registry import Plugins
    from harness_perrecbench.records import Options

TABLES = ("histories", "items")
"""The tables that the published layout always has."""

GROUPS = {"test": "groups", "held_out": "held_out"}
RECORDED_GROUPS = {"test": "recorded", "held_out": "recorded_held_out"}
"""The table of groups of each split, in either layout."""

PUBLISHED = {"test": "item2group_avg_diff_sample-{level}.json", "held_out": "held_out-{level}.json"}
RECORDED = {"test": "groups-{level}.jsonl", "held_out": "heldout-{level}.jsonl"}
"""The files of groups of each split, in either layout."""

ALWAYS = {"histories": "userid2history.json", "items": "parentasin2item.json"}
"""The tables that the published layout always has, and their files."""

PLACES = ("", "all-processed/", "all/all-processed/", "*-processed/")
"""Where the files of the published layout may lie in the folder that is given."""


def holds(folder: Path, name: str) -> bool:
    """Whether there is a file of that name, packed or not, where tasks look for it."""
    return any(any(folder.glob(place + name + packing)) for place in PLACES for packing in SUFFIXES)


def levels(folder: Path, split: str) -> list[Level]:
    """The levels whose groups the folder holds, in either layout."""
    layouts = (PUBLISHED[split], RECORDED[split])
    return [
        level
        for level in MEMBERS
        if any(holds(folder, name.format(level=level)) for name in layouts)
    ]


def domains(folder: Path) -> list[str]:
    """The domains that have a folder of their own there."""
    inside = (place.name.removesuffix("-processed") for place in folder.glob("*/*-processed"))
    return sorted(set(inside) - {"all"})


Stars: TypeAlias = Annotated[float, msgspec.Meta(ge=1, le=5)]


@dataclass(frozen=True, kw_only=True)
class FoundGroup:
    """A group of the data: what its users rated, who they are, and their true ranks, if known."""

    id: str
    about: str
    users: frozenset[str]
    ranks: tuple[int, ...]


def one_by_one(group: Group, shots: Sequence[tuple[Example, ...]] = ()) -> Iterable[Single]:
    """The members of a group as questions of their own, each with its examples."""
    for place, member in enumerate(group.members, 1):
        yield Single(
            id=f"{group.id}/{place}",
            user=group.user,
            query=group.query,
            member=member,
            place=place,
            of=len(group.members),
            examples=shots[place - 1] if shots else (),
            overall_average=group.overall_average,
        )


def wrong_domain(dataset: Dataset, options: Options, found: str) -> DataError:
    """The error for an option that names another domain than the data is of."""
    return DataError(
        "the data is not of the domain that the task's options name",
        where=f"the options of task '{dataset.task}'",
        found=f"domain: {options.domain}, and {found}",
        expected="the domain whose files the task reads; all, where they hold several",
        hint="the folder of one domain with its name, as in --data DIR/beauty --set domain=beauty",
    )


def wrong_size(bad: DataError, users: int, options: Options) -> DataError:
    """The error for a group of another size than the level's, with the task that reads the level's.

    Which files a task reads is settled by its name, whatever level its options name.
    """
    for level, members in MEMBERS.items():
        if members == users and options.ask != "rating":
            bad.hint = (
                f"these are groups of level {level}; perrec_{options.level}_{options.ask} reads "
                f"those of level {options.level}"
            )
    return bad


def open_levels(folder: Path, plugins: Plugins) -> dict[Level, Dataset]:
    """The data of each level, whatever `--data` may be, with all of its groups."""
    from harness.data import open_dataset
    from harness.registry.task_catalogue import Catalogue

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
        there = [name for name in RECORDED_GROUPS.values() if name in dataset.tables]
        if there and "histories" not in dataset.tables:
            raise DataError(
                "recorded groups are not taken",
                where=str(folder),
                found=", ".join(dataset.path(name).name for name in there),
                expected=f"the published files: {needs} whole histories, which recorded groups "
                "do not hold",
            )
