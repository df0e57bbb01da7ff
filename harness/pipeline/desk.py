"""What a stage works with: its inputs, and its desk for questions, verdicts and randomness."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from random import Random
from typing import Any, Literal, TypeVar, overload

import msgspec

from harness.base.errors import (
    HarnessError,
    PluginError,
    PromptError,
    TaskError,
    UsageError,
    did_you_mean,
)
from harness.base.hashing import digest, stable_int
from harness.calls.budget import player_name
from harness.calls.client import Answer, Client
from harness.contracts.judge import (
    Classified,
    Classify,
    Judge,
    Question,
    Select,
    Selected,
    Verdict,
    Vote,
)
from harness.contracts.model import Message, Model, Reply, Request, Sampling, Topic
from harness.contracts.outcomes import CallFailed, NoVerdict, Parsed, Unreadable
from harness.contracts.records import CallRecord, Judged
from harness.contracts.stage import CANDIDATE, Calls, Item, Memo, Stage
from harness.contracts.task import Task
from harness.parsing import Reader, split_reasoning
from harness.prompts import Template
from harness.tasks.shapes import Misfit
from harness.tasks.task_schema import short, typed

MEMO_PARTS = ("benchmark", "stage", "version", "prompts", "roles", "fresh", "repeat")
"""The components of a stage's key that enter the keys of its memos."""

REASONING_TOKENS = 4096
"""The tokens that a model which thinks has for its reasoning, unless the task or command says."""


@dataclass(frozen=True, kw_only=True)
class Binding:
    """The model or judge bound to a role. A judge is rule-based, wraps a model, or is a panel.

    `label` is its name in keys and errors, `shown` its label in tables where that differs;
    `members` are the judges of a panel.
    """

    role: str
    label: str
    model: Model | None
    judge: Judge | None = None
    members: tuple[Binding, ...] = ()
    shown: str = ""

    @property
    def models(self) -> tuple[Model, ...]:
        """All models that the role asks."""
        own = () if self.model is None else (self.model,)
        return (*own, *(model for member in self.members for model in member.models))

    @property
    def by_rule(self) -> bool:
        """Whether its model answers by rule and so uses no tokens."""
        return self.model is not None and self.model.identity.scope == "call"

    @property
    def single(self) -> tuple[Binding, ...]:
        """The members of a panel, or the binding itself."""
        return self.members or (self,)

    def key(self, run_id: str) -> dict[str, Any]:
        """The role's part of a stage's key."""
        parts: dict[str, Any] = {}
        if self.judge is not None:
            parts["judge"] = {"name": self.judge.name, "version": self.judge.version}
        if self.model is not None:
            parts["model"] = self.model.identity.key(run_id)
        if self.members:
            parts["members"] = {member.label: member.key(run_id) for member in self.members}
        return parts


def players_of(bindings: Mapping[str, Binding]) -> dict[str, Binding]:
    """The binding of each role, and of each member of a panel under the member's own name."""
    players = dict(bindings)
    for role, binding in bindings.items():
        players |= {player_name(role, one.label): one for one in binding.members}
    return players


