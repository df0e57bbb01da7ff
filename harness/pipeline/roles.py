"""Who answers for each role of each task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from harness.base.errors import HarnessError, PluginError, UsageError, did_you_mean
from harness.base.hashing import digest
from harness.calls.usage import player_name
from harness.contracts.benchmark import Benchmark
from harness.contracts.judge import Judge, JudgeParts, Member
from harness.contracts.model import Model, ModelSettings
from harness.contracts.stage import Stage
from harness.contracts.task import Task
from harness.pipeline.specs import Spec, parse_spec, split_members

if TYPE_CHECKING:
    from harness.pipeline.settings import RunSettings
    from harness.registry import Plugins

T = TypeVar("T")

CANDIDATE = "candidate"
JUDGE = "judge"
OF_THE_WEIGHTS = frozenset({
    "model", "pretrained", "revision", "identity", "tokenizer", "chat_template",
    "chat_template_kwargs", "lora", "max_model_len", "reasoning_parser", "endpoint", "stop",
    "azure_deployment", "extra_body",
})  # fmt: skip
"""Arguments that suit one model's weights: another that opens as it does is not given them."""

TELLING_WEIGHTS = OF_THE_WEIGHTS - {"max_model_len"}
"""Those that are in a model's identity, however they are spelt."""

MODEL_JUDGE = "llm"
"""The judge adapter meant when a judge's role is bound to a model."""


@dataclass(frozen=True, kw_only=True)
class Binding:
    """What stands behind a role: a model, or a judge by rule, over a model or of several judges.

    `members` are the judges that it is of.
    """

    role: str
    label: str
    model: Model | None
    judge: Judge | None = None
    members: tuple[Binding, ...] = ()

    @property
    def models(self) -> tuple[Model, ...]:
        """All models that the role asks."""
        own = () if self.model is None else (self.model,)
        return (*own, *(model for member in self.members for model in member.models))

    @property
    def by_rule(self) -> bool:
        """Whether its model answers by rule: nobody is asked, and no tokens are used."""
        return self.model is not None and self.model.identity.scope == "call"

    @property
    def single(self) -> tuple[Binding, ...]:
        """The judges that it is of, or itself."""
        return self.members or (self,)

    def key(self, run_id: str) -> dict[str, Any]:
        """The part of a stage's key that stands for this role."""
        parts: dict[str, Any] = {}
        if self.judge is not None:
            parts["judge"] = {"name": self.judge.name, "version": self.judge.version}
        if self.model is not None:
            parts["model"] = self.model.identity.key(run_id)
        if self.members:
            parts["members"] = {member.label: member.key(run_id) for member in self.members}
        return parts


def players_of(bindings: Mapping[str, Binding]) -> dict[str, Binding]:
    """Who answers for each role, members of a judge that is several under names of their own."""
    players = dict(bindings)
    for role, binding in bindings.items():
        players |= {player_name(role, one.label): one for one in binding.members}
    return players


def named_as_recorded(binding: Binding) -> Binding:
    """The binding, that of a recording labelled with who was recorded.

    Members of a judge keep the labels of their specs, which are in keys.
    """
    if binding.model is None or not binding.model.identity.recorded:
        return binding
    who = binding.model.identity
    kind = binding.label.removesuffix(f":{who.name}")
    name = who.name if kind.endswith(who.kind) else who.label
    return replace(binding, label=f"{kind} of {name}")


@dataclass(frozen=True, kw_only=True)
class _Opened:
    """A model that holds a resource while it is open, and the role that it was first made for."""

    model: Model
    spec: Spec
    role: str


class Unbound(UsageError):
    """A role that nothing is bound to."""


