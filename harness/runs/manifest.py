"""The manifest of a run, `manifest.json`: its settings, tasks, roles, versions and status."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from harness.base import clock
from harness.base.errors import DataError
from harness.base.redaction import redacted_args, without_key_material, without_query
from harness.calls.pricing import Cost, PriceTable
from harness.contracts.stage import CANDIDATE
from harness.contracts.task import Task
from harness.runs.atomic_files import atomic_write, read_sealed, sealed_file

FORMAT, OLDEST_FORMAT = 3, 2
"""Of format 2 no journal is packed."""

DAMAGED = "it may come from another version of the harness, or be damaged"

Status = Literal["running", "done", "waiting", "too_many_failures", "failed", "interrupted"]
"""Only runs of version 0.1 are waiting, for answers of batches."""


class StageEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of a task: its key, the components of the key, and the file of its records.

    `items` is the number of the stage's items, once all have a record; None before.
    """

    name: str
    key: str
    file: str
    components: dict[str, Any] = {}
    items: int | None = None


class TaskEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One task: its resolved definition, so that it is scored as it was run, and its stages.

    `contents` are digests of the files that its options name.
    """

    folder: str
    definition: dict[str, Any]
    content: str
    stages: tuple[StageEntry, ...]
    templates: dict[str, str] = {}
    data: dict[str, Any] = {}
    contents: dict[str, str] = {}
    comparable: bool = True
    not_comparable_because: tuple[str, ...] = ()

    def task(self) -> Task:
        """The task, made from its definition; DataError if that is damaged."""
        fields = {name: value for name, value in self.definition.items() if name != "file"}
        data = dict(fields["data"])
        # Older runs wrote their only source as `hub` or `url`.
        only = {kind: held for kind in ("hub", "url") if (held := data.pop(kind, None))}
        fields["data"] = {"sources": [only] if only else [], **data}
        try:
            return msgspec.convert(fields, Task)
        except msgspec.ValidationError as error:
            raise DataError(
                "the manifest of the run defines a task that cannot be read",
                where=f"{self.folder}, in manifest.json",
                found=str(error),
                expected="the definition of a task, as a run writes it",
                hint=DAMAGED,
            ) from error


class RoleEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The model or judge in a role: its name for people, and its identity, which enters keys.

    `by_rule` is true if no model is asked, which costs nothing. `thinks` is whether the model
    reasons before it answers; None if that is not known.
    """

    name: str
    identity: dict[str, Any] = {}
    by_rule: bool = False
    thinks: bool | None = None


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One session of a run. A session without an end was killed, or is at work now.

    `usage` has the calls and tokens of each role of each stage in this session, with failed
    attempts; `costs` their costs, if prices were given; `limits` what each model's limiter did.
    """

    started: str
    ended: str | None = None
    status: Status = "running"
    usage: dict[str, dict[str, int]] = {}
    costs: dict[str, Cost] = {}
    limits: dict[str, Any] = {}


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a run in its folder. The same command finds the run by `run_key`.

    `asked` are the settings that decide results, `settings` all settings of the last session;
    `groups` are the requested groups with their tasks; a mean over those in `without_mean` says
    nothing; `problem` is why a run did not end well.
    `token` distinguishes runs that began in the same second in different places. `prices` are the
    last prices that the run was given. `name` is the run's label in tables, empty in a run that an
    earlier version began; `tags` select it among others. The result of a run that is done is
    `delivered` once it was printed or returned; before that, the same command gives it.
    """

    format: int = FORMAT
    run_id: str
    run_key: str
    status: Status
    model: str
    seed: int
    limit: int | None
    asked: dict[str, Any]
    settings: dict[str, Any]
    tasks: dict[str, TaskEntry]
    roles: dict[str, RoleEntry] = {}
    versions: dict[str, str] = {}
    commits: dict[str, str] = {}
    groups: dict[str, tuple[str, ...]] = {}
    without_mean: tuple[str, ...] = ()
    sessions: tuple[Session, ...] = ()
    problem: str | None = None
    token: str = ""
    prices: PriceTable | None = None
    delivered: bool = False
    name: str = ""
    tags: dict[str, str] = {}

    @property
    def label(self) -> str:
        """The run's label in tables."""
        return self.name or self.model

    def player(self, task: str, role: str) -> RoleEntry | None:
        """The entry of a role in one of the tasks."""
        return self.roles.get(f"{task}/{role}", self.roles.get(role))

    def of_candidate(self, task: Task, role: str) -> bool:
        """Whether a role is the candidate's, or follows it since the user named nobody for it."""
        return task.named_by(role, self.asked.get("roles", {})) == CANDIDATE

    def by_rule(self, task: str, role: str) -> bool:
        """Whether a role in one of the tasks answers by rule."""
        entry = self.player(task, role)
        return entry is not None and entry.by_rule


