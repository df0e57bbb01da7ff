"""Binds the roles of tasks to models and judges."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.base.errors import PluginError, TaskError, UsageError, one_of
from harness.base.hashing import digest
from harness.calls.engines import SharedEngines, overlap
from harness.contracts.benchmark import Benchmark
from harness.contracts.finding import NotReady
from harness.contracts.judge import JudgeParts, Member
from harness.contracts.model import Model, ModelSettings
from harness.contracts.stage import CANDIDATE, Stage
from harness.contracts.task import Task
from harness.pipeline.desk import Binding
from harness.pipeline.settings import Spec, hosts_in, parse_spec, split_members
from harness.registry import made
from harness.tasks.resolve import locate

if TYPE_CHECKING:
    from harness.pipeline.settings import RunSettings
    from harness.registry import Plugins


JUDGE = "judge"
IDENTITY_ARGS = frozenset({
    "model", "pretrained", "revision", "identity", "tokenizer", "chat_template",
    "chat_template_kwargs", "lora", "reasoning_parser", "endpoint", "stop", "azure_deployment",
    "extra_body",
})  # fmt: skip
"""Arguments that are part of a model's identity, in whatever spelling."""

OF_THE_USER = re.compile(r"\b(api_key_file|python)\s*=[^,+]*")
"""Arguments whose file is sent or run: only the user names these."""

CANDIDATE_ARGS = "--model_args"
"""Where a kind of model says that an argument is wrong: it does not know its role."""

MODEL_JUDGE = "llm"
"""The judge adapter for a judge's role that is bound to a model."""


def named_as_recorded(binding: Binding) -> Binding:
    """The binding; one to a recording is labelled with the model that was recorded.

    Members of a panel keep the labels of their specs, which are in keys.
    """
    if binding.model is None or not binding.model.identity.recorded:
        return binding
    who = binding.model.identity
    kind = binding.label.removesuffix(f":{who.name}")
    name = who.name if kind.endswith(who.kind) else who.label
    return replace(binding, label=f"{kind} of {name}")


class UnboundRole(UsageError):
    """A role has no model or judge."""


