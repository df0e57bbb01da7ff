"""In what two runs of a task differ besides their candidate, and how runs come to agree in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.scoring.comparable import (
    ABSENT,
    THE_CANDIDATE,
    describe_differences,
    differences,
    follows,
    named_differences,
    settings_of,
)
from harness.scoring.finished_task import FinishedTask
from harness.scoring.score_run import role_entries

SAME_CODE = "the same version of the harness and of its plugins"
WAYS = {
    "options": "the same options (--set)",
    "data": "the same data (--data)",
    "contents": "the same files in their options (--set)",
    "limit": "the same --limit",
    "seed": "the same --seed",
}
"""What runs must be given to agree, by the kind of setting; the code decides the others."""


class Unlike(NamedTuple):
    """What differs, a line each and in short, and what all runs must be given to agree in it."""

    because: tuple[str, ...]
    short: str
    needed: tuple[str, ...]


def unlike(task: FinishedTask, other: FinishedTask) -> Unlike | None:
    """How a run differs from another one of its task; None if only their candidates do.

    A role that somebody else plays is named once, without the details of both.
    """
    ours, theirs = settings_of(task), settings_of(other)
    paths = [path.split(".") for path in differences(ours, theirs)]
    roles = dict.fromkeys(path[1] for path in paths if path[0] == "roles")
    sides = {role: (_player(task, role), _player(other, role)) for role in roles}
    others = {role: both for role, both in sides.items() if both[0] != both[1]}
    rest = named_differences(_without(ours, others), _without(theirs, others))
    because = (*describe_differences(others), *rest)
    if not because:
        return None
    short = " ".join(next(iter((role, both[0]) for role, both in others.items()), ()))
    needed = dict.fromkeys(_needed(path) for path in paths)
    return Unlike(because, short or because[0].partition(" against ")[0], tuple(needed))


def _player(task: FinishedTask, role: str) -> str:
    if follows(task, role):
        return THE_CANDIDATE
    entries = role_entries(task.manifest, task.task.name, task.benchmark)
    return entries[role].name if role in entries else ABSENT


def _without(settings: Mapping[str, Any], roles: Mapping[str, Any]) -> dict[str, Any]:
    kept = {role: one for role, one in settings["roles"].items() if role not in roles}
    return {**settings, "roles": kept}


def _needed(path: Sequence[str]) -> str:
    """What all runs must be given for the setting at a path to agree."""
    what = path[0]
    if what == "roles":
        return f"the same {path[1]} (--role {path[1]}=SPEC)"
    if what == "stages" and path[2] == "sampling":
        return f"the same settings of the {path[3]}"
    return WAYS.get("limit" if what.startswith("chosen ") else what, SAME_CODE)
