"""The stored runs of one task that may be compared, and why others may not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from harness.base.errors import UsageError
from harness.base.hashing import digest
from harness.comparison.document import Refused
from harness.contracts.identity import RECORDED, SOFTWARE, Identity
from harness.contracts.stage import CANDIDATE
from harness.runs.manifest import RoleEntry
from harness.scoring.finished_task import FinishedTask
from harness.scoring.grouping import grouped
from harness.scoring.score_run import role_entries, task_options
from harness.scoring.settings_differences import describe_differences, differences

THE_CANDIDATE = "the candidate"
"""The name in tables of who plays a role that follows the candidate."""

HOW_TO_COMPARE = (
    "repeat a run with the settings of the other; --force compares them "
    "all the same, and marks what differs"
)

PREFIXES = {"options": "option", "contents": "content of", "prompts": "prompt"}
"""The words before the name of a setting in these tables."""


class NoneComparable(UsageError):
    """No run of the task `task` can be compared; `refused` says why."""

    def __init__(self, task: str, refused: Sequence[Refused]) -> None:
        super().__init__(
            f"no run of task {task!r} can be compared",
            found="; ".join(f"{each.label}: {', '.join(each.because)}" for each in refused),
            hint=HOW_TO_COMPARE,
        )
        self.task = task
        self.refused = refused


@dataclass(frozen=True, kw_only=True)
class ComparisonSet:
    """Runs of one task that are compared.

    `reference` is the newest of the runs that agree. `marks` are, per run, the differences that
    --force overrode; `refused` are the other runs. `chosen` describes how the set was found.
    """

    members: tuple[FinishedTask, ...]
    reference: FinishedTask
    marks: Mapping[str, tuple[str, ...]]
    refused: tuple[Refused, ...]
    chosen: str


def comparison_set(
    tasks: Sequence[FinishedTask],
    *,
    force: bool = False,
    settings: Callable[[FinishedTask], Mapping[str, Any]] | None = None,
) -> ComparisonSet:
    """The largest set of runs that agree in all but their candidate; of equal sets the newest.

    `force` includes the other runs and marks them, except copies of a run in the set. `settings`
    are what runs agree in, by default `settings_of`.
    """
    distinct: dict[str, FinishedTask] = {}
    refused: list[Refused] = []
    for task in tasks:
        if task.run in distinct:
            refused.append(_refused(task, (f"it is a copy of {distinct[task.run].path}",)))
        distinct.setdefault(task.run, task)
    agree_in = {run: (settings or settings_of)(task) for run, task in distinct.items()}
    agreeing, chosen = _largest(list(distinct.values()), agree_in)
    reference = max(agreeing, key=_age)
    marks: dict[str, tuple[str, ...]] = {}
    for run, task in distinct.items():
        different = named_differences(agree_in[run], agree_in[reference.run])
        marks[run] = (*different, *_own_judge(task, reference))
    refused += [_refused(distinct[run], why) for run, why in marks.items() if why and not force]
    return ComparisonSet(
        members=tuple(task for run, task in distinct.items() if force or not marks[run]),
        reference=reference,
        marks=marks,
        refused=tuple(refused),
        chosen=chosen,
    )


def named_differences(first: Any, second: Any) -> tuple[str, ...]:
    """The differences between settings of two tasks as lines: `option window 50 against 100`.

    Of a role that follows the candidate in one of them, only the name of the other's model is.
    """
    different = differences(first, second)
    following = [path for path, sides in different.items() if THE_CANDIDATE in sides]
    details = tuple(path.removesuffix("model.name") for path in following)
    for path in [one for one in different if one.startswith(details) and one not in following]:
        del different[path]
    return describe_differences({_name(path): sides for path, sides in different.items()})


def settings_of(task: FinishedTask) -> dict[str, Any]:
    """The settings that must agree between runs: all except the candidate, and who follows it.

    Run ids in the identities of models are ignored: a model that is served without a revision has
    one, and no two runs would ever agree.
    """
    entry, asked = task.entry, task.entry.task()
    chosen = entry.data.get("chosen") or {}
    users = {f"chosen {of}": counts["chosen"] for of, counts in chosen.items()}
    return {
        "benchmark": asked.benchmark,
        "version": asked.version,
        "options": msgspec.to_builtins(task_options(asked, task.benchmark)),
        "contents": entry.contents,
        "data": entry.data.get("fingerprint"),
        **(users or {"limit": task.manifest.limit}),
        "seed": task.manifest.seed,
        "prompts": entry.templates,
        "roles": {
            role: {"model": {"name": THE_CANDIDATE}} if follows(task, role) else _identity(found)
            for role, found in _others(task).items()
        },
        "stages": {stage.name: _stage(task, stage.components) for stage in entry.stages},
    }


def server_differences(tasks: Sequence[FinishedTask]) -> tuple[str, ...]:
    """The versions, GPUs and drivers of the servers that differ between runs, with the runs.

    They decide no answer, but may move it: numbers are added in another order.
    """
    servers = {task.run: servers_of(task) for task in tasks}
    found = []
    for what in dict.fromkeys(name for about in servers.values() for name in about):
        values = grouped((about[what], run) for run, about in servers.items() if what in about)
        if len(values) > 1:
            listed = "; ".join(f"{value} in {', '.join(runs)}" for value, runs in values.items())
            found.append(f"the runs were served differently: {what} {listed}")
    return tuple(found)


def servers_of(task: FinishedTask) -> dict[str, str]:
    """The version of each server program that a run started, its GPUs and their driver."""
    found: dict[str, dict[str, None]] = {}
    for entry in _roles(task).values():
        for model in _models(entry):
            program, _, version = str(model.details.get(SOFTWARE, "")).partition(" ")
            if version:
                found.setdefault(program, {})[version] = None
    for session in task.manifest.sessions:
        for limits in session.limits.values():
            for name in ("gpu", "driver"):
                if value := limits.get("learnt", {}).get(name):
                    found.setdefault(name, {})[str(value)] = None
    return {name: " and ".join(sorted(values)) for name, values in found.items()}


def candidate_of(task: FinishedTask) -> str:
    """The id of a run's candidate: the same in every run of one model.

    A model that is served without a revision counts as one model in all runs, as only its name is
    known. A recording counts as the recorded model if it has more details of it than the name.
    """
    entry = _roles(task).get(CANDIDATE)
    if entry is None:
        return digest({"name": task.manifest.model})
    about = _identity(entry)
    model = about.get("model", {})
    details = {name: one for name, one in model.get("details", {}).items() if name != RECORDED}
    return digest({**about, "model": {**model, "details": details}} if details else about)


def _name(path: str) -> str:
    what, _, rest = path.partition(".")
    whose, _, below = rest.partition(".")
    if what == "roles":
        parts = [part for part in below.split(".") if part not in ("model", "details")]
        return f"{whose}'s {'.'.join(parts)}"
    if what == "stages":
        sampling, _, of_role = below.partition(".")
        role, _, setting = of_role.partition(".")
        return f"{role}'s {setting} in {whose}" if sampling == "sampling" else f"{whose}'s {below}"
    return f"{PREFIXES[what]} {rest}" if rest else path


def _largest(
    tasks: Sequence[FinishedTask], settings: Mapping[str, Any]
) -> tuple[list[FinishedTask], str]:
    fair = [task for task in tasks if not _own_judge(task, task)] or tasks
    classes = grouped((digest(settings[task.run]), task) for task in fair)
    size = max(len(agreeing) for agreeing in classes.values())
    largest = [agreeing for agreeing in classes.values() if len(agreeing) == size]
    agreeing = max(largest, key=lambda each: max(_age(task) for task in each))
    chosen = f"{size} of {len(tasks)} runs agree in all but the candidate"
    if len(largest) > 1:
        newest = max(agreeing, key=_age).run
        chosen += f"; of {len(largest)} such sets the one with the newest run, {newest}"
    return agreeing, chosen


def _age(task: FinishedTask) -> tuple[str, str]:
    sessions = task.manifest.sessions
    return (sessions[0].started if sessions else "", task.run)


def _others(task: FinishedTask) -> dict[str, RoleEntry]:
    return {role: entry for role, entry in _roles(task).items() if role != CANDIDATE}


def _roles(task: FinishedTask) -> dict[str, RoleEntry]:
    return role_entries(task.manifest, task.task.name, task.benchmark)


def follows(task: FinishedTask, role: str) -> bool:
    """Whether a role is part of the candidate in a run."""
    return task.manifest.of_candidate(task.task, role)


def _identity(entry: RoleEntry) -> dict[str, Any]:
    if not entry.identity:
        return {"name": entry.name}
    found: dict[str, Any] = _without_run(entry.identity)
    return found


def _without_run(about: Any) -> Any:
    if not isinstance(about, Mapping):
        return about
    ignored = ("run", SOFTWARE)
    return {name: _without_run(value) for name, value in about.items() if name not in ignored}


def _stage(task: FinishedTask, components: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a stage's key that must agree and are in no other setting."""
    roles: Mapping[str, Any] = components.get("roles", {})
    others = {
        role: dict(about.get("sampling") or {})
        for role, about in roles.items()
        if role != CANDIDATE
    }
    for role in filter(partial(follows, task), others):
        others[role].pop("reasoning_tokens", None)  # whether it thinks is the candidate's
    shared = {name: components.get(name) for name in ("version", "ladder")}
    if others:
        shared |= {"structured": components.get("structured"), "sampling": others}
    return shared


def _own_judge(task: FinishedTask, reference: FinishedTask) -> tuple[str, ...]:
    candidate = next(iter(_models(_roles(task).get(CANDIDATE))), None)
    judging = {role for stage in task.benchmark.stages for role in stage.judges}
    judges: Iterable[tuple[str, RoleEntry]] = _others(reference).items()
    names = dict.fromkeys(
        entry.name
        for role, entry in judges
        if role in judging
        and candidate is not None
        and any(judge.may_be(candidate) for judge in _models(entry))
    )
    return tuple(f"its candidate is the judge, {name}" for name in names)


def _models(entry: RoleEntry | None) -> list[Identity]:
    """The models of a role: its own, or the models of a panel's members."""
    if entry is None:
        return []
    parts = [entry.identity, *entry.identity.get("members", {}).values()]
    return [
        Identity(kind=about["kind"], name=about["name"], details=about.get("details", {}))
        for part in parts
        if (about := part.get("model")) is not None
    ]


def _refused(task: FinishedTask, because: tuple[str, ...]) -> Refused:
    return Refused(run=task.run, path=str(task.path), label=task.label, because=because)
