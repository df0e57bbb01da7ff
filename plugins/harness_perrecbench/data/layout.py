"""The two layouts of data: their files and tables, and opening them for data tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
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

GROUPS = {"test": "groups", "held_out": "held_out"}
RECORDED_GROUPS = {"test": "recorded", "held_out": "recorded_held_out"}
"""The table of groups of each split, in either layout."""

PUBLISHED = {"test": "item2group_avg_diff_sample-{level}.json", "held_out": "held_out-{level}.json"}
RECORDED = {"test": "groups-{level}.jsonl", "held_out": "heldout-{level}.jsonl"}
"""The files of groups of each split, in either layout."""

ALWAYS = {"histories": "userid2history.json", "items": "parentasin2item.json"}
"""The tables that the published layout always has, and their files."""

PLACES = ("", "all-processed/", "all/all-processed/", "*-processed/")
"""The possible places of the published files in the folder of `--data`."""


def levels(folder: Path, split: str) -> list[Level]:
    """The levels with groups in the folder, in either layout, where tasks find them."""
    names = PUBLISHED[split], RECORDED[split]
    patterns = ["".join(parts) for parts in product(PLACES, names, SUFFIXES)]
    return [
        level
        for level in MEMBERS
        if any(any(folder.glob(one.format(level=level))) for one in patterns)
    ]


def domains(folder: Path) -> list[str]:
    """The domains with a folder of their own in the folder."""
    inside = (place.name.removesuffix("-processed") for place in folder.glob("*/*-processed"))
    return sorted(set(inside) - {"all"})


class GroupUser(msgspec.Struct, frozen=True):
    """A user of a group in the published files."""

    user_id: str
    history_len: int
    relative_rating: float
    avg_rating: float


Stars: TypeAlias = Annotated[float, msgspec.Meta(ge=1, le=5)]


@dataclass(frozen=True, kw_only=True)
class FoundGroup:
    """A group of the data: the thing by id or title, and the true ranks, empty if unknown."""

    id: str
    about: str
    users: frozenset[str]
    ranks: tuple[int, ...]


def one_by_one(group: Group, shots: Sequence[tuple[Example, ...]] = ()) -> Iterable[Single]:
    """The members of a group as separate questions, each with its examples."""
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
    """The error for data of another domain than the task's."""
    return DataError(
        "the data belong to another domain than the task",
        where=f"the options of task '{dataset.task}'",
        found=f"domain: {options.domain}, and {found}",
        expected="the domain of the files; `all` for files of several domains",
        hint="give a domain's folder with its name, as in --data DIR/beauty --set domain=beauty",
    )


def wrong_size(bad: DataError, users: int, options: Options) -> DataError:
    """The error for a group of a wrong size, with a hint to the task that reads such groups."""
    for level, members in MEMBERS.items():
        if members == users and options.ask != "rating":
            bad.hint = (
                f"these are groups of level {level}; perrec_{options.level}_{options.ask} reads "
                f"those of level {options.level}"
            )
    return bad


def open_levels(folder: Path, plugins: Plugins) -> dict[Level, Dataset]:
    """The data of each level in a folder, which may be anything that `--data` takes."""
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


def check_not_recorded(folder: Path, datasets: Mapping[Level, Dataset], user: str) -> None:
    """Raise DataError for a folder of recorded groups; `user` is what needs whole histories."""
    for dataset in datasets.values():
        there = [name for name in RECORDED_GROUPS.values() if name in dataset.tables]
        if there and "histories" not in dataset.tables:
            raise DataError(
                "recorded groups cannot be used here",
                where=str(folder),
                found=", ".join(dataset.path(name).name for name in there),
                expected=f"the published files: {user} needs whole histories, which recorded "
                "groups lack",
            )