class RoleBinder:
    """Binds roles to models and judges; roles with equal specs share one model.

    Models of one identity on the same resource are shared as well, so that weights are loaded once;
    `notes` names these roles. `engines` are those of runs before this one.
    """

    def __init__(
        self, settings: RunSettings, plugins: Plugins, *, engines: SharedEngines | None = None
    ) -> None:
        if CANDIDATE in settings.roles:
            raise UsageError(
                "the candidate is given by --model",
                found=f"--role {CANDIDATE}={settings.roles[CANDIDATE]}",
                expected="--model KIND --model_args …",
            )
        self._settings = settings
        self._plugins = plugins
        self._candidate = settings.candidate
        named = hosts_in([*settings.model_args.values(), *settings.roles.values()])
        self._given_hosts = named - set(settings.file_hosts)
        self._engines = engines or SharedEngines()
        self._models: dict[str, Model] = {}
        self._failed: dict[str, NotReady] = {}
        # The models that hold a resource while their engines run, and the roles they were made for.
        self._opened: list[tuple[Model, Spec, str]] = []
        self._bound: set[str] = set()
        self._conflicts: list[UsageError] = []
        self.notes: list[str] = []

    def bind(
        self,
        task: Task,
        benchmark: Benchmark,
        stages: Iterable[Stage],
        *,
        bound: Mapping[str, Binding],
    ) -> dict[str, Binding]:
        """The binding of every role of these stages, and those that are `bound` before; UsageError
        where a role cannot be bound."""
        for role in task.roles:
            problem = f"task {task.name} has a role that its benchmark does not know"
            one_of(role, sorted(benchmark.roles), problem, found=role)
        stages = tuple(stages)
        judges = {role for stage in stages for role in stage.judges}
        asked = {role for stage in stages for role in stage.roles}
        bindings = {**bound}
        # The candidate first: where roles share an engine, its arguments start the engine.
        for role in sorted(judges | asked, key=lambda role: (role != CANDIDATE, role)):
            if role in bound and (role not in judges or bound[role].judge is not None):
                continue
            try:
                bindings[role] = self.bind_role(role, task, as_judge=role in judges)
            except UnboundRole as error:
                asking = [stage for stage in stages if role in (*stage.roles, *stage.judges)]
                if all(stage.when is not None for stage in asking):
                    names = ", ".join(repr(stage.name) for stage in asking)
                    error.found = (
                        f"this data and these options call for the stage {names}, which asks the "
                        "role"
                    )
                hints = [stage.role_hint for stage in asking if stage.role_hint]
                error.hint = "; ".join(hints) or error.hint
                raise
        for role in judges:
            self._check_self_judging(bindings[role], task)
        # Last: advice on engine arguments is useless for a model that may not judge.
        if self._conflicts:
            raise self._conflicts[0]
        return bindings

    def check_known_roles(self, benchmarks: Iterable[Benchmark]) -> None:
        """Raise UsageError for a role of the command that no benchmark has."""
        known = {role for benchmark in benchmarks for role in benchmark.roles}
        for role, spec in self._settings.roles.items():
            if role != JUDGE:
                problem = f"no chosen task has a role {role!r}"
                one_of(role, sorted(known), problem, found=f"{role}={spec}")

    def check_used_roles(self) -> None:
        """Raise UsageError for a role of the command that no task asks, given its data."""
        for role, spec in self._settings.roles.items():
            if role not in self._bound and role == JUDGE:
                self.notes.append("no chosen task asks a judge, so --judge is not used")
            elif role != JUDGE:
                problem = f"no chosen task asks a {role!r} with these options and this data"
                one_of(role, sorted(self._bound), problem, found=f"{role}={spec}")

    @property
    def given(self) -> dict[str, Spec]:
        """The specs of the command itself, by role; UsageError for a malformed spec."""
        roles = {role: self._spec(text) for role, text in self._settings.roles.items()}
        return {CANDIDATE: self._candidate, **roles} if self._candidate.kind else roles

    def bind_given(self, role: str) -> Binding:
        """The binding of a role that the command names, without a task."""
        as_judge = role == JUDGE or self.given[role].kind in self._plugins.judges
        return self.bind_role(role, None, as_judge=as_judge)

    def bind_role(self, role: str, task: Task | None, *, as_judge: bool) -> Binding:
        """The binding of one role of a task; errors are at the option that gave its spec, or have
        the task's default named."""
        spec = self.given[role] if task is None else self._spec_of(role, task)
        try:
            return named_as_recorded(self._player(spec, role, as_judge=as_judge))
        except UsageError as error:
            named = role if task is None else task.named_by(role, self._settings.roles)
            if named == CANDIDATE or error.where not in (None, CANDIDATE_ARGS):
                raise
            if task is None or named in self._settings.roles:
                error.where = giving_option(named)
                raise
            arguments = self._plugins.model(spec.kind).arguments
            if "model" in spec.args and arguments and "model" not in arguments:
                raise UsageError(
                    f"no server is known for the default model of {task.name}",
                    where=f"role {named}",
                    found=spec.args["model"],
                    **_how_to_name(named),
                ) from error
            error.where = f"role {named}, as {spec.label}, the default of {task.name}"
            error.hint = error.hint or f"{option_of(named)} binds another model to this role"
            raise

    def _player(self, spec: Spec, role: str, *, as_judge: bool) -> Binding:
        """What plays a role: a model, or a judge by rule, over a model or of several."""
        adapter, over, label = MODEL_JUDGE if as_judge else None, spec, spec.label
        if as_judge and spec.kind in self._plugins.judges:
            registration = self._plugins.judge(spec.kind)
            if registration.on == "alone":
                alone = made(registration, JudgeParts(args=spec.args))
                return Binding(role=role, label=label, model=None, judge=alone, shown=spec.given)
            if registration.on == "judges":
                return self._panel(spec, role)
            if not spec.rest:
                raise UsageError(
                    f"the judge {spec.kind!r} needs a model",
                    where=f"role {role}",
                    expected=f"{spec.kind}:openai:model=NAME,base_url=URL",
                )
            adapter, over = spec.kind, parse_spec(spec.rest)
            label = f"{adapter}:{over.label}"
        elif as_judge and not self._plugins.broken:
            one_of(
                spec.kind,
                (*self._plugins.judges, *self._plugins.models),
                f"no plugin offers a judge or a kind of model named {spec.kind!r}",
                where=f"role {role}",
                listed="one of {}",
                hint=f"a server's model is named by {giving_option(role)} "
                f"openai:base_url=URL,model={spec.kind}",
            )
        model = self._model(over, role)
        # A recording is named as its model.
        shown = over.given if model.identity.recorded else over.shown
        if adapter not in (None, MODEL_JUDGE) and shown and not over.given:
            shown = f"{adapter}:{shown}"
        judge = made(self._plugins.judge(adapter), JudgeParts(model=model)) if adapter else None
        return Binding(role=role, label=label, model=model, judge=judge, shown=shown)

    def _panel(self, spec: Spec, role: str) -> Binding:
        """A panel; its members have their labels in tables, numbered where labels repeat."""
        members: list[Binding] = []
        for text in split_members(spec.rest):
            below = parse_spec(text)
            judged = below.kind in self._plugins.judges
            if judged and self._plugins.judge(below.kind).on == "judges":
                raise UsageError(
                    f"the judge {spec.kind!r} cannot have a panel as a member",
                    where=f"role {role}",
                    found=text,
                    expected="members that are models or single judges",
                )
            members.append(self._player(below, role, as_judge=True))
        seen: dict[str, Binding] = {}
        for one in members:
            first = seen.setdefault(digest(one.key("run")), one)
            if first is not one:
                raise UsageError(
                    f"the judge {spec.kind!r} has a member twice",
                    where=f"role {role}",
                    found=f"{first.label} and {one.label}",
                    expected="different judges; models of one name need different revision=",
                )
        times: Counter[str] = Counter()
        for place, one in enumerate(members):
            times[one.label] += 1
            if times[one.label] > 1:
                members[place] = replace(one, label=f"{one.label} #{times[one.label]}")
        parts = tuple(
            Member(label=one.label, judge=one.judge) for one in members if one.judge is not None
        )
        return Binding(
            role=role,
            label=f"{spec.kind}:{'+'.join(one.label for one in members)}",
            model=None,
            judge=made(self._plugins.judge(spec.kind), JudgeParts(members=parts)),
            members=tuple(members),
            shown=f"{spec.kind}:{'+'.join(one.shown or one.label for one in members)}",
        )

    def _spec_of(self, role: str, task: Task) -> Spec:
        """What a role of a task is bound to: by the command, as another role, or by default."""
        path: list[str] = []
        while True:
            self._bound.add(role)
            path.append(role)
            if role in self._settings.roles:
                return self._spec(self._settings.roles[role])
            if role == CANDIDATE:
                return self._candidate
            wanted = task.roles.get(role)
            if wanted is None or wanted.same_as is None:
                break
            role = wanted.same_as
            if role in path:
                raise UsageError(
                    "roles refer to each other in a circle",
                    where=f"task {task.name}",
                    found=" -> ".join([*path, role]),
                    expected="a `same_as` that ends at a role with a default, or at the candidate",
                )
        if wanted is not None and wanted.default is not None:
            _check_names_no_file(wanted.default, role, task)
            kind = wanted.default.partition(":")[0]
            if kind in self._plugins.models or kind in self._plugins.judges:
                return self._spec(wanted.default)
            # Mere weights open in the candidate's place.
            shared = self._plugins.model(self._candidate.kind).shared
            place = {name: to for name, to in self._candidate.args.items() if name in shared}
            return Spec(kind=self._candidate.kind, args={**place, "model": wanted.default})
        raise UnboundRole(
            f"the role {role!r} of task {task.name} has no model or judge", **_how_to_name(role)
        )

    def _spec(self, text: str) -> Spec:
        """The spec in a text; the specs of a panel's members are left unparsed."""
        kind, _, rest = text.partition(":")
        if kind in self._plugins.judges and self._plugins.judge(kind).on == "judges":
            return Spec(kind=kind, args={}, rest=rest)
        return parse_spec(text)

    def _model(self, spec: Spec, role: str) -> Model:
        key = digest({"kind": spec.kind, "args": dict(spec.args)})
        if key in self._failed:
            raise self._failed[key].with_traceback(None)
        if key not in self._models:
            settings = ModelSettings(
                args=spec.args,
                concurrency=self._settings.concurrency,
                attempt_timeout=self._settings.patience.attempt_timeout,
                start_timeout=self._settings.patience.start_timeout,
                structured=self._settings.structured,
                store=self._settings.store_file,
                elsewhere=self._settings.executor != "local"
                or (self._settings.elsewhere and role == CANDIDATE),
                given_hosts=self._given_hosts,
            )
            try:
                registration = self._plugins.model(spec.kind)
            except PluginError as error:
                error.where = error.where or f"role {role}"
                raise
            try:
                model = self._engines.made.get(key) or made(registration, settings)
            except NotReady as error:
                self._failed[key] = error
                raise
            if not isinstance(model, Model):
                raise PluginError(
                    f"the factory of the model kind {spec.kind!r} returned no model",
                    found=type(model).__name__,
                    expected="an instance of a subclass of harness.Model",
                )
            given = "concurrency" in spec.args or self._settings.concurrency is not None
            model.limited = model.limited or given
            if model.occupies is not None:
                self._engines.made[key] = model
            self._models[key] = self._share_engine(model, spec, role)
        return self._models[key]

    def _share_engine(self, model: Model, spec: Spec, role: str) -> Model:
        """An earlier model of the same weights on the same resource, or batches, else the model."""
        if model.occupies is None and not model.patient:
            return model
        what = "list of batches" if model.patient else "engine"
        for first, opened, owner in self._opened:
            together = overlap(first, model) or (first.patient and model.patient)
            if first.identity != model.identity or not together:
                continue
            for name, value in spec.args.items():
                shared = opened.args.get(name)
                if name not in IDENTITY_ARGS and value != shared:
                    error = UsageError(
                        f"{role} has the weights of {owner}, and one {what} serves both",
                        where=f"role {role}, as {spec.label}",
                        found=f"{name}={value}",
                        expected=f"{name}={shared}, as for {owner}, or no {name}="
                        if shared is not None
                        else f"no {name}=, or {name}={value} for {owner} as well",
                    )
                    self._conflicts.append(error)
            self.notes.append(
                f"{role}: has the weights of {owner}, so one {what} serves both, with the "
                f"arguments of {owner}"
            )
            return first
        self._opened.append((model, spec, role))
        return model

    def _check_self_judging(self, judge: Binding, task: Task) -> None:
        if not judge.models or self._settings.allow_self_judging:
            return
        candidate = self._model(self._candidate, CANDIDATE)
        for one in judge.single:
            if any(model.identity.may_be(candidate.identity) for model in one.models):
                raise UsageError(
                    f"the candidate would judge itself in task {task.name}",
                    where=f"role {judge.role}",
                    found=one.label,
                    expected="another model as judge, or revision= for both if weights differ",
                    hint="--allow_self_judging allows it, and tables then mark the result",
                )