def task_definition(task: Task) -> dict[str, Any]:
    """A resolved task as JSON values; files have only their names, as folders differ by machine.

    Addresses of data have no query, which may hold a key.
    """
    prompts = {name: Path(file).name for name, file in task.prompts.items()}
    folder = None if task.data.folder is None else Path(task.data.folder).name
    data = msgspec.structs.replace(task.data, folder=folder)
    whole = msgspec.structs.replace(task, file=None, bases=(), prompts=prompts, data=data)
    definition: dict[str, Any] = msgspec.to_builtins(whole)
    definition["file"] = None if task.file is None else task.file.name
    definition["data"]["sources"] = _without_queries(definition["data"]["sources"])
    return definition


def _without_queries(value: Any, name: str = "") -> Any:
    """The sources of data, or a part of them, without the queries of addresses."""
    if isinstance(value, dict):
        return {key: _without_queries(held, key) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_without_queries(held, name) for held in value]
    return without_query(value) if name == "address" else value


def stage_finished(manifest: Manifest, task: str, stage: str, *, items: int) -> Manifest:
    """The manifest with the number of a stage's items set: all of them have their record."""
    entry = manifest.tasks[task]
    stages = tuple(
        msgspec.structs.replace(each, items=items) if each.name == stage else each
        for each in entry.stages
    )
    changed = msgspec.structs.replace(entry, stages=stages)
    return msgspec.structs.replace(manifest, tasks={**manifest.tasks, task: changed})


def session_started(manifest: Manifest) -> Manifest:
    """The manifest at work again, with a session that has not ended."""
    return msgspec.structs.replace(
        manifest,
        format=FORMAT,
        status="running",
        delivered=False,
        problem=None,
        sessions=(*manifest.sessions, Session(started=now())),
    )


def session_ended(
    manifest: Manifest,
    status: Status,
    *,
    problem: str | None = None,
    usage: Mapping[str, dict[str, int]] | None = None,
    costs: Mapping[str, Cost] | None = None,
    limits: Mapping[str, Any] | None = None,
) -> Manifest:
    """The manifest with this status for the run and for its last session, which ends now."""
    last = manifest.sessions[-1] if manifest.sessions else Session(started=now())
    ended = msgspec.structs.replace(
        last,
        ended=now(),
        status=status,
        usage=dict(usage or {}),
        costs=dict(costs or {}),
        limits=dict(limits or {}),
    )
    return msgspec.structs.replace(
        manifest, status=status, problem=problem, sessions=(*manifest.sessions[:-1], ended)
    )


def now() -> str:
    """The time as manifests write it: UTC, so exact that of two runs the newer one is known."""
    return clock.utc().isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write the manifest to its file, without any value that looks like a secret.

    The names of tasks, files and keys stay unchanged, as readers need them.
    """
    values: dict[str, Any] = msgspec.to_builtins(manifest)
    for name in ("asked", "settings"):
        # Changes name a benchmark's options, and an option may well be called a key.
        changes = values[name].get("changes")
        values[name] = redacted_args(values[name])
        if changes is not None:
            values[name]["changes"] = changes
    for name in ("asked", "settings", "roles", "sessions", "problem", "tags"):
        values[name] = without_key_material(values[name])
    for role in values["roles"].values():
        role["identity"] = _safe_identity(role["identity"])
    for task in values["tasks"].values():
        for name in ("definition", "data", "not_comparable_because"):
            task[name] = without_key_material(task[name])
        for stage in task["stages"]:
            if roles := stage["components"].get("roles", {}):
                safe = {role: _safe_identity(about) for role, about in roles.items()}
                stage["components"]["roles"] = without_key_material(safe)
    atomic_write(path, sealed_file(values))


def _safe_identity(about: dict[str, Any]) -> dict[str, Any]:
    """A role's part of a key, the secret ones of its models' arguments redacted."""
    safe = dict(about)
    if details := about.get("model", {}).get("details"):
        safe["model"] = {**about["model"], "details": redacted_args(details)}
    if members := about.get("members"):
        safe["members"] = {label: _safe_identity(member) for label, member in members.items()}
    return safe


def read_manifest(path: Path) -> Manifest:
    """The manifest in a file; DataError if there is none or it cannot be read."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DataError(
            "no run in this folder", where=str(path.parent), expected=f"a file {path.name}"
        ) from error
    except OSError as error:
        raise DataError(
            "the manifest cannot be read",
            where=str(path),
            found=error.strerror or str(error),
            expected="a file that this user may read",
            hint=DAMAGED,
        ) from error
    return read_sealed(
        data, Manifest, path, what="manifest", version=FORMAT, hint=DAMAGED, oldest=OLDEST_FORMAT
    )
