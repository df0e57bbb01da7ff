"""Looks at what a run needs before anything is paid: models, their servers and weights, disks."""

from __future__ import annotations

import asyncio
import inspect
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from harness.base.errors import HarnessError, ModelError
from harness.base.home import expanded
from harness.base.redaction import safe_text
from harness.calls.network_fs import network_type
from harness.calls.store import default_path
from harness.contracts.finding import NAME, WEIGHTS, Finding, bad, bad_by, doubtful, good
from harness.contracts.model import CallError, Message, Model, Request, Sampling
from harness.contracts.stage import CANDIDATE
from harness.contracts.task import Task
from harness.pipeline.roles import JUDGE, Binding, RoleBinder, giving_option, named_by, option_of
from harness.pipeline.settings import RunSettings
from harness.pipeline.stage_context import StageContext
from harness.registry.task_catalogue import Catalogue

if TYPE_CHECKING:
    from harness.registry import Plugins

T = TypeVar("T")

SECONDS = 10.0
MODEL_SECONDS = 60.0
"""Ample: nvidia-smi wakes sleeping GPUs one after the other."""

QUESTION_SECONDS = 30.0
QUESTION = Request(
    messages=(Message("user", "Answer with one word: yes."),),
    sampling=Sampling(max_tokens=16),
    seed=0,
)
REASONING_ONLY = "no_content"
"""The cause of failure if the tokens were enough for reasoning only."""

DEFAULT_OF = "the default of"
"""How the place of a model begins that only a task names."""

GIB = 1024**3
LITTLE = 1 * GIB
"""Below this free space, a long run may not finish."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """One look at something, as `Look(about="store", find=partial(store, file))`.

    `find` gives the findings: a function that runs in a thread, or a coroutine function.
    """

    about: str
    find: Callable[[], Any]
    seconds: float = SECONDS


@dataclass(frozen=True, kw_only=True)
class Player:
    """A role with what plays it, and where that was named: "from --judge"."""

    role: str
    source: str
    binding: Binding

    @property
    def is_default(self) -> bool:
        """Whether only a task names what plays the role."""
        return self.source.startswith(DEFAULT_OF)


class NotReady(ModelError):
    """Something prevents the run, as each of the findings says; nothing was paid."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        first, *others = findings
        super().__init__(first.says, where=first.about, hint=first.to_do)
        self._others = others

    def __str__(self) -> str:
        others = (ModelError(one.says, where=one.about, hint=one.to_do) for one in self._others)
        return "\n".join([super().__str__(), *map(str, others)])


async def preflight(looks: Sequence[Look], show: Callable[[str], None]) -> None:
    """Show what is doubtful; NotReady where something prevents the run."""
    found = await findings_of(looks)
    for one in found:
        if one.state == "doubtful":
            show(f"{one.about}: {one.says}" + (f"; {one.to_do}" if one.to_do else ""))
    if prevents := [one for one in found if one.state == "bad"]:
        raise NotReady(prevents)


async def findings_of(looks: Sequence[Look]) -> list[Finding]:
    """The findings of all looks, which run in parallel; in order, and without keys."""
    found = await asyncio.gather(*(_findings(look) for look in looks))
    return [
        msgspec.structs.replace(
            one, says=safe_text(one.says), to_do=one.to_do and safe_text(one.to_do)
        )
        for several in found
        for one in several
    ]


async def in_thread(work: Callable[[], T]) -> T:
    """The result of the work, done in a thread that does not delay the end of the command."""
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(result)


async def _findings(look: Look) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(look.seconds):
            if inspect.iscoroutinefunction(look.find):
                return list(await look.find())
            return await in_thread(lambda: list(look.find()))
    except TimeoutError:
        return [doubtful(look.about, f"not known after {look.seconds:g} s")]
    except HarnessError as error:
        return [bad_by(look.about, error)]
    except Exception as error:  # whatever the code of a plugin raises is a finding
        return [bad(look.about, f"the look failed: {type(error).__name__}: {error}")]


def players_of_stages(
    contexts: Iterable[StageContext], settings: RunSettings, named_in: Mapping[str, str]
) -> list[Player]:
    """What plays the roles of these stages. `named_in` has places other than the command."""
    return [
        Player(
            role=role,
            source=source_of(role, context.task, settings, named_in),
            binding=context.bindings[role],
        )
        for context in contexts
        for role in (*context.stage.roles, *context.stage.judges)
    ]


