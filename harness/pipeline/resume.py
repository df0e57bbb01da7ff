"""Chooses the folder of a run: its unfinished folder, or a new one."""

from __future__ import annotations

import platform
import re
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from harness.base import clock
from harness.base.errors import HarnessError, UsageError
from harness.base.hashing import digest
from harness.base.redaction import redacted_args, without_key_material
from harness.contracts.model import Model
from harness.contracts.stage import CANDIDATE
from harness.pipeline.desk import StageContext, players_of
from harness.pipeline.preflight import said_before
from harness.pipeline.preparation import Prepared, PreparedTask
from harness.pipeline.progress import Display
from harness.pipeline.settings import RunSettings, Spec
from harness.runs.journal import has_value, recorded
from harness.runs.manifest import (
    Manifest,
    RoleEntry,
    StageEntry,
    TaskEntry,
    session_started,
    task_definition,
)
from harness.runs.run_folder import BATCHES, LOCK, RunFolder

STALE = timedelta(hours=20)
"""The age from which an unfinished run is resumed only by --resume, if a model has no revision.

The same name may stand for other weights by then, as with a nightly checkpoint, and one run must
not mix the two.
"""


ADDRESS = re.compile(r"https?://[^\s,;'\"}+]+")

MOST_FACTS = 5
"""The most lines about the data that stand before a run; of more, their number does."""

PLAYERS = {"model_args", "roles"}
"""The settings that may change in a run, as long as all that was answered stays valid."""


@dataclass(kw_only=True)
class LockedFolder:
    """A locked run folder with its manifest; a run that was `done` asks nothing again by itself."""

    folder: RunFolder
    manifest: Manifest
    resumed: bool
    done: bool = False

    @property
    def run_id(self) -> str:
        """The run's unique name, for keys that no other run shares."""
        token = self.manifest.token
        return f"{self.manifest.run_id}-{token}" if token else self.manifest.run_id

    def save(self) -> None:
        """Write the current manifest."""
        self.folder.write_manifest(self.manifest)

    def unrecorded(
        self, settings: RunSettings, contexts: Mapping[str, Sequence[StageContext]]
    ) -> list[StageContext]:
        """The stages that this session may ask for; call it before `begin`."""
        left = []
        for task, stages in contexts.items():
            known = self.manifest.tasks[task].stages if task in self.manifest.tasks else ()
            finished = {one.key for one in known if one.items is not None}
            open_stages: set[str] = set()
            for context in stages:
                is_left = (
                    settings.retry_failures
                    or context.key not in finished
                    or bool(open_stages.intersection(context.stage.after))
                )
                if not is_left and not self.done:
                    stage = context.stage.name
                    journal = self.folder.journal(task, context.number, stage)
                    made = recorded(journal, context.key).values()
                    is_left = any(one and one.unanswered for one in made)
                if is_left:
                    open_stages.add(context.stage.name)
                    left.append(context)
        return left

    def delivered(self) -> None:
        """Keep that the result of the run was delivered; its own answers are in its records."""
        self.manifest = msgspec.structs.replace(self.manifest, delivered=True)
        self.save()
        self.folder.forget_own_answers()

    def begin(
        self,
        prepared: Prepared,
        contexts: Mapping[str, Sequence[StageContext]],
        thinks: Mapping[Model, bool | None],
    ) -> None:
        """Write the run's tasks, roles and versions to the manifest, with the status "running".

        Only then are summaries of an earlier session removed, so that no finished run lacks one.
        """
        entries = {
            each.task.name: _task_entry(each, contexts[each.task.name], self.folder)
            for each in prepared.tasks
        }
        self.manifest = session_started(
            msgspec.structs.replace(
                self.manifest,
                settings=prepared.settings.as_json(),
                groups={group.name: group.members for group in prepared.groups},
                without_mean=tuple(group.name for group in prepared.groups if not group.mean),
                tasks=entries,
                roles=_role_entries(prepared, self.run_id, thinks),
                versions=_versions(prepared),
                commits=_commits(),
                prices=prepared.settings.prices or self.manifest.prices,
            )
        )
        self.save()
        for each in prepared.tasks:
            self.folder.summary(each.task.name).unlink(missing_ok=True)


