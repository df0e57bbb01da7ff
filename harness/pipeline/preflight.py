"""Looks at what a run needs before anything is asked: models, their servers and weights, disks.

Where it is not known whether a model thinks, or whether it can be used, it is asked one small
question: does it answer, and does it think before it answers?
"""

from __future__ import annotations

import asyncio
import inspect
import shlex
import shutil
import tempfile
import textwrap
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from harness.base.errors import BudgetSpent, DataError, HarnessError, ModelError, Unavailable
from harness.base.hashing import digest
from harness.base.home import expanded
from harness.base.redaction import safe_text
from harness.base.threads import in_thread
from harness.calls.client import Client
from harness.calls.retry import Patience
from harness.calls.store import Store, network_type
from harness.contracts.finding import (
    NAME,
    WEIGHTS,
    WIDTH,
    Finding,
    NotReady,
    State,
    bad,
    bad_by,
    doubtful,
    good,
)
from harness.contracts.model import CallError, Message, Model, Reply, Request, Sampling
from harness.contracts.stage import CANDIDATE
from harness.contracts.task import Task
from harness.parsing import split_reasoning
from harness.pipeline.desk import Binding, StageContext
from harness.pipeline.preparation import Prepared, data_problems, prepare
from harness.pipeline.roles import JUDGE, RoleBinder, giving_option, option_of
from harness.pipeline.settings import RunSettings, parse_args
from harness.registry.task_catalogue import Catalogue
from harness.runs.journal import part_numbers
from harness.runs.manifest import Manifest
from harness.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from harness.registry import Plugins


QUESTION = Request(
    messages=(Message("user", "What is 17 times 23? Answer with the number and nothing else."),),
    sampling=Sampling(max_tokens=2048),
    seed=0,
)
"""Simple to answer, but a model that thinks thinks about it."""

PATIENCE = Patience(attempts=1, attempt_timeout=120.0, total_timeout=120.0)
"""Without further attempts: the run itself waits for a server in trouble."""

REASONING_ONLY = "no_content"
"""The cause of failure if the tokens were enough for reasoning only."""

Thinks = dict[Model, bool | None]
"""Whether models think; None where that is not known."""

YES, NO = b"true", b"false"
MEMO = STAGE = "thinking"
"""The memo table of the answers, and the name under which the questions are counted."""

SECONDS = 10.0
MODEL_SECONDS = 60.0
"""Ample: nvidia-smi wakes sleeping GPUs one after the other."""
QUESTION_SECONDS = MODEL_SECONDS + PATIENCE.total_timeout

WAYS = {
    "now, without a GPU": ("baseline", "", "lexical"),
    "with a server": ("openai", "base_url=…,model=…", "openai:base_url=…,model=…"),
}
"""The model with its arguments, and the judge; the user fills in what is left open."""

FILLED = "http://127.0.0.1:1"
"""Stands for what the user fills in while a command is tried, which asks no server."""

DEFAULT_OF = "the default of"
"""How the place of a model begins that only a task names."""

GIB = 1024**3


@dataclass(frozen=True, kw_only=True)
class Player:
    """What plays a role, and where that was named: "from --judge"."""

    source: str
    binding: Binding


async def preflight(
    models: Mapping[Model, Sequence[Player]],
    settings: RunSettings,
    *,
    show: Callable[[str], None],
    client: Client | None = None,
    to_ask: Thinks | None = None,
    known: Sequence[Finding] = (),
) -> None:
    """Look at models that cost and at disks, then ask the small question where that has a use.

    It is for the models `to_ask`, which get as value whether they think, and for those whose look
    leaves a doubt. Nothing is asked without a client, or if a look finds what prevents the run.
    Doubts are shown. NotReady has all that prevents the run, after what is `known` before.
    """
    costly = [one for one in models if one.identity.scope != "call" and not one.identity.recorded]
    found, disks = await asyncio.gather(look_at(costly), look_at_disks(settings))
    if client is not None and not select_state(chain(disks, *found.values()), "bad"):
        await ask_models(found, client, {} if to_ask is None else to_ask)
    lines = [*_lines(models, found), *disks]
    for one in select_state(lines, "doubtful"):
        show(f"{one.about}: {one.says}" + (f"; {one.to_do}" if one.to_do else ""))
    if prevent := [*known, *select_state(lines, "bad")]:
        raise NotReady(prevent)


