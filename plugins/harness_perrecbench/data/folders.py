"""What a folder of data holds beside what a task looks for: for errors, and for tools."""

from __future__ import annotations

from pathlib import Path

from harness.data.files import SUFFIXES
from harness_perrecbench.records import MEMBERS, Level

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
