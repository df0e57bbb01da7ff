"""What a run would ask: first prompts and counts, found by a rehearsal in which no model is asked.

A few users go through the real stages with baseline respondents in the models' places. What is
counted there is carried over to the whole data.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import msgspec

from harness.base.errors import PluginError, PromptError
from harness.base.hashing import stable_int
from harness.calls.client import Client
from harness.calls.pricing import Price, price_of
from harness.contracts.identity import Identity
from harness.contracts.judge import Ask, Judge, JudgeParts, Question, Verdict
from harness.contracts.model import CallError, Message, Model, Reply, Request
from harness.contracts.outcomes import Broken, NoVerdict, problem_in
from harness.contracts.stage import Item
from harness.pipeline.executor import LocalExecutor, LocalSettings
from harness.pipeline.memos import Memory
from harness.pipeline.plan import Plan, StageRun
from harness.pipeline.preparation import PreparedTask, prepare, refuse_unpriced, with_data_of
from harness.pipeline.roles import Binding
from harness.pipeline.settings import FailureLimits, RunSettings
from harness.pipeline.stage_context import StageContext
from harness.pipeline.stage_items import Journals, records_of, stage_runs
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.registry import Plugins

ASSUMPTIONS = (
    "`cost, at most`: these calls, completions as long as they may get",
    "`cost bounds`: from the fewest calls, prompts alone, to the most calls, longest completions",
)


class ExpectedCost(msgspec.Struct, frozen=True, kw_only=True):
    """What one role of one stage would cost.

    `at_most` is for the calls expected, each answer as long as it may get. `least` is for the
    fewest calls and their prompts alone, `most` for the most calls and the longest answers.
    """

    at_most: float
    least: float
    most: float


def expected_cost(
    price: Price | None,
    *,
    calls: int,
    prompt_tokens: int,
    completion_tokens: int,
    bounds: tuple[float, float],
) -> ExpectedCost | None:
    """What calls of that price would cost, of which there are between the bounds.

    None where it is not known: without a price, or where no call shows how long prompts are.
    """
    least, most = bounds
    if not most and not calls:
        return ExpectedCost(at_most=0.0, least=0.0, most=0.0)
    if price is None or not calls:
        return None
    at_most = price.cost(prompt=prompt_tokens, cached=0, completion=completion_tokens)
    cheapest = price.input if price.cached is None else min(price.input, price.cached)
    prompts = Price(input=cheapest, output=0.0).cost(prompt=prompt_tokens, cached=0, completion=0)
    return ExpectedCost(at_most=at_most, least=prompts * least / calls, most=at_most * most / calls)


def shared(costs: Sequence[ExpectedCost]) -> ExpectedCost:
    """What calls cost that several models share evenly, from what each would ask for all."""
    whole = all_together(costs)
    many = len(costs)
    return ExpectedCost(at_most=whole.at_most / many, least=whole.least / many,
                        most=whole.most / many)  # fmt: skip


def all_together(costs: Iterable[ExpectedCost]) -> ExpectedCost:
    """Several expected costs as one."""
    costs = tuple(costs)
    return ExpectedCost(
        at_most=sum(cost.at_most for cost in costs),
        least=sum(cost.least for cost in costs),
        most=sum(cost.most for cost in costs),
    )


REHEARSED = 5
"""Users that go through the rehearsal."""

CHARACTERS_A_TOKEN = 4
"""A rough measure that holds for English prose; said beside every estimate."""


class RoleForecast(msgspec.Struct, frozen=True, kw_only=True):
    """What one role of one stage would be asked; `first_prompt` is empty where none was reached.

    `cost` is None where no prices were given, or it is not known.
    """

    role: str
    label: str
    calls: int
    prompt_tokens: int
    most_completion_tokens: int
    first_prompt: tuple[Message, ...] = ()
    cost: ExpectedCost | None = None


class StageForecast(msgspec.Struct, frozen=True, kw_only=True):
    """What one stage of a task would do.

    `exact` items were counted in the data, others carried over from the rehearsal: as many a user
    as there, where `a_user` are the fewest and the most that one had; None where items are not
    about single users. Calls lie between `least_calls` and `most_calls` when every answer can be
    read at once.
    """

    task: str
    stage: str
    items: int
    exact: bool
    least_calls: int
    most_calls: int
    roles: tuple[RoleForecast, ...]
    a_user: tuple[int, int] | None = None


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What a run would do, and what that was worked out from.

    `rehearsed_users` is the most that a task's rehearsal had. `currency` is that of the prices,
    None where none were given; `max_cost` is what the run may spend.
    """

    stages: tuple[StageForecast, ...]
    rehearsed_users: int
    assumptions: tuple[str, ...]
    currency: str | None = None
    max_cost: float | None = None


