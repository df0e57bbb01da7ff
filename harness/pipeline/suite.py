"""A suite: its file, and its runs, carried out one after another so that each engine opens once."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from harness.base import clock
from harness.base.errors import HarnessError, Interrupted, TaskError, one_of
from harness.base.hashing import digest
from harness.base.home import expanded
from harness.calls.engines import SharedEngines
from harness.contracts.stage import CANDIDATE
from harness.contracts.task import Text, Texts, key
from harness.pipeline.preparation import Prepared, prepare
from harness.pipeline.progress import Display
from harness.pipeline.resume import STALE
from harness.pipeline.roles import JUDGE
from harness.pipeline.run import RunResult, arun
from harness.pipeline.settings import LABEL, RunSettings
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder
from harness.tasks.load import Document, load_file
from harness.tasks.task_schema import errors_of, raise_all

if TYPE_CHECKING:
    from harness.registry import Plugins

Label = Annotated[
    str,
    key("A name of at most 40 letters, digits, `_`, `-`, `.` and `@`.", pattern=rf"^{LABEL}$"),
]


class SuiteModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model of a suite: a SPEC, or a kind with the weights that a glob finds."""

    name: Label
    spec: Text | None = None
    glob: Annotated[Text | None, key("The weights, as `/checkpoints/night-*`.")] = None
    kind: Annotated[Text | None, key("The kind of the models that `glob` finds.")] = None
    argument: Annotated[Text, key("The argument that takes each path of `glob`.")] = "pretrained"
    args: Annotated[dict[str, Any], key("Further arguments of these models.")] = {}


class SuiteFile(msgspec.Struct, frozen=True, kw_only=True):
    """Models × tasks × seeds, the gates that the results must pass, and options of the runs."""

    models: Annotated[
        tuple[SuiteModel, ...],
        key("Models, each with a `name`, and a `spec` or a `glob`.", min_length=1),
    ]
    tasks: Annotated[Texts, key("Tasks and groups, as `--tasks` names them.", min_length=1)]
    judge: Annotated[Text | None, key("The judge, as `--judge` names it.")] = None
    seeds: Annotated[
        tuple[int, ...], key("The seeds with which each model runs.", min_length=1, unique=True)
    ] = (0,)
    limit: Annotated[int | None, key("The most users of a task.", ge=1)] = None
    against: Annotated[Label | None, key("The model that gates compare the others with.")] = None
    gates: Annotated[Texts, key("Gates, as `--gate` of `harness compare`.")] = ()
    options: Annotated[dict[str, Any], key("Other options of `harness run`, by name.")] = {}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One model of a suite: the label of its runs, its entry in the file, and its place there."""

    name: str
    entry: str
    spec: str = ""
    kind: str = ""
    args: dict[str, Any]
    where: str


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A suite with its models; `document` has the places of its values."""

    name: str
    file: SuiteFile
    candidates: tuple[Candidate, ...]
    document: Document

    def chosen(self, only: str | None) -> tuple[Candidate, ...]:
        """All models, or those that this name of an entry or a model selects; TaskError if none."""
        found = tuple(one for one in self.candidates if only in (None, one.name, one.entry))
        if not found:
            known = [*dict.fromkeys(n for one in self.candidates for n in (one.entry, one.name))]
            problem = "the suite has no such model"
            one_of(str(only), known, problem, TaskError, where="--only", found=only)
        return found


def read_suite(path: Path) -> Suite:
    """The suite in a file; TaskError with line and column if it cannot be used."""
    document = load_file(path, what="suite")
    raise_all(errors_of(SuiteFile, document))
    file = msgspec.convert(document.values, SuiteFile)
    candidates = tuple(
        one
        for number, model in enumerate(file.models)
        for one in _candidates(model, document, number)
    )
    places: dict[str, str] = {}
    for one in candidates:
        if one.name in places:
            raise TaskError(
                f"two models of the suite are called {one.name!r}",
                where=one.where,
                found=f"another in {places[one.name]}",
                expected="a name for each model, as its runs are called so in tables",
            )
        places[one.name] = one.where
    if file.against is not None:
        one_of(
            file.against, places, "`against` names no model of the suite", TaskError,
            where=document.where(["against"]), found=file.against,
        )  # fmt: skip
    if file.gates and file.against is None:
        raise TaskError(
            "gates need `against`",
            where=document.where(["gates"], of_key=True),
            expected=f"`against: NAME` with one of {', '.join(places)}",
        )
    return Suite(name=path.stem, file=file, candidates=candidates, document=document)


