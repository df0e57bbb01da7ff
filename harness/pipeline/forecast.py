"""Forecasts what a run would ask, by a rehearsal without models: first prompts and counts.

Baseline respondents take the models' places, and the real stages run over a few users. The counts
are extrapolated to the whole data.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
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
from harness.pipeline.desk import StageContext
from harness.pipeline.executors.execute import Executor
from harness.pipeline.executors.lanes import Lanes
from harness.pipeline.executors.sharded import machines_of
from harness.pipeline.memos import CopiedMemory
from harness.pipeline.plan import Journals, Plan, records_of, stage_runs
from harness.pipeline.preparation import Prepared, PreparedTask, check_prices, prepare, with_data_of
from harness.pipeline.settings import FailureLimits, RunSettings
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.registry import Plugins


class ExpectedCost(msgspec.Struct, frozen=True, kw_only=True):
    """The expected cost of one role of one stage.

    `at_most` assumes the expected calls, with each completion at its token limit. `least` assumes
    the fewest calls without completions, `most` the most calls with completions at the limit.
    """

    at_most: float
    least: float
    most: float


def expected_cost(
    price: Price | None, role: RoleForecast, *, least: float, most: float
) -> ExpectedCost | None:
    """The expected cost of a role's calls at a price, with the fewest and the most calls.

    None without a price, or where no call shows how long prompts are.
    """
    calls, prompt = role.calls, role.prompt_tokens
    if not most and not calls:
        return ExpectedCost(at_most=0.0, least=0.0, most=0.0)
    if price is None or not calls:
        return None
    at_most = price.cost(prompt=prompt, cached=0, completion=role.most_completion_tokens)
    cheapest = price.input if price.cached is None else min(price.input, price.cached)
    prompts = Price(input=cheapest, output=0.0).cost(prompt=prompt, cached=0, completion=0)
    return ExpectedCost(at_most=at_most, least=prompts * least / calls, most=at_most * most / calls)


def all_together(costs: Sequence[ExpectedCost], *, shared_by: int = 1) -> ExpectedCost:
    """The sum of several expected costs, divided by a number of models that share the calls."""
    return ExpectedCost(
        at_most=sum(cost.at_most for cost in costs) / shared_by,
        least=sum(cost.least for cost in costs) / shared_by,
        most=sum(cost.most for cost in costs) / shared_by,
    )


REHEARSED = 5

CHARACTERS_A_TOKEN = 4
"""A rough average of English prose; listed with the assumptions of every forecast."""


class RoleForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of one role of one stage.

    `label` is the name of the model or judge. `most_completion_tokens` assumes every completion at
    its token limit. `writes` is false for models that look answers up: they have no completions,
    and are in no sum. `first_prompt` is empty where the rehearsal did not reach the stage. `cost`
    is None without prices, or where a model's price is not known.
    """

    role: str
    label: str
    calls: int
    prompt_tokens: int
    most_completion_tokens: int
    writes: bool = True
    first_prompt: tuple[Message, ...] = ()
    cost: ExpectedCost | None = None


class StageForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The items and calls of one stage of a task.

    `exact` is true where the items were counted in the data, and false where they were extrapolated
    from the items per user in the rehearsal; `items` is None where the rehearsal reached none.
    `a_user` holds the fewest and the most items of one rehearsed user, or None where items are not
    about single users. If every answer can be read at once, the calls of all roles together lie
    between `least_calls` and `most_calls`.
    """

    task: str
    stage: str
    items: int | None
    exact: bool
    least_calls: int
    most_calls: int
    roles: tuple[RoleForecast, ...]
    a_user: tuple[int, int] | None = None


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """The stages of a run with their calls and costs, and the assumptions behind these.

    `rehearsed_users` is the largest number of users in a task's rehearsal. `currency` is the
    prices' currency, None without prices. `max_cost` is the run's budget of money.
    """

    stages: tuple[StageForecast, ...]
    rehearsed_users: int
    assumptions: tuple[str, ...]
    currency: str | None = None
    max_cost: float | None = None


@dataclass
class _Asked:
    calls: int = 0
    characters: int = 0
    completion: int = 0
    first: tuple[Message, ...] = ()


@dataclass(frozen=True)
class _Users:
    """The users of a stage's items, in the whole data and in the rehearsal.

    `items` is the number of items, with the fewest and the most calls that they make; None where
    the items depend on answers.
    """

    everyone: frozenset[str]
    rehearsed: frozenset[str]
    items: tuple[int, int, int] | None = None


@dataclass(eq=False)
class _RecordingBaseline(Model):
    """Takes the place of every model of a task: counts the requests, answers as the baseline."""

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
        asked.completion += request.sampling.limit
        asked.first = asked.first or request.messages
        try:
            found = self.plugins.respondent(topic.benchmark, topic.prompt, topic.role, "default")
        except PluginError as error:
            raise CallError("no_respondent", str(error)) from error
        draw = Random(stable_int("rehearsal", request.seed, asked.calls))
        return Reply(text=found.factory()(topic.variables, draw))


@dataclass
class _RecordingJudge:
    """Renders and counts the judge's prompt for each model, then decides by word overlap."""

    through_model: Judge
    by_rule: Judge
    models: tuple[_RecordingBaseline, ...]
    times: int
    name: str = "rehearsal"
    version: int = 1

    async def judge(self, question: Question, ask: Ask) -> Verdict | NoVerdict:
        for _ in range(self.times):
            await self.through_model.judge(question, ask)
        return await self.by_rule.judge(question, ask)