@dataclass
class _Asked:
    """What one role of one stage was asked in the rehearsal."""

    calls: int = 0
    characters: int = 0
    completion: int = 0
    first: tuple[Message, ...] = ()


@dataclass(frozen=True)
class _Users:
    """Whom the items of a stage are about, in the whole data and in the rehearsal.

    `items` are how many there will be and `bounds` the calls that they make at least and at most,
    None where that depends on answers.
    """

    everyone: frozenset[str]
    rehearsed: frozenset[str]
    items: int | None = None
    bounds: tuple[int, int] | None = None

    @staticmethod
    def of_all(stages: Sequence[_Users]) -> _Users:
        """Those of several stages together."""
        return _Users(
            frozenset().union(*(users.everyone for users in stages)),
            frozenset().union(*(users.rehearsed for users in stages)),
        )


@dataclass(eq=False)
class _Understudy(Model):
    """Stands in for every model of a task: notes what it is asked, answers as the baseline does."""

    plugins: Plugins
    identity: Identity = field(
        default_factory=lambda: Identity(kind="rehearsal", name="rehearsal", scope="call")
    )
    concurrency: int = 1
    asked: dict[tuple[str, str], _Asked] = field(default_factory=lambda: defaultdict(_Asked))

    async def ask(self, request: Request) -> Reply:
        topic = request.topic
        assert topic is not None, "the desk names the topic of every request"
        asked = self.asked[topic.stage, topic.role]
        asked.calls += 1
        asked.characters += sum(len(message.content) for message in request.messages)
        asked.completion += request.sampling.max_tokens
        asked.first = asked.first or request.messages
        try:
            found = self.plugins.respondent(topic.benchmark, topic.prompt, topic.role, "default")
        except PluginError as error:
            raise CallError("no_respondent", str(error)) from error
        draw = Random(stable_int("rehearsal", request.seed, asked.calls))
        return Reply(text=found.factory()(topic.variables, draw))


@dataclass
class _UnderstudyJudge:
    """Has the judge's prompt made and counted for each model, then decides by word overlap."""

    through_model: Judge
    by_rule: Judge
    models: tuple[_Understudy, ...]
    times: int
    name: str = "rehearsal"
    version: int = 1

    async def judge(self, question: Question, ask: Ask) -> Verdict | NoVerdict:
        for _ in range(self.times):
            await self.through_model.judge(question, ask)
        return await self.by_rule.judge(question, ask)


async def rehearse(settings: RunSettings, plugins: Plugins) -> Forecast:
    """What a run of these settings would ask, task by task."""
    whole = prepare(settings, plugins)
    refuse_unpriced(whole)
    few = msgspec.structs.replace(settings, limit=min(REHEARSED, settings.limit or REHEARSED))
    small = with_data_of(whole, few, plugins)
    stages: list[StageForecast] = []
    rehearsed = 0
    for full, part in zip(whole.tasks, small.tasks, strict=True):
        if full.repeat > 1:
            stages += _as_before(stages, full)
            continue
        forecasts, seen = await _rehearse_task(full, part, plugins)
        stages += forecasts
        rehearsed = max(rehearsed, seen)
    return Forecast(
        stages=tuple(stages),
        rehearsed_users=rehearsed,
        assumptions=(
            "every answer read at once: whatever has to be asked again comes on top of these calls",
            f"about {CHARACTERS_A_TOKEN} characters a token",
            "items and calls of later stages as many a user as baseline respondents made them for "
            f"{rehearsed} users",
            *_spread(stages),
            "completions as long as they may get",
            "nothing from the store: what it can answer costs no call",
            *(ASSUMPTIONS if settings.prices is not None else ()),
        ),
        currency=settings.prices.currency if settings.prices is not None else None,
        max_cost=settings.budget.cost,
    )