def _check_names_no_file(text: str, role: str, task: Task) -> None:
    """Raise TaskError for a task's own default that reads a key from a file, or starts a program.

    A task comes from elsewhere, and what it names would be sent or run.
    """
    found = OF_THE_USER.search(text)
    if found is not None:
        raise TaskError(
            "a task's default may not name a file of this machine",
            where=locate(task, ("roles", role, "default")),
            found=found[0],
            expected="a model that is described without it",
            hint=f"{option_of(role)} gives the whole model with it",
        )


def _how_to_name(role: str) -> dict[str, Any]:
    """The parts of an error that say how a model for a role is named."""
    lexical = "--judge lexical judges by word overlap, for demos and tests"
    option = option_of(role)
    openai = option.replace("SPEC", "openai:model=NAME,base_url=URL")
    return {
        "expected": f"{option}, as in {openai}",
        "hint": lexical if role == JUDGE else None,
    }


def other_players(
    bindings: Mapping[str, Binding], task: Task, given: Collection[str]
) -> tuple[str, ...]:
    """A line for each player that is not the task's default; `given` are the command's roles.

    Judges by rule are left out: they are no model that a task may have as its default.
    """
    found: dict[str, None] = {}
    for role, binding in bindings.items():
        usual = task.roles.get(task.named_by(role, ()))
        if usual is None or usual.default is None or task.named_by(role, given) not in given:
            continue
        if any(one.model is None for one in binding.single) or _is_named(binding, usual.default):
            continue
        verb, by = ("judged by", "by ") if binding.judge is not None else (f"{role} is", "")
        found[f"{verb} {binding.label}, not {by}{usual.default}"] = None
    return tuple(found)


def _is_named(binding: Binding, spec: str) -> bool:
    """Whether a spec names the binding's model, wherever its weights are, or its kind alone."""
    if binding.model is None:
        return False
    if spec == binding.model.identity.kind:
        return True
    name = binding.model.identity.name.rstrip("/").rpartition("/")[2].casefold()
    return name in re.split(r"[/:=,]", spec.casefold())


def giving_option(role: str) -> str:
    """The option by which a command names the model of a role, without its value."""
    return "--model" if role == CANDIDATE else "--judge" if role == JUDGE else f"--role {role}"


def option_of(role: str) -> str:
    """The option that binds a role."""
    return "--judge SPEC" if role == JUDGE else f"--role {role}=SPEC"