def lock_folder(prepared: Prepared, *, display: Display) -> LockedFolder:
    """The locked folder of this run.

    An unfinished run of the same settings is resumed, and one whose result was not delivered. A
    finished run is otherwise reopened only by `--retry_failures` or `--resume`.
    """
    settings = prepared.settings
    run_key = digest(settings.asked())
    # The candidate is named also where some tasks do not ask it.
    candidate = prepared.candidate or settings.candidate
    model, name = candidate.label, candidate.shown or candidate.label
    found = _folder_to_resume(prepared, run_key, model, display)
    datasets = dict.fromkeys(each.dataset for each in prepared.tasks)
    facts = [f"{dataset.task}: {fact}" for dataset in datasets for fact in dataset.noted]
    if len(facts) > MOST_FACTS:
        facts = [f"{len(facts):,} notes on the data: `harness show latest --metrics` prints them"]
    for line in (*prepared.notes, *facts):
        display.show_line(line)
    if found is not None:
        found.lock()
        manifest = found.manifest()
        if settings.resume is not None or not _is_stale(manifest, prepared, display, found.path):
            status = manifest.status.replace("_", " ")
            display.show_line(f"resuming {found.path} ({status} before)")
            for name, (before, now) in _differences(manifest, settings).items():
                display.show_line(f"{name}: before {_as_text(before)}; now {_as_text(now)}")
            manifest = msgspec.structs.replace(
                manifest,
                run_key=run_key,
                asked=settings.asked(),
                name=settings.name or manifest.name,
                tags={**manifest.tags, **settings.tags},
            )
            done = manifest.status == "done"
            return LockedFolder(folder=found, manifest=manifest, resumed=True, done=done)
        found.unlock()
    folder = RunFolder.create(settings.output_path, model, run_key)
    manifest = Manifest(
        run_id=folder.path.name,
        run_key=run_key,
        status="running",
        model=model,
        seed=settings.seed,
        limit=settings.limit,
        asked=settings.asked(),
        settings=settings.as_json(),
        tasks={},
        token=secrets.token_hex(4),
        name=name,
        tags=settings.tags,
    )
    return LockedFolder(folder=folder, manifest=manifest, resumed=False)


def _folder_to_resume(
    prepared: Prepared, run_key: str, label: str, display: Display
) -> RunFolder | None:
    settings = prepared.settings
    if settings.resume is None:
        another = partial(_may_be_another, prepared=prepared)
        find = partial(RunFolder.find, settings.output_path, run_key, but=another)
        same = find(done=settings.retry_failures)
        found = same or _unfinished_run(prepared, run_key, label, display)
        unpinned = [one.identity.label for one in prepared.models if one.identity.scope == "run"]
        reused = settings.store_file is not None and not settings.fresh
        if found is None and unpinned and reused and (done := find(done=True)) is not None:
            display.show_line(
                f"{done.path} is finished. Without revision= its answers of "
                f"{' and '.join(dict.fromkeys(unpinned))} are not used again, as these may be "
                "other weights by now; revision=NAME keeps answers for later runs",
                problem=True,
            )
        return found
    folder = RunFolder(settings.resume)
    manifest = folder.manifest()
    if manifest.run_key != run_key and (reasons := _obstacles(folder, manifest, prepared)):
        raise UsageError(
            "--resume: this command's settings differ from the run's",
            where=str(settings.resume),
            found=", ".join(f"{name}: {_as_text(now)}" for name, (_, now) in reasons.items()),
            expected=", ".join(
                f"{name}: {_as_text(before)}" for name, (before, _) in reasons.items()
            ),
            hint=_way_back(reasons) or "repeat the command that began the run, with --resume",
        )
    return folder


