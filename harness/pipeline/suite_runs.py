"""Carries out the runs of a suite, one after another, so that each engine opens once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from harness.base import clock
from harness.base.errors import HarnessError, Interrupted
from harness.base.hashing import digest
from harness.calls.engines import SharedEngines
from harness.contracts.stage import CANDIDATE
from harness.pipeline.preparation import Prepared, prepare
from harness.pipeline.progress import Display
from harness.pipeline.resume import STALE
from harness.pipeline.roles import JUDGE
from harness.pipeline.run import RunResult, arun
from harness.pipeline.settings import RunSettings
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from harness.registry import Plugins

TAG = "suite"
"""The tag that names the suite of a run."""

FIRST = (1, 3, 4)
"""The exit codes of a suite: the first of these that a run or a gate had."""


@dataclass(frozen=True, kw_only=True)
class PlannedSuiteRun:
    """One run of a suite. `entry` is the model's entry in the file."""

    name: str
    entry: str
    seed: int
    settings: RunSettings

    @property
    def label(self) -> str:
        """The model and the seed, for messages."""
        return f"{self.name}, seed {self.seed}"


class SuiteRun(msgspec.Struct, frozen=True, kw_only=True):
    """How one run of a suite ended; without a folder it did not begin.

    `before` says that an earlier command had finished it.
    """

    model: str
    entry: str
    seed: int
    status: str
    exit_code: int
    folder: str | None = None
    before: bool = False
    errors: tuple[str, ...] = ()


def exit_code_of(codes: Iterable[int]) -> int:
    """The one exit code of several; errors of usage are errors of one run."""
    found = {1 if code == 2 else code for code in codes}
    return next((code for code in FIRST if code in found), 0)


class SuitePlayer(NamedTuple):
    """Who plays a role of a task, other than the candidate, and whether this is the candidate."""

    label: str
    key: str
    judges_itself: bool


Players = Mapping[tuple[str, str], SuitePlayer]
"""By task and role, roles that share a model once, the players of a model's runs."""


def players_of_suite(prepared: Prepared) -> Players:
    """The players besides the candidate, and the roles that follow it, of a run of a suite."""
    found: dict[tuple[str, str], SuitePlayer] = {}
    for each in prepared.tasks:
        judging = {role for stage in each.stages for role in stage.judges}
        candidate = each.bindings.get(CANDIDATE)
        for role, binding in each.bindings.items():
            named = each.task.named_by(role, prepared.settings.roles)
            if named != CANDIDATE:
                itself = role in judging and any(
                    model.identity.may_be(one.identity)
                    for model in binding.models
                    for one in (candidate.models if candidate else ())
                )
                key = digest(binding.key(""))
                found[each.task.name, named] = SuitePlayer(binding.label, key, itself)
    return found


def unlike_players(players: Mapping[str, Players]) -> list[str]:
    """Which runs of a suite could not be compared, by the name of each model, and what helps."""
    tasks: dict[str, list[str]] = {}
    for task, role in dict.fromkeys(place for of_model in players.values() for place in of_model):
        sides: dict[tuple[str, str], list[str]] = {}
        for model, of_model in players.items():
            if (one := of_model.get((task, role))) is None:
                continue
            sides.setdefault((one.key, one.label), []).append(model)
            if one.judges_itself:
                line = f"{model} is its own {role}: name another model as the {role}"
                tasks.setdefault(line, []).append(task)
        if len(sides) > 1:
            labels = [label for _, label in sides]
            each = "; ".join(
                f"{'another ' if label in labels[:place] else ''}{label} for {', '.join(of)}"
                for place, (label, of) in enumerate(zip(labels, sides.values(), strict=True))
            )
            option = "judge: SPEC" if role == JUDGE else f"options: {{role: {role}=SPEC}}"
            line = f"the {role} is {each}: name one for all with `{option}`"
            tasks.setdefault(line, []).append(task)
    return [f"{', '.join(of)}: {line}" for line, of in tasks.items()]


def tagged(settings: RunSettings, *, suite: str, entry: str) -> RunSettings:
    """The settings with tags for the suite and for the model's entry in it."""
    tags = {TAG: suite, "model": entry, **settings.tags}
    return msgspec.structs.replace(settings, tags=tags)