async def rehearse(
    settings: RunSettings, plugins: Plugins, prepared: Prepared | None = None
) -> Forecast:
    """The forecast of a run with these settings; no model is asked."""
    machines_of(settings, plugins)
    whole = prepared or prepare(settings, plugins)
    check_prices(whole)
    few = msgspec.structs.replace(settings, limit=min(REHEARSED, settings.limit or REHEARSED))
    small = with_data_of(whole, few, plugins)
    stages: list[StageForecast] = []
    rehearsed = 0
    for full, part in zip(whole.tasks, small.tasks, strict=True):
        if full.repeat > 1:
            name, _ = task_and_repeat(full.task.name)  # the repeat asks the same as the first
            first = [each for each in stages if each.task == name]
            stages += [msgspec.structs.replace(each, task=full.task.name) for each in first]
            continue
        forecasts, seen = await _rehearse_task(full, part, plugins)
        stages += forecasts
        rehearsed = max(rehearsed, seen)
    live = [
        f"{each.task.name}/{stage.name}"
        for each in whole.tasks
        for stage in each.stages
        if stage.sequential
        and any(one.patient for role in stage.roles for one in each.bindings[role].models)
    ]
    costs = (
        "`cost, at most`: the expected calls, each completion at its token limit",
        "`cost bounds`: from the fewest calls without completions to the most calls at the limit",
    )
    in_turn = f"asked live, not in batches, one question after the other: {', '.join(live)}"
    return Forecast(
        stages=tuple(stages),
        rehearsed_users=rehearsed,
        assumptions=(
            "every answer can be read at once: further tries come on top of these calls",
            f"about {CHARACTERS_A_TOKEN} characters per token",
            "later stages have as many items and calls per user as with baseline respondents for "
            f"{rehearsed} users",
            *([in_turn] if live else ()),
            "every completion reaches its token limit",
            "no call is answered from the store, although answered calls cost nothing",
            *(costs if settings.prices is not None else ()),
        ),
        currency=settings.prices.currency if settings.prices is not None else None,
        max_cost=settings.budget.cost,
    )


async def _rehearse_task(
    full: PreparedTask, part: PreparedTask, plugins: Plugins
) -> tuple[list[StageForecast], int]:
    """The forecasts of a task's stages, and the number of users in the rehearsal."""
    baseline = _RecordingBaseline(plugins)
    contexts = _bind_baselines(part, baseline, plugins)
    with tempfile.TemporaryDirectory() as folder:

        def journals(number: int, name: str) -> Path:
            return Path(folder) / f"{number}-{name}"

        client = Client(store=None, run_id="rehearsal")
        executor = Executor(
            plan=Plan(runs=stage_runs(part, contexts, journals), resource=lambda model: None),
            make_workers=partial(Lanes, client=client, memo=CopiedMemory()),
            limits=dict.fromkeys(FailureLimits.__struct_fields__, 1.0),
        )
        await executor.run()
        rehearsed = {context.stage.name: _items_of(context, journals) for context in contexts}
    users: dict[str, _Users] = {}
    forecasts = []
    for context in contexts:
        items = rehearsed[context.stage.name]
        users[context.stage.name] = _users(full, context, items, users)
        forecasts.append(_forecast(full, context, items, users[context.stage.name], baseline))
    return forecasts, max((len(each.rehearsed) for each in users.values()), default=0)


def _bind_baselines(
    part: PreparedTask, baseline: _RecordingBaseline, plugins: Plugins
) -> tuple[StageContext, ...]:
    lexical = plugins.judge("lexical").factory(JudgeParts())
    thoughtful = replace(baseline)
    bindings = {}
    for role, binding in part.bindings.items():
        if not binding.models:
            bindings[role] = binding
            continue
        model = thoughtful if any(one.thinks() for one in binding.models) else baseline
        through_model = plugins.judge("llm").factory(JudgeParts(model=model))
        judge = binding.judge and _RecordingJudge(
            through_model, lexical, (model,), times=len(binding.models)
        )
        bindings[role] = replace(binding, model=model, judge=judge, members=())
    return replace(part, bindings=bindings).contexts("rehearsal", (thoughtful,))