def _may_be_another(manifest: Manifest, prepared: Prepared) -> bool:
    """Whether the run was named differently, and the names may mean different weights.

    A server without `revision=` serves one checkpoint after the other under the same model name.
    """
    settings = prepared.settings
    spec = Spec(kind=settings.model, args=settings.model_args)
    if settings.name in (None, manifest.name) or manifest.name in ("", spec.shown):
        return False
    candidates = (each.bindings.get(CANDIDATE) for each in prepared.tasks)
    models = (model for one in candidates if one is not None for model in one.models)
    return any(model.identity.scope == "run" for model in models)


def _unfinished_run(
    prepared: Prepared, run_key: str, label: str, display: Display
) -> RunFolder | None:
    """The newest run that this command may continue with other players, locked.

    A finished one is reopened by the command that finished it, with `--retry_failures`. If there is
    none, a line says why the newest with answers is not resumed, if only addresses differ.
    """
    settings = prepared.settings
    moved = None
    for folder in RunFolder.find_of_model(settings.output_path, label):
        try:
            manifest = folder.manifest()
            again = settings.retry_failures and manifest.run_key == run_key
            if manifest.status == "done" and not again:
                continue
            if different := _obstacles(folder, manifest, prepared):
                way = _way_back(different) if moved is None else None
                if way and any(
                    has_value(folder.task(name) / stage.file, stage.key)
                    for name, task in manifest.tasks.items()
                    for stage in task.stages
                ):
                    folder.lock()
                    folder.unlock()
                    moved = folder.path, way
                continue
            if _may_be_another(manifest, prepared):
                display.show_line(
                    f"{folder.path} is not resumed: it is called {manifest.name}, and without "
                    f"revision= {settings.name} may be other weights; --resume {folder.path} "
                    "resumes and renames it",
                    problem=True,
                )
                continue
            folder.lock()
        except HarnessError:
            continue  # damaged, or another process is at work in it
        return folder
    if moved is not None:
        path, way = moved
        display.show_line(
            f"{path} is unfinished and differs only in an address. Its answers are not reused: "
            "without revision= or identity=, another address may serve other weights. A new run "
            f"begins; to finish the old one instead, {way}",
            problem=True,
        )
    return None


def _way_back(different: Mapping[str, tuple[Any, Any]]) -> str | None:
    """How to go on with a run that differs only in addresses; None if other things differ."""
    if not different or not different.keys() <= PLAYERS:
        return None
    texts = [(str(then), str(now)) for then, now in different.values()]
    if any(ADDRESS.sub("", then) != ADDRESS.sub("", now) for then, now in texts):
        return None
    before = dict.fromkeys(
        url for then, now in texts for url in ADDRESS.findall(then) if url not in now
    )
    return f"make the server answer at {' and '.join(before)} and repeat the first command"


def _obstacles(
    folder: RunFolder, manifest: Manifest, prepared: Prepared
) -> dict[str, tuple[Any, Any]]:
    """The settings that keep this command from continuing the run: then and now.

    Another judge, address or concurrency does not, as long as all that was answered stays valid.
    """
    different = _differences(manifest, prepared.settings)
    if different.keys() <= PLAYERS and _answers_stay(folder, manifest, prepared):
        return {}
    return different


def _differences(manifest: Manifest, settings: RunSettings) -> dict[str, tuple[Any, Any]]:
    """The settings that decide results and differ from the run's: then and now."""
    asked = settings.asked()
    now = without_key_material({**redacted_args(asked), "changes": asked["changes"]})
    before = manifest.asked
    return {
        name: (before.get(name), now.get(name))
        for name in dict.fromkeys([*now, *before])
        if before.get(name) != now.get(name)
    }