class RoleBinder:
    """Binds roles to models and judges; equal specs share one model.

    So do models of one identity that would hold the same resource: the weights are loaded once.
    `notes` tells which roles that concerns.
    """

    def __init__(self, settings: RunSettings, plugins: Plugins) -> None:
        if CANDIDATE in settings.roles:
            raise UsageError(
                "the candidate is given by --model",
                found=f"--role {CANDIDATE}={settings.roles[CANDIDATE]}",
                expected="--model KIND --model_args …",
            )
        self._settings = settings
        self._plugins = plugins
        self._candidate = Spec(kind=settings.model, args=settings.model_args)
        self._models: dict[str, Model] = {}
        self._opened: list[_Opened] = []
        self._bound: set[str] = set()
        self._other_ways: list[UsageError] = []
        self.notes: list[str] = []

    def bind(self, task: Task, benchmark: Benchmark, stages: Iterable[Stage]) -> dict[str, Binding]:
        """Every role that these stages name, bound; UsageError for one that cannot be."""
        self._refuse_unknown_roles(task, benchmark)
        stages = tuple(stages)
        judges = {role for stage in stages for role in stage.judges}
        asked = {role for stage in stages for role in stage.roles}
        bindings = {}
        # The candidate first: where roles share an engine, its arguments say how it opens.
        for role in sorted(judges | asked, key=lambda role: (role != CANDIDATE, role)):
            try:
                bindings[role] = self._bind(role, task, as_judge=role in judges)
            except Unbound as error:
                raise _with_reason(error, role, stages) from error
        for role in judges:
            self._refuse_self_judging(bindings[role], task)
        # After that: who may not judge is not told how its engine should open.
        if self._other_ways:
            raise self._other_ways[0]
        return bindings

    def refuse_unknown(self, benchmarks: Iterable[Benchmark]) -> None:
        """Raise UsageError for a role that was given and that none of these benchmarks has."""
        known = {role for benchmark in benchmarks for role in benchmark.roles}
        for role, spec in self._settings.roles.items():
            if role not in known:
                raise UsageError(
                    f"no chosen task has a role {role!r}",
                    found=f"{role}={spec}",
                    expected=", ".join(sorted(known)),
                )

    def refuse_unused(self) -> None:
        """Raise UsageError for a role that was given and that no task asks, as its data is."""
        for role, spec in self._settings.roles.items():
            if role not in self._bound:
                raise UsageError(
                    f"no chosen task asks a {role!r} with these options and this data",
                    found=f"{role}={spec}",
                    expected=", ".join(sorted(self._bound)),
                )

    @property
    def given(self) -> dict[str, Spec]:
        """Whom the command itself names, by role; UsageError for a spec that says nothing."""
        roles = {role: self._spec(text) for role, text in self._settings.roles.items()}
        return {CANDIDATE: self._candidate, **roles} if self._candidate.kind else roles

    def bind_given(self, role: str) -> Binding:
        """What stands behind a role that the command names, whatever tasks want of it."""
        spec = self.given[role]
        return self._of_spec(
            spec, role, as_judge=role == JUDGE or self._plugins.has_judge(spec.kind)
        )

    def _refuse_unknown_roles(self, task: Task, benchmark: Benchmark) -> None:
        for role in task.roles:
            if role not in benchmark.roles:
                raise UsageError(
                    f"task {task.name} speaks of a role its benchmark does not have",
                    found=role,
                    expected=", ".join(sorted(benchmark.roles)),
                )

    def _bind(self, role: str, task: Task, *, as_judge: bool) -> Binding:
        return self._of_spec(self._spec_of(role, task, seen=()), role, as_judge=as_judge)

    def _of_spec(self, spec: Spec, role: str, *, as_judge: bool) -> Binding:
        if as_judge:
            return named_as_recorded(self._judging(spec, role))
        model = self._model(spec, role)
        return named_as_recorded(Binding(role=role, label=spec.label, model=model))

    def _judging(self, spec: Spec, role: str) -> Binding:
        if not self._plugins.has_judge(spec.kind):
            self._refuse_unknown_judge(spec.kind, role)
            return self._judge_over(MODEL_JUDGE, spec, role, label=spec.label)
        registration = self._plugins.judge(spec.kind)
        if registration.on == "alone":
            judge = made(spec.kind, lambda: registration.factory(JudgeParts(args=spec.args)))
            return Binding(role=role, label=spec.label, model=None, judge=judge)
        if registration.on == "judges":
            return self._judge_of_several(spec, role)
        if not spec.rest:
            raise UsageError(
                f"the judge {spec.kind!r} needs a model",
                where=f"role {role}",
                expected=f"{spec.kind}:openai:model=NAME,base_url=URL",
            )
        below = parse_spec(spec.rest)
        return self._judge_over(spec.kind, below, role, label=f"{spec.kind}:{below.label}")

    def _judge_of_several(self, spec: Spec, role: str) -> Binding:
        """A judge over judges; each is called as in tables, with a number where names repeat."""
        found: list[Binding] = []
        for text in split_members(spec.rest):
            below = parse_spec(text)
            if (
                self._plugins.has_judge(below.kind)
                and self._plugins.judge(below.kind).on == "judges"
            ):
                raise UsageError(
                    f"the judge {spec.kind!r} cannot be of judges that are several themselves",
                    where=f"role {role}",
                    found=text,
                )
            found.append(self._judging(below, role))
        _refuse_twice(found, spec.kind, role)
        members = []
        for number, one in enumerate(found):
            again = sum(other.label == one.label for other in found[:number])
            label = f"{one.label} #{again + 1}" if again else one.label
            members.append(replace(one, label=label))
        parts = JudgeParts(
            members=tuple(
                Member(label=one.label, judge=one.judge) for one in members if one.judge is not None
            )
        )
        factory = self._plugins.judge(spec.kind).factory
        judge = made(spec.kind, lambda: factory(parts))
        label = f"{spec.kind}:{'+'.join(one.label for one in members)}"
        return Binding(role=role, label=label, model=None, judge=judge, members=tuple(members))

    def _refuse_unknown_judge(self, kind: str, role: str) -> None:
        if self._plugins.has_model(kind) or self._plugins.broken:
            return
        known = (*self._plugins.judges, *self._plugins.models)
        raise UsageError(
            f"no plugin offers a judge or a kind of model called {kind!r}",
            where=f"role {role}",
            expected=f"one of {', '.join(known)}",
            hint=did_you_mean(kind, known),
        )

    def _judge_over(self, adapter: str, spec: Spec, role: str, *, label: str) -> Binding:
        model = self._model(spec, role)
        factory = self._plugins.judge(adapter).factory
        judge = made(adapter, lambda: factory(JudgeParts(model=model)))
        return Binding(role=role, label=label, model=model, judge=judge)

    def _spec_of(self, role: str, task: Task, *, seen: Sequence[str]) -> Spec:
        if role in seen:
            raise UsageError(
                "roles refer to each other in a circle",
                where=f"task {task.name}",
                found=" -> ".join((*seen, role)),
            )
        self._bound.add(role)
        if role in self._settings.roles:
            return self._spec(self._settings.roles[role])
        if role == CANDIDATE:
            return self._candidate
        wanted = task.roles.get(role)
        if wanted is not None and wanted.same_as is not None:
            return self._spec_of(wanted.same_as, task, seen=(*seen, role))
        if wanted is not None and wanted.default is not None:
            return self._default_spec(wanted.default)
        option = option_of(role)
        raise Unbound(
            f"task {task.name} has a role {role!r} that nothing is bound to",
            expected=f"{option}, as in {option.replace('SPEC', 'openai:model=NAME,base_url=URL')}",
            hint=f"{option.replace('SPEC', 'lexical')} judges by word overlap, for demos and tests"
            if role == JUDGE
            else None,
        )

    def _spec(self, text: str) -> Spec:
        """The spec in a text; of a judge that is of several, theirs are left as they stand."""
        kind, _, rest = text.partition(":")
        if self._plugins.has_judge(kind) and self._plugins.judge(kind).on == "judges":
            return Spec(kind=kind, args={}, rest=rest)
        return parse_spec(text)

    def _default_spec(self, text: str) -> Spec:
        """A task's default names a kind, or only weights: those open as the candidate does."""
        kind = text.partition(":")[0]
        if self._plugins.has_model(kind) or self._plugins.has_judge(kind):
            return self._spec(text)
        unpinned = {
            name: value
            for name, value in self._candidate.args.items()
            if name.partition(".")[0] not in OF_THE_WEIGHTS
        }
        return Spec(kind=self._candidate.kind, args={**unpinned, "model": text})

    def _model(self, spec: Spec, role: str) -> Model:
        key = digest({"kind": spec.kind, "args": dict(spec.args)})
        if key not in self._models:
            settings = ModelSettings(
                args=spec.args,
                concurrency=self._settings.concurrency,
                attempt_timeout=self._settings.patience.attempt_timeout,
                structured=self._settings.structured,
            )
            try:
                registration = self._plugins.model(spec.kind)
            except PluginError as error:
                error.where = error.where or f"role {role}"
                raise
            try:
                model = made(spec.kind, lambda: registration.factory(settings))
            except UsageError as error:
                if role != CANDIDATE:
                    error.where = error.where or f"role {role}, as {spec.label}"
                    error.hint = error.hint or f"{option_of(role)} binds it to something else"
                raise
            if not isinstance(model, Model):
                raise PluginError(
                    f"the factory of {spec.kind!r} makes something that is no model",
                    found=type(model).__name__,
                    expected="a subclass of harness.Model",
                )
            self._models[key] = self._of_one_engine(model, spec, role)
        return self._models[key]

    def _of_one_engine(self, model: Model, spec: Spec, role: str) -> Model:
        """The model that already serves this one's weights from the same resource, else itself."""
        if model.occupies is None:
            return model
        for first in self._opened:
            same = first.model.identity == model.identity
            if same and first.model.occupies == model.occupies:
                self._other_ways += _other_ways(first, spec, role)
                self.notes.append(
                    f"{role}: the weights of {first.role}, so one engine serves both, opened as "
                    f"{first.role}'s arguments say"
                )
                return first.model
        self._opened.append(_Opened(model=model, spec=spec, role=role))
        return model

    def _refuse_self_judging(self, judge: Binding, task: Task) -> None:
        if not judge.models or self._settings.allow_self_judging:
            return
        candidate = self._model(self._candidate, CANDIDATE)
        for one in judge.single:
            if any(model.identity.may_be(candidate.identity) for model in one.models):
                raise UsageError(
                    f"the candidate would judge itself in task {task.name}",
                    where=f"role {judge.role}",
                    found=one.label,
                    expected="another model as judge, or revision= of both where they differ",
                    hint="--allow_self_judging lets it, and every table says so",
                )