async def why_not(
    settings: RunSettings, plugins: Plugins, error: HarnessError, *, show: Callable[[str], None]
) -> HarnessError:
    """The error that prevents a run, or NotReady with all that does, if that is more.

    `error` is what ended the preparation. Data are looked for, and not fetched.
    """
    known, players, ways = await obstacles(settings, plugins, error)
    players = [one for one in players if not (settings.elsewhere and one.binding.role == CANDIDATE)]
    try:
        await preflight(models_of(players), settings, show=show, known=known)
    except NotReady as found:
        if ways or found.findings != tuple(known[:1]):
            return NotReady(found.findings, ways)
    return error


async def obstacles(
    settings: RunSettings,
    plugins: Plugins,
    error: HarnessError | None,
    placed: Callable[[HarnessError], HarnessError] = lambda error: error,
) -> tuple[list[Finding], list[Player], list[str]]:
    """What prevents the preparation of a run, which ended with `error`, each once; the players that
    could be bound; and the lines of commands that work instead of an engine that cannot start.

    `placed` gives an error the place of the setting at fault.
    """
    errors, players = await in_thread(lambda: players_one_by_one(settings, plugins))
    known = [one for role, failed in errors.items() for one in _role_findings(role, placed(failed))]
    ways: list[str] = []
    if isinstance(error, DataError):
        known.insert(0, _data_finding(error))
    elif error is not None:
        known += _role_findings("tasks", placed(error))
    if isinstance(error, DataError | NotReady):
        data = await in_thread(partial(data_problems, settings, plugins))
        known += map(_data_finding, data)
        if isinstance(error, NotReady):
            ways = await in_thread(partial(ways_out, settings, plugins, lacks_data=bool(data)))
    first: dict[str, Finding] = {}
    for one in known:
        first.setdefault(one.says, one)
    return list(first.values()), players, ways