def _spread(stages: Sequence[StageForecast]) -> Iterator[str]:
    """How far the rehearsed users lie apart, where they do: so rough is what they stand for."""
    apart = [
        f"{each.task}/{each.stage} {each.a_user[0]} to {each.a_user[1]}"
        for each in stages
        if each.a_user is not None
        and each.a_user[0] < each.a_user[1]
        and task_and_repeat(each.task)[1] == 1
    ]
    if apart:
        yield f"these users differ, so that it is rough; items of one: {', '.join(apart)}"


def _as_before(stages: Sequence[StageForecast], repeat: PreparedTask) -> list[StageForecast]:
    """The forecasts of a task's repeat: those of its first, since the same is asked."""
    name, _ = task_and_repeat(repeat.task.name)
    first = [each for each in stages if each.task == name]
    return [msgspec.structs.replace(each, task=repeat.task.name) for each in first]


async def _rehearse_task(
    full: PreparedTask, part: PreparedTask, plugins: Plugins
) -> tuple[list[StageForecast], int]:
    """The forecasts of its stages, and how many users they were worked out from."""
    understudy = _Understudy(plugins)
    contexts = _cast(part, understudy, plugins)
    with tempfile.TemporaryDirectory() as folder:

        def journals(number: int, name: str) -> Path:
            return Path(folder) / f"{number}-{name}"

        await _run(stage_runs(part, contexts, journals))
        for context in contexts:
            _raise_prompt_errors(context, journals)
        rehearsed = {
            context.stage.name: [record.item for record in records_of(context, journals)]
            for context in contexts
        }
    users = _users(full, contexts, rehearsed)
    forecasts = _forecast(full, contexts, rehearsed, users=users, understudy=understudy)
    return forecasts, max((len(each.rehearsed) for each in users.values()), default=0)


def _cast(
    part: PreparedTask, understudy: _Understudy, plugins: Plugins
) -> tuple[StageContext, ...]:
    lexical = plugins.judge("lexical").factory(JudgeParts())
    through_model = plugins.judge("llm").factory(JudgeParts(model=understudy))
    bindings = {}
    for role, binding in part.bindings.items():
        if not binding.models:
            bindings[role] = binding
            continue
        judge = binding.judge and _UnderstudyJudge(
            through_model, lexical, (understudy,), times=len(binding.models)
        )
        bindings[role] = Binding(role=role, label=binding.label, model=understudy, judge=judge)
    return replace(part, bindings=bindings).contexts("rehearsal")


async def _run(runs: Sequence[StageRun]) -> None:
    client = Client(store=None, run_id="rehearsal")
    everything = dict.fromkeys(FailureLimits.__struct_fields__, 1.0)
    executor = LocalExecutor(
        plan=Plan(runs=runs, resource=lambda model: None),
        client=client,
        memo=Memory(None),
        settings=LocalSettings(limits=everything),
        on_stage_start=lambda run: None,
        on_stage_end=lambda run: None,
    )
    await executor.run()


def _raise_prompt_errors(context: StageContext, journals: Journals) -> None:
    """Raise PromptError where a prompt of the stage could not be made: it is what is looked for."""
    for record in records_of(context, journals):
        outcome = record.outcome
        if isinstance(outcome, Broken) and outcome.cause == PromptError.__name__:
            raise PromptError(
                "a prompt of this stage cannot be made",
                where=f"{context.task.name}/{context.stage.name}",
                found=problem_in(outcome.detail),
            )


def _users(
    full: PreparedTask,
    contexts: Sequence[StageContext],
    rehearsed: Mapping[str, Sequence[Item]],
) -> dict[str, _Users]:
    """By stage whom its items are about.

    A later stage is about the users of those stages before it that it shares some with: one that
    has an item for all together tells nothing of how many a user there will be.
    """
    users: dict[str, _Users] = {}
    for context in contexts:
        stage = context.stage
        seen = frozenset(item.user for item in rehearsed[stage.name])
        before = [users[name] for name in stage.after if name in users]
        if before:
            users[stage.name] = _Users.of_all(
                [each for each in before if each.rehearsed & seen] or before
            )
        else:
            everything = list(stage.items({}, full.data, context.options))
            users[stage.name] = _Users(
                frozenset(item.user for item in everything),
                seen,
                items=len(everything),
                bounds=_bounds(context, everything),
            )
    return users


