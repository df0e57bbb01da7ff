"""The groups of a data folder that training data is made of, and those it is held against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import msgspec

from harness import DataError
from harness_perrecbench.data import load
from harness_perrecbench.data.layout import GROUPS, TABLES, open_levels, refuse_recorded
from harness_perrecbench.records import MEMBERS, Group, Level, Options

if TYPE_CHECKING:
    from pathlib import Path

    from harness import Dataset
    from harness.plugin_manager import Plugins


@dataclass(frozen=True)
class Source:
    """The published files in a folder, opened for each level."""

    folder: Path
    datasets: Mapping[Level, Dataset]

    def tested(self) -> Iterator[Group]:
        """The test groups of every level that the folder holds."""
        levels = self._levels("test")
        if not levels:
            raise DataError(
                "there are no test groups that the training data could be held against",
                where=str(self.folder),
                expected="the published files, with the test groups of at least one level",
            )
        options = Options(profile="none", k=1)
        for level in levels:
            yield from self._groups(level, "test", options)

    def held_out(
        self, level: Level | Literal["all"], options: Options
    ) -> Iterator[tuple[Level, Group]]:
        """The held-out groups of a level, or of all that the folder holds, each with its level."""
        held = self._levels("held_out")
        levels = held if level == "all" else [level]
        if not levels or not set(levels) <= set(held):
            raise DataError(
                "the folder lacks held-out groups, or the histories and items that go with them",
                where=str(self.folder),
                found=f"held-out groups of {', '.join(held) or 'no level'}",
                expected=f"the published files, with those of level {level}",
            )
        for one in levels:
            for group in self._groups(one, "held_out", options):
                yield one, group

    def _levels(self, split: Literal["test", "held_out"]) -> list[Level]:
        needed = (*TABLES, GROUPS[split])
        return [level for level in MEMBERS if all(map(self.datasets[level].has, needed))]

    def _groups(
        self, level: Level, split: Literal["test", "held_out"], options: Options
    ) -> tuple[Group, ...]:
        wanted = msgspec.structs.replace(options, ask="listwise", level=level, split=split)
        found = load(self.datasets[level], wanted)
        if found.people:
            raise DataError(
                "the training data is to show profiles, and some users have none",
                where=str(self.folder),
                found=f"{len(found.people)} of the users in held-out groups of level {level}",
                expected="a profile of each of them",
                hint="--profile no_text or --profile none, or add the profiles to the data",
            )
        return found.groups


def opened(folder: Path, plugins: Plugins) -> Source:
    """The folder as the tasks of the three levels find it; DataError for recorded groups."""
    datasets = open_levels(folder, plugins)
    refuse_recorded(folder, datasets, "training data is made of, and held against,")
    return Source(folder=folder, datasets=datasets)