def _refuse_twice(members: Sequence[Binding], kind: str, role: str) -> None:
    """Raise UsageError where two are the same judge: it would have two votes."""
    seen: dict[str, str] = {}
    for one in members:
        key = digest(one.key("run"))
        if key in seen:
            raise UsageError(
                f"the judge {kind!r} has a member twice",
                where=f"role {role}",
                found=f"{seen[key]} and {one.label}",
                expected="judges that differ, by revision= where the name is the same",
            )
        seen[key] = one.label


def _other_ways(first: _Opened, spec: Spec, role: str) -> Iterator[UsageError]:
    """An error for all in a spec that has an engine open otherwise than another role does."""
    for name, value in spec.args.items():
        told = first.spec.args.get(name)
        if name not in TELLING_WEIGHTS and value != told:
            yield UsageError(
                f"{role} has the weights of {first.role}, and one engine serves both",
                where=f"role {role}, as {spec.label}",
                found=f"{name}={value}",
                expected=f"{name}={told}, as {first.role} has it, or nothing"
                if told is not None
                else f"nothing, or {name}={value} for {first.role} as well",
            )


def _with_reason(error: Unbound, role: str, stages: Sequence[Stage]) -> Unbound:
    """The error with why the role is asked, where data and options decide that, and what helps."""
    asking = [stage for stage in stages if role in (*stage.roles, *stage.judges)]
    if all(stage.when is not None for stage in asking):
        names = ", ".join(repr(stage.name) for stage in asking)
        error.found = f"this data and these options call for the stage {names}, which asks it"
    hints = [stage.role_hint for stage in asking if stage.role_hint]
    error.hint = "; ".join(hints) or error.hint
    return error


def option_of(role: str) -> str:
    """The option that binds a role."""
    return "--judge SPEC" if role == JUDGE else f"--role {role}=SPEC"


def made(name: str, factory: Callable[[], T]) -> T:
    """What a plugin's factory makes; what it raises comes as an error that names it."""
    try:
        return factory()
    except HarnessError:
        raise
    except Exception as error:
        raise PluginError(
            f"{name!r} cannot be made", found=f"{type(error).__name__}: {error}"
        ) from error