def _items_of(context: StageContext, journals: Journals) -> list[Item]:
    """The items of a stage's records.

    Raises PromptError if a prompt of the stage could not be rendered, and PluginError if the code
    of the stage broke for all items.
    """
    where = context.label
    records = list(records_of(context, journals))
    broken = [one.outcome for one in records if isinstance(one.outcome, Broken)]
    for outcome in broken:
        if outcome.cause == PromptError.__name__:
            raise PromptError(
                "a prompt of this stage cannot be rendered",
                where=where,
                found=problem_in(outcome.detail),
            )
    if broken and len(broken) == len(records):
        first = broken[0].detail
        place = re.findall(r'File "(.*)", line (\d+)', first)
        raise PluginError(
            "the code of this stage breaks for every item of the rehearsal",
            where=where,
            found=problem_in(first) + (f", at {':'.join(place[-1])}" if place else ""),
            expected="a value or a failure for each item",
            hint="mend the code that the line names, or the rows that it reads",
        )
    return [one.item for one in records]


def _users(
    full: PreparedTask, context: StageContext, items: Sequence[Item], users: Mapping[str, _Users]
) -> _Users:
    """The users of a stage, whose rehearsed items are given.

    A later stage has the users of those earlier stages with which it shares a user: an earlier
    stage with one item for all users says nothing about the items per user.
    """
    stage, seen = context.stage, frozenset(item.user for item in items)
    before = [users[name] for name in stage.after if name in users]
    if before:
        shared = [each for each in before if each.rehearsed & seen] or before
        return _Users(
            frozenset().union(*(each.everyone for each in shared)),
            frozenset().union(*(each.rehearsed for each in shared)),
        )
    everything = list(stage.items({}, full.data, context.options))
    counts = (len(everything), *_call_bounds(context, everything))
    return _Users(frozenset(item.user for item in everything), seen, items=counts)


def _forecast(
    full: PreparedTask,
    context: StageContext,
    rehearsed: Sequence[Item],
    stage_users: _Users,
    baseline: _RecordingBaseline,
) -> StageForecast:
    stage, seen = context.stage, len(rehearsed)
    exact, a_user = stage_users.items is not None, None
    if stage_users.items is not None:
        items, least, most = stage_users.items
    else:
        items = _scale(seen, len(stage_users.everyone), len(stage_users.rehearsed))
        bounds = _call_bounds(context, rehearsed)
        least, most = (_scale(calls, items, seen) for calls in bounds)
        of = Counter(item.user for item in rehearsed)
        many = [of[user] for user in stage_users.rehearsed]
        a_user = (min(many), max(many)) if any(many) else None
    bindings = (full.bindings[role] for role in (*stage.roles, *stage.judges))
    asking = [binding for binding in bindings if binding.models]
    # A panel makes one call for each of its models.
    least *= min((len(binding.models) for binding in asking), default=0)
    most *= max((len(binding.models) for binding in asking), default=0)
    roles = []
    for binding in asking:
        asked = baseline.asked[stage.name, binding.role]
        writes = any(model.writes for model in binding.models)
        role = RoleForecast(
            role=binding.role,
            label=binding.shown or binding.label,
            calls=asked.calls,
            prompt_tokens=asked.characters // CHARACTERS_A_TOKEN,
            most_completion_tokens=asked.completion if writes else 0,
            writes=writes,
            first_prompt=asked.first,
        )
        roles.append(_scaled_role(role, items, seen))
    calls = sum(role.calls for role in roles)
    if calls > most:
        # Without further tries, since baselines fail to answer more often than models.
        roles = [_scaled_role(role, most, calls) for role in roles]
    return StageForecast(
        task=full.task.name,
        stage=stage.name,
        items=items if seen or exact or not stage_users.everyone else None,
        exact=exact,
        least_calls=least,
        most_calls=most,
        roles=_with_costs(full, roles, (least, most)),
        a_user=a_user,
    )


def _call_bounds(context: StageContext, items: Iterable[Item]) -> tuple[int, int]:
    calls = [context.calls(item) for item in items]
    return sum(least for least, _ in calls), sum(most for _, most in calls)


def _scaled_role(role: RoleForecast, whole: int, part: int) -> RoleForecast:
    return msgspec.structs.replace(
        role,
        calls=_scale(role.calls, whole, part),
        prompt_tokens=_scale(role.prompt_tokens, whole, part),
        most_completion_tokens=_scale(role.most_completion_tokens, whole, part),
    )


def _with_costs(
    full: PreparedTask, roles: Sequence[RoleForecast], bounds: tuple[int, int]
) -> tuple[RoleForecast, ...]:
    """The roles of a stage with their costs, where prices were given.

    Each role gets the share of the stage's bounds that it had in the rehearsal.
    """
    prices = full.settings.prices
    if prices is None:
        return tuple(roles)
    all_calls = sum(role.calls for role in roles)
    priced = []
    for role in roles:
        models = full.bindings[role.role].models
        part = role.calls / all_calls if all_calls else 1.0
        least, most = (bound * part for bound in bounds)
        costs = [
            expected_cost(price_of(model.identity, prices), role, least=least, most=most)
            for model in models
        ]
        known = [cost for cost in costs if cost is not None]
        # The calls of a panel are divided evenly among its models.
        cost = all_together(known, shared_by=len(models)) if len(known) == len(models) else None
        priced.append(msgspec.structs.replace(role, cost=cost))
    return tuple(priced)


def _scale(seen: int, whole: int, part: int) -> int:
    return round(seen * whole / part) if part else 0