@dataclass(frozen=True)
class FinishedRuns:
    """The runs that a folder keeps, among which a suite finds those that it has finished.

    `planned` are runs of the suite: all have the same tasks and data.
    """

    kept: Sequence[tuple[RunFolder, Manifest]]
    planned: Sequence[PlannedSuiteRun]
    plugins: Plugins

    def find(self, settings: RunSettings) -> Path | None:
        """The folder of the newest run that is this one and done; None if there is none.

        It must be of a suite, with the same settings and label. Its tasks and data must hold what
        they hold now. A run counts for a short time only if its models have no revision: see
        `STALE`.
        """
        key = digest(settings.asked())
        for folder, manifest in self.kept:
            same = (manifest.run_key, manifest.name) == (key, settings.name)
            done = manifest.status == "done" and manifest.delivered
            taken = same and done and TAG in manifest.tags and _still_valid(manifest)
            if taken and _contents(manifest) == self._contents_now:
                return folder.path
        return None

    @cached_property
    def _contents_now(self) -> dict[str, tuple[object, ...]]:
        """What the tasks hold now; nothing if no run can be prepared, as each run then says."""
        for each in self.planned:
            with suppress(HarnessError):
                return {
                    one.task.name: (
                        one.content,
                        one.dataset.describe()["fingerprint"],
                        one.contents,
                    )
                    for one in prepare(each.settings, self.plugins).tasks
                }
        return {}


def _contents(manifest: Manifest) -> dict[str, tuple[object, ...]]:
    """What the tasks of a run held: definitions, data and the files of their options."""
    return {
        name: (entry.content, entry.data.get("fingerprint"), entry.contents)
        for name, entry in manifest.tasks.items()
    }


def _still_valid(manifest: Manifest) -> bool:
    """Whether the names of a run's models still mean the same weights."""
    if all(entry.by_rule or not _of_one_run(entry.identity) for entry in manifest.roles.values()):
        return True
    ended = manifest.sessions[-1].ended if manifest.sessions else None
    return ended is not None and clock.utc() - datetime.fromisoformat(ended) < STALE


def _of_one_run(identity: Mapping[str, Any]) -> bool:
    members = identity.get("members", {}).values()
    return "run" in identity.get("model", {}) or any(map(_of_one_run, members))


class SuiteRunner:
    """Runs what is left of a suite; `runs` says how each run ended.

    A run that fails does not stop the others. If engines cannot run next to each other, the
    candidates of all runs come first and the judges after them, in a second session of each run.
    """

    def __init__(
        self,
        *,
        display: Callable[[], Display],
        deliver: Callable[[RunResult], None],
        say: Callable[[str], None],
        complain: Callable[[object], None],
    ) -> None:
        self._display = display
        self._deliver = deliver
        self._say = say
        self._complain = complain
        self.runs: dict[str, SuiteRun] = {}

    async def run(self, planned: Sequence[PlannedSuiteRun]) -> None:
        """Carry out these runs; raises Interrupted when the user stops one."""
        engines = SharedEngines(judge_later=judges_come_later(planned))
        later: list[PlannedSuiteRun] = []
        try:
            for number, each in enumerate(planned, 1):
                self._say(f"{each.label} ({number} of {len(planned)})")
                later += await self._one(each, engines)
            engines.judge_later = False
            await self._judge(later, engines)
        finally:
            await self._close(engines)

    async def _judge(self, later: Sequence[PlannedSuiteRun], engines: SharedEngines) -> None:
        """Carry out what was left of these runs."""
        for number, each in enumerate(later, 1):
            self._say(f"{each.label}, judged ({number} of {len(later)})")
            await self._one(each, engines)

    async def _one(self, planned: PlannedSuiteRun, engines: SharedEngines) -> list[PlannedSuiteRun]:
        """Carry out one run; what is left of it if its judges were left for later."""

        def deliver(result: RunResult) -> None:
            if not _left_for_later(result):
                self._deliver(result)

        try:
            result = await arun(
                planned.settings,
                display=self._display(),
                handle_signals=True,
                deliver=deliver,
                engines=engines,
            )
        except HarnessError as error:
            self._complain(error)
            self._keep(planned, "failed", error.exit_code, errors=[error])
            await self._close(engines)
            return []
        stopped = [error for error in result.errors if isinstance(error, Interrupted)]
        if stopped:
            raise stopped[0]
        if _left_for_later(result):
            settings = msgspec.structs.replace(planned.settings, resume=result.folder)
            return [replace(planned, settings=settings)]
        self._keep(planned, result.status, result.exit_code, result.folder, result.errors)
        if result.status == "failed":
            await self._close(engines)
        return []

    def _keep(
        self,
        planned: PlannedSuiteRun,
        status: str,
        code: int,
        folder: Path | None = None,
        errors: Iterable[HarnessError] = (),
    ) -> None:
        self.runs[planned.label] = SuiteRun(
            model=planned.name,
            entry=planned.entry,
            seed=planned.seed,
            status=status,
            exit_code=exit_code_of([code]),
            folder=None if folder is None else str(folder),
            errors=tuple(map(str, errors)),
        )

    async def _close(self, engines: SharedEngines) -> None:
        try:
            await engines.close()
        except HarnessError as error:
            self._complain(error)


def judges_come_later(planned: Sequence[PlannedSuiteRun]) -> bool:
    """Whether these runs may have two sessions: failures are asked again only once."""
    return not any(each.settings.retry_failures for each in planned) and len(planned) > 1


def _left_for_later(result: RunResult) -> bool:
    return result.status == "interrupted" and not result.errors