def players_one_by_one(
    settings: RunSettings, plugins: Plugins, named_in: Mapping[str, str]
) -> tuple[dict[str, HarnessError], list[Player]]:
    """The errors of tasks and roles that cannot be used, and the players of the other roles.

    Without tasks, the roles are those that the settings name.
    """
    binder = RoleBinder(settings, plugins)
    errors: dict[str, tuple[HarnessError, list[str]]] = {}
    tasks: Sequence[Task] = ()
    try:
        tasks = Catalogue(plugins, include_path=settings.include_path).select(settings.tasks).tasks
    except HarnessError as error:
        errors["tasks"] = error, ["tasks"]
    bindings = _by_tasks(binder, tasks, plugins) if tasks else _by_settings(binder)
    players = []
    for role, task, bind in bindings:
        if role == CANDIDATE and not settings.model:
            continue
        source = source_of(role, task, settings, named_in)
        try:
            players.append(Player(role=role, source=source, binding=bind()))
        except HarnessError as error:
            errors.setdefault(str(error), (error, []))[1].append(role)
    return {_named(roles): error for error, roles in errors.values()}, players


def _by_tasks(
    binder: RoleBinder, tasks: Sequence[Task], plugins: Plugins
) -> Iterator[tuple[str, Task, Callable[[], Binding]]]:
    """Each role of the tasks, and what binds it."""
    for task in tasks:
        stages = [each for each in plugins.benchmark(task.benchmark).stages if each.when is None]
        judges = {role for stage in stages for role in stage.judges}
        for role in sorted(judges.union(*(stage.roles for stage in stages))):
            yield role, task, partial(binder.bind_role, role, task, as_judge=role in judges)


def _by_settings(binder: RoleBinder) -> Iterator[tuple[str, None, Callable[[], Binding]]]:
    """Each role that the settings name, and what binds it."""
    for role in binder.given:
        yield role, None, partial(binder.bind_given, role)


def source_of(
    role: str, task: Task | None, settings: RunSettings, named_in: Mapping[str, str]
) -> str:
    """Where a role's model was named: by the command or settings, or as the task's default."""
    if task is None or role == CANDIDATE or role in settings.roles:
        return f"from {named_in.get(role, giving_option(role))}"
    named = named_by(role, task, settings.roles)
    if named != role:
        return source_of(named, task, settings, named_in)
    return f"{DEFAULT_OF} {task.name}"


def looks_at_models(
    players: Iterable[Player],
    *,
    among: Collection[Model] | None = None,
    ask: bool = False,
    local: bool = False,
) -> list[Look]:
    """A look at each model behind the players, or at those `among` them.

    `ask` asks every model one small question. `local` looks only at what is on this machine.
    """
    by_model: dict[Model, list[Player]] = {}
    for one in players:
        for model in dict.fromkeys(one.binding.models):
            if among is None or model in among:
                by_model.setdefault(model, []).append(one)
    return [
        Look(
            about=_named(one.role for one in same),
            find=partial(_at_model, model, same, ask=ask, local=local),
            seconds=MODEL_SECONDS + QUESTION_SECONDS,
        )
        for model, same in by_model.items()
    ]


async def _at_model(
    model: Model, players: Sequence[Player], *, ask: bool, local: bool
) -> list[Finding]:
    """The findings about one model: each that is not good in a line of its own.

    The good ones share a line, which is left out if something prevents the use of the model.
    """
    about = _named(one.role for one in players)
    name = ", ".join([model.identity.label, *dict.fromkeys(one.source for one in players)])
    try:
        found = await _checked(model, ask=ask, local=local)
    except HarnessError as error:
        found = [bad_by(about, error)]
    lines = []
    if all(one.state != "bad" for one in found):
        fine = "; ".join(one.says for one in found if one.state == "good")
        if fine or not found:
            lines.append(good(about, f"{name}: {fine or 'can be used'}"))
    for one in sorted(found, key=lambda one: (one.state, one.about != WEIGHTS)):
        if one.state != "good":
            to_do = one.to_do
            if one.about == WEIGHTS:
                to_do = _other_ways(model, players, one)
            elif one.about == NAME and all(each.is_default for each in players):
                to_do = _instead_of_default(players)
            lines.append(
                Finding(about=about, state=one.state, says=f"{name}: {one.says}", to_do=to_do)
            )
    return lines