def _as_text(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    return ", ".join(f"{name}={text}" for name, text in value.items()) or "not given"


def _answers_stay(folder: RunFolder, manifest: Manifest, prepared: Prepared) -> bool:
    """Whether the candidate is the same model, and every stage with a value keeps its key."""
    run_id = LockedFolder(folder=folder, manifest=manifest, resumed=True).run_id
    known = said_before(folder, manifest)
    thinking = [model for model in prepared.models if known.get(digest(model.identity.key(run_id)))]
    for each in prepared.tasks:
        name = each.task.name
        candidate, before = each.bindings.get(CANDIDATE), manifest.player(name, CANDIDATE)
        if candidate is not None and before is not None:
            identity = msgspec.to_builtins(without_key_material(candidate.key(run_id)))
            if identity != before.identity:
                return False
        keys = {context.stage.name: context.key for context in each.contexts(run_id, thinking)}
        for entry in manifest.tasks[name].stages if name in manifest.tasks else ():
            changed = keys.get(entry.name) != entry.key
            if changed and has_value(folder.task(name) / entry.file, entry.key):
                return False
    return True


def _is_stale(manifest: Manifest, prepared: Prepared, display: Display, path: Path) -> bool:
    if (path / BATCHES).exists():
        return False  # a batch may take a day
    if all(model.identity.scope != "run" for model in prepared.models):
        return False
    # This process wrote the lock a moment ago.
    files = (file for file in path.rglob("*") if file.is_file() and file.name != LOCK)
    written = datetime.fromtimestamp(max(file.stat().st_mtime for file in files), UTC)
    if clock.utc() - written < STALE:
        return False
    state = "was not printed" if manifest.status == "done" else "is unfinished"
    display.show_line(
        f"{path} {state}, but was last written {written:%Y-%m-%d %H:%M} UTC and its model "
        "has no revision=, so its weights may have changed. A new run begins; to resume the old "
        f"one, give --resume {path}",
        problem=True,
    )
    return True


def _task_entry(
    prepared: PreparedTask, contexts: Sequence[StageContext], folder: RunFolder
) -> TaskEntry:
    name = prepared.task.name
    reasons = list(prepared.not_comparable_because)
    for context in contexts if prepared.benchmark.tokens_as_published else ():
        sampling = context.components["roles"].get(CANDIDATE, {}).get("sampling", {})
        if more := sampling.get("reasoning_tokens"):
            most = sampling["max_tokens"]
            reasons.append(f"the candidate thinks: {most + more:,} tokens, the published {most:,}")
    return TaskEntry(
        folder=folder.task(name).name,
        definition=task_definition(prepared.task),
        content=prepared.content,
        stages=tuple(
            StageEntry(
                name=context.stage.name,
                key=context.key,
                file=folder.journal(name, context.number, context.stage.name).name,
                components=dict(context.components),
            )
            for context in contexts
        ),
        templates=prepared.templates.digests(prepared.benchmark.name),
        data=prepared.dataset.describe(),
        contents=prepared.contents,
        comparable=not reasons,
        not_comparable_because=tuple(reasons),
    )


def _role_entries(
    prepared: Prepared, run_id: str, thinks: Mapping[Model, bool | None]
) -> dict[str, RoleEntry]:
    entries: dict[str, RoleEntry] = {}
    for each in prepared.tasks:
        for role, binding in players_of(each.bindings).items():
            entry = RoleEntry(
                name=binding.shown or binding.label,
                identity=binding.key(run_id),
                by_rule=binding.by_rule,
                thinks=None if binding.model is None else thinks.get(binding.model),
            )
            if entries.setdefault(role, entry) != entry:
                entries[f"{each.task.name}/{role}"] = entry
    return entries


def _versions(prepared: Prepared) -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in ("user-understanding-harness", "openai", "datasets", "json-repair", "jinja2"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    for each in prepared.tasks:
        versions[f"benchmark {each.benchmark.name}"] = str(each.benchmark.version)
    return versions


def _commits() -> dict[str, str]:
    """The commit of the harness's checkout, if it runs from one."""
    checkout = Path(__file__).parents[2]
    if not (checkout / ".git").exists():
        return {}
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"harness": found.stdout.strip()}