def _candidates(model: SuiteModel, document: Document, number: int) -> Iterator[Candidate]:
    """The model of a SPEC, or the models that a glob finds, in the order of their names."""
    place: list[str | int] = ["models", number]
    if (model.spec is None) == (model.glob is None):
        raise TaskError(
            "a model has either `spec` or `glob`",
            where=document.where([*place, "glob"] if model.spec else place, of_key=True),
            found="both" if model.spec else "neither",
            expected="`spec: SPEC`, or `glob: PATH` with `kind: KIND`",
        )
    if model.spec is not None:
        for key in ("kind", "argument", "args"):
            if key in document.values["models"][number]:
                raise TaskError(
                    f"`{key}` belongs to a model with `glob`",
                    where=document.where([*place, key], of_key=True),
                    expected="all arguments of the model in its `spec`",
                )
        where = document.where([*place, "spec"])
        yield Candidate(name=model.name, entry=model.name, spec=model.spec, args={}, where=where)
        return
    if model.kind is None:
        raise TaskError(
            "`kind` is missing",
            where=document.where([*place, "glob"], of_key=True),
            expected="the kind of the models that `glob` finds, such as `kind: vllm`",
        )
    where = document.where([*place, "glob"])
    found = sorted(glob.glob(str(expanded(str(model.glob)))))  # noqa: PTH207 - it may be absolute
    if not found:
        raise TaskError(
            "nothing matches the glob",
            where=where,
            found=model.glob,
            expected="the weights of at least one model; a relative path begins in the folder of "
            "the command",
        )
    for path in found:
        label = re.sub(r"[^\w.@-]", "_", Path(path).name)[-40:].lstrip(".@-") or model.name
        args = {**model.args, model.argument: path}
        yield Candidate(name=label, entry=model.name, kind=model.kind, args=args, where=where)


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
            contents = {
                name: (entry.content, entry.data.get("fingerprint"), entry.contents)
                for name, entry in manifest.tasks.items()
            }
            if taken and contents == self._contents_now:
                return folder.path
        return None

    @cached_property
    def _contents_now(self) -> dict[str, tuple[object, ...]]:
        """What the tasks hold now: definitions, data and the files of their options; nothing if no
        run can be prepared, as each run then says."""
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


def _still_valid(manifest: Manifest) -> bool:
    """Whether the names of a run's models still mean the same weights."""
    asked = [entry.identity for entry in manifest.roles.values() if not entry.by_rule]
    if not any(map(_lasts_one_run, asked)):
        return True
    ended = manifest.sessions[-1].ended if manifest.sessions else None
    return ended is not None and clock.utc() - datetime.fromisoformat(ended) < STALE


def _lasts_one_run(identity: Mapping[str, Any]) -> bool:
    members = identity.get("members", {}).values()
    return "run" in identity.get("model", {}) or any(map(_lasts_one_run, members))


@dataclass(eq=False, kw_only=True)
class SuiteRunner:
    """Runs what is left of a suite; `runs` says how each run ended.

    A run that fails does not stop the others. If engines cannot run next to each other, the
    candidates of all runs come first and the judges after them, in a second session of each run.
    """

    display: Callable[[], Display]
    deliver: Callable[[RunResult], None]
    say: Callable[[str], None]
    complain: Callable[[object], None]
    runs: dict[str, SuiteRun] = field(default_factory=dict)

    async def run(self, planned: Sequence[PlannedSuiteRun]) -> None:
        """Carry out these runs; raises Interrupted when the user stops one."""
        engines = SharedEngines(judge_later=judges_come_later(planned))
        later: list[PlannedSuiteRun] = []
        try:
            for number, each in enumerate(planned, 1):
                self.say(f"{each.label} ({number} of {len(planned)})")
                later += await self._one(each, engines)
            engines.judge_later = False
            for number, each in enumerate(later, 1):
                self.say(f"{each.label}, judged ({number} of {len(later)})")
                await self._one(each, engines)
        finally:
            await self._close(engines)

    async def _one(self, planned: PlannedSuiteRun, engines: SharedEngines) -> list[PlannedSuiteRun]:
        """Carry out one run; what is left of it if its judges were left for later."""

        def deliver(result: RunResult) -> None:
            if not _left_for_later(result):
                self.deliver(result)

        try:
            result = await arun(
                planned.settings,
                display=self.display(),
                handle_signals=True,
                deliver=deliver,
                engines=engines,
            )
        except HarnessError as error:
            self.complain(error)
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
            self.complain(error)


def judges_come_later(planned: Sequence[PlannedSuiteRun]) -> bool:
    """Whether these runs may have two sessions: failures are asked again only once."""
    return not any(each.settings.retry_failures for each in planned) and len(planned) > 1


def _left_for_later(result: RunResult) -> bool:
    return result.status == "interrupted" and not result.errors