def ways_out(settings: RunSettings, plugins: Plugins, *, lacks_data: bool) -> list[str]:
    """The lines of commands for the same tasks that can be prepared, below what each is for.

    They have the data of the settings, or the bundled sample if a run `lacks_data`.
    """
    data = settings.data if isinstance(settings.data, str) and not lacks_data else "sample"
    lines = []
    for purpose, (kind, args, judge) in WAYS.items():
        trial = RunSettings(
            tasks=settings.tasks, model=kind, model_args=parse_args(args.replace("…", FILLED)),
            roles={JUDGE: judge.replace("…", FILLED)}, allow_self_judging=True, data=data,
            include_path=settings.include_path, use_store=False,
        )  # fmt: skip
        try:
            tasks = prepare(trial, plugins, say=lambda line: None).tasks
        except HarnessError:
            continue
        judged = any(JUDGE in each.bindings for each in tasks)
        named = ("--model", kind), ("--model_args", args), ("--judge", judge if judged else "")
        own = ("--tasks", ",".join(settings.tasks)), ("--data", data)
        folders = (("--include_path", str(one)) for one in settings.include_path)
        # A blank of its own keeps an option and its value on one line.
        words = [f"{name}\0{value}" for name, value in named if value]
        words += [f"{name}\0{shlex.quote(value)}" for name, value in (*own, *folders)]
        text = textwrap.fill(
            " ".join(["harness", *words]), WIDTH - 2, initial_indent="    ",
            subsequent_indent=" " * 6, break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        lines += [f"  {purpose}:", text.replace("\n", " \\\n").replace("\0", " ")]
    return lines


def _data_finding(error: DataError) -> Finding:
    """The finding of an error of data; in short where no source has them."""
    short = isinstance(error, Unavailable)
    return bad("data", error.problem, error.hint) if short else bad_by("data", error)


def _role_findings(roles: str, error: HarnessError) -> Iterator[Finding]:
    for one in error.findings if isinstance(error, NotReady) else [bad_by(roles, error)]:
        if one.about != WEIGHTS:
            yield one
            continue
        role = roles.partition(" ")[0]
        option = option_of(role).replace("SPEC", "")
        server = "" if role == CANDIDATE else f"{option}openai:base_url=…,model=…; or "
        yield replace(one, about=roles, to_do=one.to_do and f"{server}{one.to_do}")


async def findings_about(
    players: Iterable[Player], *, ask: bool = False, local: bool = False
) -> list[Finding]:
    """The findings about the models behind the players; `ask` asks each the small question.

    `local` looks only at what is on this machine.
    """
    models = models_of(players)
    found = await look_at(models, local=local)
    client = Client(store=None, run_id="", patience=PATIENCE)
    await ask_models(found, client, {one: None for one in models if ask and may_be_asked(one)})
    return _lines(models, found)


def select_state(found: Iterable[Finding], state: State) -> list[Finding]:
    """The findings of this state."""
    return [one for one in found if one.state == state]


async def look(about: str, find: Callable[[], Any], seconds: float = SECONDS) -> list[Finding]:
    """What `find` finds, without keys, as `await look("store", partial(store, file))`.

    `find` gives findings: a function that runs in a thread, or a coroutine function. An error of it
    is a finding.
    """
    try:
        async with asyncio.timeout(seconds):
            if inspect.iscoroutinefunction(find):
                found = list(await find())
            else:
                found = await in_thread(lambda: list(find()))
    except TimeoutError:
        found = [doubtful(about, f"not known after {seconds:g} s")]
    except HarnessError as error:
        found = [bad_by(about, error)]
    except Exception as error:  # whatever the code of a plugin raises is a finding
        found = [bad(about, f"the look failed: {type(error).__name__}: {error}")]
    return [
        replace(one, says=safe_text(one.says), to_do=one.to_do and safe_text(one.to_do))
        for one in found
    ]


async def looks(*several: Awaitable[list[Finding]]) -> list[Finding]:
    """The findings of looks made in parallel, in order."""
    return list(chain(*await asyncio.gather(*several)))


def players_of_stages(contexts: Iterable[StageContext], settings: RunSettings) -> list[Player]:
    """What plays the roles of these stages."""
    return [
        Player(source=source_of(role, context.task, settings), binding=context.bindings[role])
        for context in contexts
        for role in (*context.stage.roles, *context.stage.judges)
    ]


def players_of_run(prepared: Prepared) -> list[Player]:
    """What plays the roles of a run that was prepared."""
    contexts = (context for each in prepared.tasks for context in each.contexts(""))
    return players_of_stages(contexts, prepared.settings)


def players_one_by_one(
    settings: RunSettings, plugins: Plugins
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
    by_settings = ((role, None, partial(binder.bind_given, role)) for role in binder.given)
    players = []
    for role, task, bind in _roles_of_tasks(binder, tasks, plugins) if tasks else by_settings:
        if role == CANDIDATE and not settings.model:
            continue
        try:
            players.append(Player(source=source_of(role, task, settings), binding=bind()))
        except HarnessError as error:
            errors.setdefault(str(error), (error, []))[1].append(role)
    return {_role_names(roles): error for error, roles in errors.values()}, players


def _roles_of_tasks(
    binder: RoleBinder, tasks: Sequence[Task], plugins: Plugins
) -> Iterator[tuple[str, Task, Callable[[], Binding]]]:
    """Each role of the tasks, and what binds it."""
    for task in tasks:
        stages = [each for each in plugins.benchmark(task.benchmark).stages if each.when is None]
        judges = {role for stage in stages for role in stage.judges}
        for role in sorted(judges.union(*(stage.roles for stage in stages))):
            yield role, task, partial(binder.bind_role, role, task, as_judge=role in judges)


def source_of(role: str, task: Task | None, settings: RunSettings) -> str:
    """Where a role's model was named: by the command or settings, or as the task's default."""
    if task is None or role == CANDIDATE or role in settings.roles:
        return f"from {settings.named_in.get(role, giving_option(role))}"
    named = task.named_by(role, settings.roles)
    if named != role:
        return source_of(named, task, settings)
    return f"{DEFAULT_OF} {task.name}"


def models_of(players: Iterable[Player]) -> dict[Model, list[Player]]:
    """The models behind the players, each with all that it plays."""
    models: dict[Model, list[Player]] = {}
    for one in players:
        for model in dict.fromkeys(one.binding.models):
            models.setdefault(model, []).append(one)
    return models


async def look_at(models: Collection[Model], *, local: bool = False) -> dict[Model, list[Finding]]:
    """Each model's own findings."""

    async def check(model: Model) -> Sequence[Finding]:
        if local and model.occupies is None:
            model.require()
            return ()
        return await model.check()

    checks = (look("model", partial(check, one), MODEL_SECONDS) for one in models)
    return dict(zip(models, await asyncio.gather(*checks), strict=True))


async def ask_models(found: dict[Model, list[Finding]], client: Client, to_ask: Thinks) -> None:
    """Ask the small question, and add what it shows to the findings and to `to_ask`.

    It is for the models `to_ask` and those in doubt, without those that cannot be used.
    """

    async def ask(model: Model) -> Sequence[Finding]:
        findings, thinks = await ask_question(model, client)
        if model in to_ask:
            to_ask[model] = thinks
        return findings

    asked = [
        one
        for one, own in found.items()
        if not select_state(own, "bad")
        and (one in to_ask or (may_be_asked(one) and select_state(own, "doubtful")))
    ]
    questions = (look("question", partial(ask, one), QUESTION_SECONDS) for one in asked)
    try:
        answers = await asyncio.gather(*questions)
    finally:
        await client.close()
    for model, answer in zip(asked, answers, strict=True):
        found[model] = _after_question(found[model], answer)


def may_be_asked(model: Model) -> bool:
    """Whether the question has a use, and starts no engine."""
    return model.identity.scope != "call" and model.occupies is None


def _after_question(found: Sequence[Finding], answer: Sequence[Finding]) -> list[Finding]:
    """The findings of a look and of the question: an answer settles doubts, an error confirms them.

    Of the doubts about a model that answers, only those with advice remain.
    """
    known, doubts = select_state(found, "good"), select_state(found, "doubtful")
    if doubts and (errors := select_state(answer, "bad")):
        says = "; ".join(one.says for one in (*doubts, *errors))
        return [*known, bad(doubts[0].about, says, doubts[0].to_do or errors[0].to_do)]
    if select_state(answer, "good"):
        doubts = [one if one.to_do else good(one.about, one.says) for one in doubts]
    return [*known, *doubts, *answer]


def _lines(
    models: Mapping[Model, Sequence[Player]], found: Mapping[Model, Sequence[Finding]]
) -> list[Finding]:
    """The findings about each model: those that are not good have lines of their own.

    The good ones share a line, which is left out if something prevents the use of the model.
    """
    lines = []
    for model, own in found.items():
        players = models[model]
        about = _role_names(one.binding.role for one in players)
        name = ", ".join([model.identity.label, *dict.fromkeys(one.source for one in players)])
        fine = "; ".join(one.says for one in select_state(own, "good"))
        if not select_state(own, "bad") and (fine or not own):
            lines.append(good(about, f"{name}: {fine or 'can be used'}"))
        wrong = [*select_state(own, "bad"), *select_state(own, "doubtful")]
        for one in sorted(wrong, key=lambda one: (one.state, one.about != WEIGHTS)):
            says, to_do = f"{name}: {one.says}", _advice(one, model, players)
            lines.append(replace(one, about=about, says=says, to_do=to_do))
    return lines


def _role_names(roles: Iterable[str]) -> str:
    """The roles that one model plays: the candidate and the judge come first."""
    first, *others = sorted(
        dict.fromkeys(roles), key=lambda role: (role != CANDIDATE, role != JUDGE)
    )
    if len(others) > 1:
        return f"{first} and {len(others)} other roles"
    return " and ".join([first, *others])


def _advice(found: Finding, model: Model, players: Sequence[Player]) -> str | None:
    """What to do about a finding; where other models could play these roles, how to name them."""
    roles = [one.binding.role for one in players]
    option = option_of(JUDGE if JUDGE in roles else roles[0]).replace("SPEC", "")
    if found.about == WEIGHTS and CANDIDATE not in roles and found.to_do is not None:
        return (
            f"name a smaller model, {option}{model.identity.kind}:model=…, or a server, "
            f"{option}openai:base_url=…,model=…; or {found.to_do}"
        )
    if found.about == NAME and all(one.source.startswith(DEFAULT_OF) for one in players):
        trial = f"; {option}lexical judges by word overlap, for a trial" if JUDGE in roles else ""
        return f"name a model and its server, {option}openai:base_url=…,model=…{trial}"
    return found.to_do


async def look_at_disks(settings: RunSettings) -> list[Finding]:
    """The findings about the folder of runs, and about that of the store."""
    runs, stored = "runs", "store's folder"
    output = partial(folder, runs, settings.output_path, option="--output_path DIR")
    file = settings.store_file
    if file is None:
        return await look(runs, output)
    option = "--store FILE" if settings.store else "HARNESS_CACHE=DIR"
    store = partial(folder, stored, file.parent, option=option)
    return await looks(look(runs, output), look(stored, store))


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
    if free < GIB:  # a long run may not finish
        yield (doubtful if free else bad)(about, where, f"free some space, or {advice}")
    else:
        yield good(about, where)


async def ask_question(model: Model, client: Client) -> tuple[list[Finding], bool | None]:
    """What the question shows: whether the model answers, and whether it thinks.

    There is no finding if the budget does not allow the question, which the run itself reports.
    """
    about, failed = "question", "a small question failed"
    try:
        asked = model.live or model
        answer = await client.ask(asked, QUESTION, role=model.identity.label, stage=STAGE)
    except BudgetSpent:
        return [], None
    except ModelError as error:
        if not isinstance(error.__cause__, CallError):
            raise
        return [bad(about, f"{failed}: {error.__cause__}", error.hint)], None
    failure, reply = answer.failure, answer.reply
    if failure is not None and failure.cause != REASONING_ONLY:
        return [doubtful(about, f"{failed}: {failure.cause}: {failure.detail}")], None
    answers = [good(about, "it answers a small question")]
    if reply is None or reply.finish == "refused":
        return answers, None
    return answers, shows_thinking(reply)


def shows_thinking(reply: Reply) -> bool:
    """Whether a reply to the question contains reasoning, or was cut.

    A number needs no thousand tokens: what was cut is thinking, also where no tag opens it.
    """
    _, thought = split_reasoning(reply.text)
    counted = reply.usage is not None and reply.usage.reasoning_tokens > 0
    return bool(thought or reply.reasoning or counted or reply.finish == "length")


def known_thinking(
    models: Sequence[Model],
    *,
    run_id: str,
    said: Mapping[str, bool | None],
    store: Path | None,
    warn: Callable[[str], None],
) -> Thinks:
    """Whether models think, None if nobody can know; without the models that the question is for.

    `said` is what earlier sessions of the run knew, by the digest of the identity's key, and
    `store` has the kept answers.
    """
    known: Thinks = {}
    memos = {}
    for model in models:
        key = digest(model.identity.key(run_id))
        thinks = said[key] if key in said else model.thinks()
        if key in said or thinks is not None or not model.asked_if_thinking:
            known[model] = thinks
        elif (memo := _memo_key(model)) is not None:
            memos[model] = memo
    if store is None or not memos:
        return known
    # The run itself reports a store that cannot be used.
    with suppress(HarnessError), closing(Store.open(store, warn=warn)) as opened:
        kept = opened.memo_known(MEMO, memos.values())
        known |= {model: kept[memo] == YES for model, memo in memos.items() if memo in kept}
    return known


def keep_thinking(answered: Thinks, store: Path | None, warn: Callable[[str], None]) -> None:
    """Keep for other runs what the question showed."""
    new = {
        memo: YES if yes else NO
        for model, yes in answered.items()
        if yes is not None and (memo := _memo_key(model)) is not None
    }
    if store is not None and new:
        with suppress(HarnessError), closing(Store.open(store, warn=warn)) as opened:
            opened.memo_keep(MEMO, new)


def _memo_key(model: Model) -> str | None:
    """The key of the kept answer; None if the name may mean other weights in another run."""
    return digest(model.identity.key("")) if model.identity.scope == "everywhere" else None


def said_before(folder: RunFolder, manifest: Manifest) -> dict[str, bool | None]:
    """Whether a run's models think, as its earlier sessions knew, by the digest of the identity's
    key.

    What they did not know stays unknown once the run has records: it is part of their keys.
    """
    journals = (
        folder.path / task.folder / stage.file
        for task in manifest.tasks.values()
        for stage in task.stages
    )
    recorded = any(part_numbers(journal) for journal in journals)
    return {
        digest(entry.identity["model"]): entry.thinks
        for entry in manifest.roles.values()
        if "model" in entry.identity and (recorded or entry.thinks is not None)
    }
