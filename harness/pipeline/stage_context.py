"""The inputs of one stage of one task."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.base.errors import (
    HarnessError,
    PluginError,
    PromptError,
    TaskError,
    UsageError,
    did_you_mean,
)
from harness.base.hashing import digest
from harness.contracts.judge import Judge
from harness.contracts.model import Model, Sampling
from harness.contracts.stage import CANDIDATE, Calls, Item, Stage
from harness.contracts.task import Task
from harness.pipeline.roles import Binding, players_of
from harness.prompts import Template
from harness.tasks.shapes import Misfit
from harness.tasks.task_schema import short, typed

MEMO_PARTS = ("benchmark", "stage", "version", "prompts", "roles", "fresh", "repeat")
"""The components of a stage's key that enter the keys of its memos."""

REASONING_TOKENS = 4096
"""The tokens that a model which thinks has for its reasoning, unless the task or command says."""


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

    @functools.cached_property
    def memo_key(self) -> str:
        """The key of memos: over prompts, roles and versions, but not options and seed."""
        return digest({n: self.components[n] for n in MEMO_PARTS if n in self.components})

    @functools.cached_property
    def models(self) -> tuple[Model, ...]:
        """The models that the stage may ask, each once, in the order of its roles."""
        roles = (*self.stage.roles, *self.stage.judges)
        models = (model for role in roles for model in self.bindings[role].models)
        return tuple(dict.fromkeys(map(self.asked, models)))

    def asked(self, model: Model) -> Model:
        """The model that is asked for one of a role."""
        return model.live if self.stage.sequential and model.live is not None else model

    @functools.cached_property
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