def _named(roles: Iterable[str]) -> str:
    """The roles that one model plays: the candidate and the judge come first."""
    first, *others = sorted(
        dict.fromkeys(roles), key=lambda role: (role != CANDIDATE, role != JUDGE)
    )
    if len(others) > 1:
        return f"{first} and {len(others)} other roles"
    return " and ".join([first, *others])


def _other_ways(model: Model, players: Sequence[Player], found: Finding) -> str | None:
    """What to do about weights: for a role that is not the candidate, other models as well."""
    roles = [one.role for one in players]
    if CANDIDATE in roles or found.to_do is None:
        return found.to_do
    option = option_of(JUDGE if JUDGE in roles else roles[0]).replace("SPEC", "")
    return (
        f"name a smaller model, {option}{model.identity.kind}:model=…, or a server, "
        f"{option}openai:base_url=…,model=…; or {found.to_do}"
    )


def _instead_of_default(players: Sequence[Player]) -> str:
    """What to do about a task's own choice that the candidate's server does not know."""
    roles = [one.role for one in players]
    option = option_of(JUDGE if JUDGE in roles else roles[0]).replace("SPEC", "")
    trial = f"; {option}lexical judges by word overlap, for a trial" if JUDGE in roles else ""
    return f"name a model and its server, {option}openai:base_url=…,model=…{trial}"


async def _checked(model: Model, *, ask: bool, local: bool) -> list[Finding]:
    """A model's own findings, and those of a small question where they leave a doubt."""
    if local and model.occupies is None:
        model.require()
        return []
    found = list(await model.check())
    doubts = [one for one in found if one.state == "doubtful"]
    asks = model.identity.scope != "call" and model.occupies is None
    if not asks or any(one.state == "bad" for one in found) or not (doubts or ask):
        return found
    rest = [one for one in found if one not in doubts]
    answer = await _question(model)
    if answer.state == "good":
        # It answers, so only advice that still holds is worth a line.
        kept = [one if one.to_do else good(one.about, one.says) for one in doubts]
        return [*rest, *kept, answer]
    if answer.state == "bad" and doubts:
        says = "; ".join(one.says for one in (*doubts, answer))
        return [*rest, bad(doubts[0].about, says, doubts[0].to_do)]
    return [*rest, *doubts, answer]


async def _question(model: Model) -> Finding:
    """The finding of one small question to the model."""
    about = "question"
    try:
        async with asyncio.timeout(QUESTION_SECONDS):
            await model.open()
            try:
                await model.ask(QUESTION)
            finally:
                await model.close()
    except TimeoutError:
        return doubtful(about, f"a small question was not answered within {QUESTION_SECONDS:g} s")
    except CallError as error:
        if error.cause == REASONING_ONLY:
            return good(about, "it answers a small question")
        prevents = error.fatal or error.cause == "connection"
        text = f"a small question failed: {error.cause}: {error.detail}"
        return (bad if prevents else doubtful)(about, text)
    return good(about, "it answers a small question")


def looks_at_disks(settings: RunSettings) -> list[Look]:
    """A look at the folder of runs, and at that of the store."""
    runs, store = "runs", "store's folder"
    find = partial(folder, runs, settings.output_path, option="--output_path DIR")
    looks = [Look(about=runs, find=find)]
    if settings.use_store:
        option = "--store FILE" if settings.store else "HARNESS_CACHE=DIR"

        def find_store() -> Iterator[Finding]:
            return folder(store, (settings.store or default_path()).parent, option=option)

        looks.append(Look(about=store, find=find_store))
    return looks


def folder(about: str, path: Path, *, option: str) -> Iterator[Finding]:
    """Whether the folder, or the folder in which it would be created, is writable and has space.

    `option` is the option that names another folder.
    """
    path = expanded(path).absolute()
    existing = next(one for one in (path, *path.parents) if one.exists())
    advice = f"{option} names another folder"
    if not existing.is_dir():
        yield bad(about, f"{path}: {existing} is not a folder", advice)
        return
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        yield bad(about, f"{existing} cannot be written: {error.strerror}", advice)
        return
    free = shutil.disk_usage(existing).free
    kind = network_type(existing)
    where = f"{path}; {free / GIB:.1f} GiB free" + (
        f"; on {kind}, over the network" if kind else ""
    )
    if free < LITTLE:
        yield (doubtful if free else bad)(about, where, f"free some space, or {advice}")
    else:
        yield good(about, where)