def _forecast(
    full: PreparedTask,
    contexts: Sequence[StageContext],
    rehearsed: Mapping[str, Sequence[Item]],
    *,
    users: Mapping[str, _Users],
    understudy: _Understudy,
) -> list[StageForecast]:
    forecasts = []
    for context in contexts:
        stage = context.stage
        whom, seen = users[stage.name], len(rehearsed[stage.name])
        bounds = whom.bounds
        items = whom.items
        if items is None:
            items = _scaled(seen, len(whom.everyone), len(whom.rehearsed))
        if bounds is None:
            least, most = _bounds(context, rehearsed[stage.name])
            bounds = _scaled(least, items, seen), _scaled(most, items, seen)
        # A judge that is several makes so many calls of one.
        models = [len(full.bindings[role].models) for role in (*stage.roles, *stage.judges)]
        asked = [many for many in models if many]
        bounds = bounds[0] * min(asked, default=0), bounds[1] * max(asked, default=0)
        roles = tuple(
            _role_forecast(
                role,
                full.bindings[role].label,
                understudy.asked[stage.name, role],
                scale=(items, seen),
            )
            for role in (*stage.roles, *stage.judges)
            if full.bindings[role].models
        )
        forecasts.append(
            StageForecast(
                task=full.task.name,
                stage=stage.name,
                items=items,
                exact=whom.items is not None,
                least_calls=bounds[0],
                most_calls=bounds[1],
                roles=_priced(full, _read_at_once(roles, bounds[1]), bounds),
                a_user=None if whom.items is not None else _a_user(rehearsed[stage.name], whom),
            )
        )
    return forecasts


def _a_user(items: Iterable[Item], whom: _Users) -> tuple[int, int] | None:
    """The fewest and the most items of one rehearsed user; None where none is a user's own."""
    of = Counter(item.user for item in items)
    many = [of[user] for user in whom.rehearsed]
    return (min(many), max(many)) if any(many) else None


def _bounds(context: StageContext, items: Iterable[Item]) -> tuple[int, int]:
    """The calls that these items make at least and at most."""
    least = most = 0
    for item in items:
        calls = context.calls(item)
        least += calls[0]
        most += calls[1]
    return least, most


def _role_forecast(role: str, label: str, asked: _Asked, *, scale: tuple[int, int]) -> RoleForecast:
    return RoleForecast(
        role=role,
        label=label,
        calls=_scaled(asked.calls, *scale),
        prompt_tokens=_scaled(asked.characters // CHARACTERS_A_TOKEN, *scale),
        most_completion_tokens=_scaled(asked.completion, *scale),
        first_prompt=asked.first,
    )


def _read_at_once(roles: tuple[RoleForecast, ...], most: int) -> tuple[RoleForecast, ...]:
    """The roles without what was asked again, as those who stand in leave more out than models."""
    calls = sum(role.calls for role in roles)
    if calls <= most:
        return roles
    return tuple(
        msgspec.structs.replace(
            role,
            calls=_scaled(role.calls, most, calls),
            prompt_tokens=_scaled(role.prompt_tokens, most, calls),
            most_completion_tokens=_scaled(role.most_completion_tokens, most, calls),
        )
        for role in roles
    )


def _priced(
    full: PreparedTask, roles: tuple[RoleForecast, ...], bounds: tuple[int, int]
) -> tuple[RoleForecast, ...]:
    """The roles of a stage with their costs, where prices were given.

    The bounds are the stage's: each role has the share of them that it had in the rehearsal.
    """
    prices = full.settings.prices
    if prices is None:
        return roles
    all_calls = sum(role.calls for role in roles)
    priced = []
    for role in roles:
        models = full.bindings[role.role].models
        part = role.calls / all_calls if all_calls else 1.0
        costs = [
            expected_cost(
                price_of(model.identity, prices),
                calls=role.calls,
                prompt_tokens=role.prompt_tokens,
                completion_tokens=role.most_completion_tokens,
                bounds=(bounds[0] * part, bounds[1] * part),
            )
            for model in models
        ]
        known = [cost for cost in costs if cost is not None]
        # Each of a judge that is several is asked as much of what all of them are.
        cost = shared(known) if len(known) == len(costs) else None
        priced.append(msgspec.structs.replace(role, cost=cost))
    return tuple(priced)


def _scaled(seen: int, whole: int, part: int) -> int:
    return round(seen * whole / part) if part else 0