class DeclaredOptions:
    """The options that a stage declares, as attributes; any other name raises."""

    def __init__(self, options: msgspec.Struct, stage: Stage) -> None:
        self._stage = stage
        self._values = {name: getattr(options, name) for name in stage.options}
        self.__dict__.update(self._values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise PluginError(
            f"stage {self._stage.name!r} reads an option it does not declare",
            found=name,
            expected=", ".join(self._stage.options) or "no option",
            hint="add it to the stage's `options`: only declared options enter its key",
        )

    def as_json(self) -> dict[str, Any]:
        """The declared options as JSON values."""
        return {name: msgspec.to_builtins(value) for name, value in self._values.items()}


@dataclass(frozen=True, kw_only=True)
class StageContext:
    """A stage with everything that decides its records.

    `number` is its place in the benchmark and `repeat` the run's repeat, both counted from 1.
    `samplings` are those of models that think, and `thinking` are these models.
    """

    task: Task
    benchmark: str
    stage: Stage
    number: int
    options: DeclaredOptions
    bindings: Mapping[str, Binding]
    templates: Mapping[tuple[str, str], Template]
    samplings: Mapping[str, Sampling]
    thinking: frozenset[Model]
    seed: int
    structured: bool
    repeat: int
    components: Mapping[str, Any]
    key: str

    @property
    def label(self) -> str:
        """TASK/STAGE, as counters and messages name it."""
        return f"{self.task.name}/{self.stage.name}"

    @cached_property
    def memo_key(self) -> str:
        """The key of memos: over prompts, roles and versions, but not options and seed."""
        return digest({n: self.components[n] for n in MEMO_PARTS if n in self.components})

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The models that the stage may ask, each once, in the order of its roles."""
        roles = (*self.stage.roles, *self.stage.judges)
        models = (model for role in roles for model in self.bindings[role].models)
        return tuple(dict.fromkeys(map(self.asked, models)))

    def asked(self, model: Model) -> Model:
        """The model that is asked for one of a role."""
        return model.live if self.stage.sequential and model.live is not None else model

    @cached_property
    def by_rule(self) -> frozenset[str]:
        """The names of the players that answer by rule and so use no tokens."""
        players = players_of(self.bindings)
        return frozenset(name for name, binding in players.items() if binding.by_rule)

    def calls(self, item: Item) -> tuple[int, int]:
        """The fewest and the most calls that an item makes, when every answer can be read."""
        given = self.stage.calls
        calls = given if isinstance(given, Calls) else given(item, self.options)
        times = getattr(self.options, calls.times) if calls.times else 1
        return calls.least * times, calls.most * times

    def sampling(self, role: str, model: Model) -> Sampling:
        """How one of the role's models is asked: with tokens for reasoning only if it thinks."""
        whole = self.samplings[role]
        return (
            whole if model in self.thinking else msgspec.structs.replace(whole, reasoning_tokens=0)
        )

    def model(self, role: str) -> Model:
        """The model behind a role of this stage."""
        model = self._binding(role).model
        if model is None:
            raise PluginError(
                f"stage {self.stage.name!r} calls desk.ask with {role!r}, which is no model",
                found=f"{self._binding(role).label}, a judge",
                expected="desk.judge(…) for this role",
            )
        return model

    def judge(self, role: str) -> Judge:
        """The judge behind a role of this stage."""
        judge = self._binding(role).judge
        if judge is None:
            raise PluginError(
                f"stage {self.stage.name!r} calls desk.judge with {role!r}, which is no judge",
                found=self._binding(role).label,
                expected="the role in the stage's `judges`",
            )
        return judge

    def members(self, role: str) -> dict[Model, str]:
        """The member's label for each model of a judge's role; "" unless a panel plays the role."""
        binding = self._binding(role)
        if binding.members:
            return {model: one.label for one in binding.members for model in one.models}
        return dict.fromkeys(binding.models, "")

    def template(self, prompt: str, role: str) -> Template:
        """The template of a prompt for a role; PromptError where none exists."""
        try:
            return self.templates[prompt, role]
        except KeyError:
            raise PromptError(
                f"stage {self.stage.name!r} has no prompt {prompt!r} for the role {role!r}",
                expected=f"prompts/{self.benchmark}/{prompt}.{role}.j2, "
                f"with {prompt!r} in the stage's `prompts`",
            ) from None

    def _binding(self, role: str) -> Binding:
        if role not in (*self.stage.roles, *self.stage.judges):
            raise PluginError(
                f"stage {self.stage.name!r} asks a role it does not declare",
                found=role,
                expected=", ".join((*self.stage.roles, *self.stage.judges)) or "no role",
                hint="add it to the stage's `roles`, or to its `judges` if desk.judge uses it",
            )
        return self.bindings[role]


def sampling_parts(
    binding: Binding, sampling: Sampling, thinking: Collection[Model]
) -> dict[str, Any]:
    """The sampling in a role's part of the key; the reasoning counts if a model of it thinks."""
    parts: dict[str, Any] = msgspec.to_builtins(sampling)
    reasoning = parts.pop("reasoning_tokens")
    for name in {"top_k", "presence_penalty"} - sampling.seldom_set.keys():
        del parts[name]
    thoughtful = [
        one.label for one in binding.single if any(model in thinking for model in one.models)
    ]
    if not thoughtful:
        return {"sampling": parts}
    found: dict[str, Any] = {"sampling": {**parts, "reasoning_tokens": reasoning}}
    return {**found, "thinking": thoughtful} if binding.members else found


def sampling_of(task: Task, stage: Stage, role: str, given: Mapping[str, Any]) -> Sampling:
    """How a role of a stage is asked: as the command, the stage, the role or else the model says.

    `given` is what the command says of the candidate.
    """
    wanted: dict[str, Any] = {"reasoning_tokens": REASONING_TOKENS}
    if role in task.roles:
        wanted.update(task.roles[role].sampling)
    wanted.update(task.stages.get(stage.name, {}).get(role, {}))
    if role == CANDIDATE:
        wanted.update(given)

    def unfit(one: Misfit) -> HarnessError:
        name, unknown = str(one.path[0]), one.kind == "unknown"
        by_command = role == CANDIDATE and name in given
        kind = UsageError if by_command else TaskError
        return kind(
            f"the sampling of role {role!r} in stage {stage.name!r} of {task.name} cannot be used",
            where="--gen_kwargs" if by_command else None,
            found=name if unknown else f"{name}={short(one.found)}",
            expected=f"one of {', '.join(one.known)}" if unknown else one.expected,
            hint=did_you_mean(name, one.known) if unknown else None,
        )

    return typed(wanted, Sampling, unfit)


T = TypeVar("T")

REPEATS_APART = 1_000_000
"""The distance between the first question number of one repeat of a run and of the next."""

QUICK = 2_000
"""Characters of a text that is read at once; a longer one is read in a thread, since repairing it
may take a second."""

_READING = ThreadPoolExecutor(1, "reader")
"""One thread: several would only take turns, and hold up the event loop longer."""

QUOTED = 2000
"""Characters of an unreadable answer that a correction quotes: half from each end."""


class ItemDesk:
    """One item's `Desk`. `calls` and `judged` fill with what was asked and what judges decided.

    The `asker` is the same whenever the item is worked, until a record of it is made.
    """

    def __init__(
        self,
        *,
        item: Item,
        context: StageContext,
        client: Client,
        memo: Callable[[str, str], Memo],
        refresh: bool = False,
        asker: str = "",
    ) -> None:
        self._item = item
        self._context = context
        self._client = client
        self._memo = memo
        self._refresh = refresh
        self._asker = asker
        self.calls: list[CallRecord] = []
        self.judged: list[Judged] = []

    @property
    def options(self) -> Any:
        """The options the stage declares; reading any other raises."""
        return self._context.options

    @cached_property
    def random(self) -> Random:
        """A generator seeded for this item: the same numbers wherever and whenever it is worked."""
        return Random(stable_int(self._context.seed, self._context.stage.name, self._item.id))

    @property
    def log(self) -> logging.Logger:
        """The stage's logger."""
        return logging.getLogger(f"harness.{self._context.benchmark}.{self._context.stage.name}")

    def memo(self, name: str) -> Memo:
        """A table shared by runs of this stage with equal version, prompts, models and sampling."""
        return self._memo(f"{self._context.memo_key}:{name}", self._asker)

    async def ask(
        self,
        role: str,
        prompt: str,
        variables: Mapping[str, Any],
        *,
        read: Reader[T],
        tries: int = 1,
        repeat: int = 0,
        truncated: Literal["fail", "read"] = "fail",
        corrected: bool = False,
    ) -> Parsed[T] | Unreadable | CallFailed:
        """What the role's model answered, read; asked up to `tries` times while unreadable."""
        call = _Call(role=role, model=self._context.model(role))
        return await self._ask(
            call, prompt, variables, read=read, tries=tries, repeat=repeat, truncated=truncated,
            corrected=corrected, into=self.calls,
        )  # fmt: skip

    async def _ask(
        self,
        call: _Call,
        prompt: str,
        variables: Mapping[str, Any],
        *,
        read: Reader[T],
        tries: int,
        repeat: int = 0,
        truncated: Literal["fail", "read"] = "fail",
        corrected: bool,
        into: list[CallRecord],
    ) -> Parsed[T] | Unreadable | CallFailed:
        """Like `ask`, for a given model; every call is appended to `into`."""
        model, role = call.model, call.role
        # A model that answers by rule takes no schema.
        asks_schema = self._context.structured and model.identity.scope != "call"
        messages = self._context.template(prompt, role).render(variables)
        request = Request(
            messages=messages,
            sampling=self._context.sampling(role, model),
            seed=self._context.seed,
            schema=read.schema if asks_schema else None,
            topic=Topic(
                benchmark=self._context.benchmark,
                stage=self._context.stage.name,
                role=role,
                prompt=prompt,
                variables=variables,
            ),
        )
        outcome: Parsed[T] | Unreadable | CallFailed = CallFailed("not_asked")
        first = self._number(repeat * tries, tries)
        for number in range(first, first + tries):
            answer = await self._client.ask(
                self._context.asked(model),
                request,
                repeat=number,
                role=player_name(role, call.member),
                stage=self._context.label,
                refresh=self._refresh,
                asker=self._asker,
            )
            text, thought = _answer_and_reasoning(answer.reply)
            record = partial(
                _record, answer, text, thought, call=call, prompt=prompt, repeat=number,
                request=request,
            )  # fmt: skip
            try:
                outcome = await self._read(
                    answer, text, thought, read, call=call, request=request, truncated=truncated
                )
            except Exception as error:
                into.append(record(Unreadable("reader_failed", repr(error))))
                raise
            into.append(record(outcome))
            reply = answer.reply
            cut = reply is not None and reply.finish == "length"
            # The same question would only be cut again.
            cut_again = cut and request.sampling.temperature <= SURE
            if not isinstance(outcome, Unreadable) or cut_again:
                break
            if corrected and reply is not None:
                turns = _correction(messages, reply, text, outcome)
                request = msgspec.structs.replace(request, messages=(*messages, *turns))
        return outcome

    @overload
    async def judge(self, question: Select, *, role: str = "judge") -> Selected | NoVerdict: ...

    @overload
    async def judge(self, question: Classify, *, role: str = "judge") -> Classified | NoVerdict: ...

    async def judge(self, question: Question, *, role: str = "judge") -> Verdict | NoVerdict:
        """What the role's judge decided."""
        judge = self._context.judge(role)
        asking = _JudgesAsk(self._ask, role, self._context.members(role))
        try:
            verdict = await judge.judge(question, asking)
        finally:
            # In the order of the models and not of the answers.
            self.calls += chain.from_iterable(asking.calls.values())
        if not isinstance(verdict, Verdict | NoVerdict):
            raise PluginError(
                f"the judge {judge.name!r} returned something that is no verdict",
                found=type(verdict).__name__,
                expected="Selected, Classified or NoVerdict",
            )
        if not isinstance(verdict, NoVerdict):
            _check_verdict(question, verdict, judge.name)
        about: dict[str, Any] = {}
        if isinstance(question, Classify):
            about["texts"] = len(question.texts)
        else:
            about["subject"] = question.subject
            numbers = map(str, range(1, len(question.options) + 1))
            about["labels"] = question.labels or tuple(numbers)
        self.judged.append(Judged(
            role=role, prompt=question.prompt, verdict=verdict, votes=tuple(asking.votes), **about
        ))  # fmt: skip
        return verdict

    def _number(self, first: int, tries: int) -> int:
        """The number of the first of some tries, offset by the repeat of the run."""
        if first + tries > REPEATS_APART:
            raise PluginError(
                f"stage {self._context.stage.name!r} asks one question too often",
                found=f"{first + tries:,} times",
                expected=f"at most {REPEATS_APART:,} times: later numbers belong to other repeats",
            )
        return (self._context.repeat - 1) * REPEATS_APART + first

    async def _read(
        self,
        answer: Answer,
        text: str,
        thought: str | None,
        read: Reader[T],
        *,
        call: _Call,
        request: Request,
        truncated: str,
    ) -> Parsed[T] | Unreadable | CallFailed:
        if answer.reply is None:
            return answer.failure or CallFailed("unknown")
        reply = answer.reply
        if reply.finish == "refused":
            return Unreadable("refused", shorten(reply.text))
        if reply.finish == "length" and (truncated == "fail" or not text.strip()):
            detail = why_cut(
                reply, text, thought, sampling=request.sampling, model=call.model, role=call.role
            )
            return Unreadable("truncated", detail)
        if len(text) > QUICK:
            loop = asyncio.get_running_loop()
            outcome = await loop.run_in_executor(_READING, _read_text, read, text)
        else:
            outcome = read(text)
        if reply.finish == "length" and isinstance(outcome, Parsed):
            return msgspec.structs.replace(outcome, truncated=True)
        return outcome


@dataclass(frozen=True, kw_only=True)
class _Call:
    """The model that is asked: its role, and the member's name where a panel plays the role."""

    role: str
    model: Model
    member: str = ""


class _JudgesAsk:
    """The `ask` of a judge: asks only the judge's own models, and keeps the calls and the votes."""

    def __init__(self, ask: Any, role: str, members: Mapping[Model, str]) -> None:
        self._ask = ask
        self._role = role
        self._members = members
        self.calls: dict[Model, list[CallRecord]] = {model: [] for model in members}
        self.votes: list[Vote] = []

    async def __call__(
        self,
        model: Model,
        prompt: str,
        variables: Mapping[str, Any],
        *,
        read: Reader[T],
        tries: int,
        corrected: bool = False,
    ) -> Parsed[T] | Unreadable | CallFailed:
        if model not in self._members:
            raise PluginError(
                f"the judge of the role {self._role!r} asks a model that it was not given",
                found=f"{model.identity.kind}:{model.identity.name}",
                expected="one of the models in its JudgeParts",
            )
        call = _Call(role=self._role, model=model, member=self._members[model])
        outcome: Parsed[T] | Unreadable | CallFailed = await self._ask(
            call, prompt, variables, read=read, tries=tries, corrected=corrected,
            into=self.calls[model],
        )  # fmt: skip
        return outcome

    def vote(self, vote: Vote) -> None:
        self.votes.append(vote)


def _read_text(read: Reader[T], text: str) -> Parsed[T] | Unreadable:
    try:
        return read(text)
    except StopIteration as error:
        raise RuntimeError("the reader raised StopIteration") from error  # no future can hold it


def _check_verdict(question: Question, verdict: Verdict, judge: str) -> None:
    if isinstance(question, Classify):
        texts, labels = len(question.texts), (None, *question.labels)
        fits = (
            isinstance(verdict, Classified)
            and len(verdict.labels) == texts
            and all(label in labels for label in verdict.labels)
        )
        expected = (
            f"Classified(labels=…) with one label for each of the {texts} texts: None, or one of "
            + ", ".join(question.labels)
        )
    else:
        places = range(len(question.options))
        fits = isinstance(verdict, Selected) and all(one in places for one in verdict.chosen)
        expected = f"Selected(chosen=…) with positions of the {len(places)} options, counted from 0"
    if not fits:
        raise PluginError(
            f"the judge {judge!r} returned a verdict that does not answer its question",
            found=repr(verdict),
            expected=expected,
        )


def _answer_and_reasoning(reply: Reply | None) -> tuple[str, str | None]:
    if reply is None:
        return "", None
    text, thought = split_reasoning(reply.text)
    return text, "\n".join(part for part in (reply.reasoning, thought) if part) or None


def _correction(
    asked: Sequence[Message], reply: Reply, text: str, failure: Unreadable
) -> tuple[Message, ...]:
    """The turns that show an unreadable answer and its problem; none to repeat the same question.

    The question is repeated after an answer that was empty, refused or cut, since its form was not
    the problem, and where the prompt begins the answer, since no turn can follow that.
    """
    if not text.strip() or reply.finish in ("refused", "length") or asked[-1].role == "assistant":
        return ()
    if len(text) > QUOTED:
        text = f"{text[: QUOTED // 2]}\n…\n{text[-QUOTED // 2 :]}"
    wrong = ": ".join(part for part in (failure.cause, failure.detail) if part)
    again = "Answer again, in the form asked for and with nothing else."
    return Message("assistant", text), Message("user", f"That cannot be used ({wrong}). {again}")


def _record(
    answer: Answer,
    text: str,
    thought: str | None,
    outcome: Parsed[Any] | Unreadable | CallFailed,
    *,
    call: _Call,
    prompt: str,
    repeat: int,
    request: Request,
) -> CallRecord:
    reply = answer.reply
    return CallRecord(
        role=call.role,
        member=call.member,
        prompt=prompt,
        key=answer.key,
        repeat=repeat,
        source=answer.source,
        messages=request.messages,
        text=text if reply else None,
        reasoning=thought,
        finish=reply.finish if reply else None,
        usage=reply.usage if reply else None,
        wasted=answer.wasted,
        untold=answer.unreported,
        attempts=answer.attempts,
        seconds=round(answer.seconds, 4),
        rung=outcome.rung if isinstance(outcome, Parsed) else None,
        asked_schema=request.schema is not None,
        logprobs=reply.logprobs if reply else None,
        failure=None if isinstance(outcome, Parsed) else outcome,
    )


SURE = 0.1
"""The temperature up to which a question that was cut would be cut again."""

SHOWN = 80
"""Characters of an answer in a failure."""


def why_cut(
    reply: Reply, text: str, thought: str | None, *, sampling: Sampling, model: Model, role: str
) -> str:
    """The detail of a cut reply's failure: its end, the limit that cut it, and the cures.

    `text` is the answer without its reasoning, `thought` the reasoning.
    """
    end, answered = f"ends in {shorten(text[-SHOWN:])!r}", bool(text.strip())
    amount = f"{len(thought):,} characters" if thought else None
    if reply.usage is not None and reply.usage.reasoning_tokens:
        amount = f"{reply.usage.reasoning_tokens:,} tokens"
    limit = f"the limit of {sampling.limit:,} tokens (max_tokens"
    if sampling.reasoning_tokens:
        limit += f" {sampling.max_tokens:,}, reasoning_tokens {sampling.reasoning_tokens:,}"
    limit += ")"
    thinks: bool | None = amount is not None
    if amount is None and answered:
        spent, thinks = f"{end} at {limit}", None
    elif amount is None:
        spent = f"an empty answer at {limit}: the model may have spent it on thinking unseen"
    elif answered:
        spent = f"{end}, after {amount} of thinking at {limit}"
    else:
        spent = f"{amount} of thinking spent {limit}"
    return f"{spent}; {_cures(thinks, sampling=sampling, model=model, role=role)}"


def _cures(thinks: bool | None, *, sampling: Sampling, model: Model, role: str) -> str:
    """The option for a larger limit, and the arguments that give room to think or end thinking.

    Where the reply shows thinking, the argument for it is better than `max_tokens`, which would be
    one limit for all tasks. `thinks` is None if the reply holds an answer and no sign of thinking.
    """
    if sampling.reasoning_tokens:
        larger = f"reasoning_tokens={2 * sampling.reasoning_tokens}"
    else:
        larger = f"max_tokens={sampling.max_tokens + REASONING_TOKENS}"
    place, allow = "among --model_args:", f"allow more (--gen_kwargs {larger})"
    if role != CANDIDATE:
        place = f"in the SPEC of the role {role}:"
        allow = f"allow more (--set roles.{role}.sampling.{larger})"
    room = f"{REASONING_TOKENS:,} tokens for thinking ({place} thinking=true)"
    may_have_room = model.asked_if_thinking and not sampling.reasoning_tokens
    if thinks is None:
        return f"{allow}; if it thinks, allow {room}" if may_have_room else allow
    if may_have_room:
        allow = f"allow {room}" if thinks else f"{allow}, or {room}"
    if model.thinking_switch is None:
        return allow
    return f"{allow}, or switch thinking off ({place} {model.thinking_switch})"


def shorten(text: str) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN else flat[: SHOWN - 1] + "…"
