"""Checks of the models and judges that roles are bound to, or that settings define."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from harness.base.errors import HarnessError, UsageError
from harness.base.hashing import digest
from harness.cli.doctor_checks.looking import Check, in_thread
from harness.contracts.finding import Finding, bad, bad_by, doubtful, good
from harness.contracts.model import CallError, Message, Model, Request, Sampling
from harness.pipeline.roles import RoleBinder
from harness.pipeline.settings import RunSettings
from harness.pipeline.specs import Spec
from harness.registry import Plugins

QUESTION = Request(
    messages=(Message("user", "Answer with one word: yes."),),
    sampling=Sampling(max_tokens=16),
    seed=0,
)
ASK_SECONDS = 60.0
MAKE_SECONDS = 60.0
"""Long, because a model with its own server may check its arguments in another interpreter."""

REASONING_ONLY = "no_content"
"""The cause of failure if the tokens were enough for reasoning only."""


def checks_of_models(
    settings: RunSettings,
    named: Mapping[str, str],
    plugins: Plugins,
    *,
    with_source: Callable[[UsageError], UsageError],
    ask: bool,
) -> list[Check]:
    """A check for each model and judge that the command binds, and for others in the settings.

    `named` has the SPECs from the settings by name. `with_source` adds to an error the file or
    variable of the setting at fault.
    """
    bound = RoleBinder(settings, plugins).given
    others = {f"models.{name}": text for name, text in named.items()}
    with_named = msgspec.structs.replace(settings, roles={**settings.roles, **others})
    roles_of: dict[str, list[str]] = {}
    for role, spec in RoleBinder(with_named, plugins).given.items():
        roles_of.setdefault(_identity(spec), []).append(role)
    checks = []
    for same in roles_of.values():
        roles = [role for role in same if role in bound] or same
        binder = RoleBinder(with_named, plugins)
        look = partial(_roles, binder, roles, with_source=with_source, ask=ask)
        seconds = MAKE_SECONDS + (ASK_SECONDS if ask else 0)
        checks.append(Check(about=" and ".join(roles), wait_for=look, seconds=seconds))
    return checks


def _identity(spec: Spec) -> str:
    """The same text for specs of the same model or judge."""
    return digest({"kind": spec.kind, "args": dict(spec.args) or spec.rest})


async def _roles(
    binder: RoleBinder,
    roles: Sequence[str],
    *,
    with_source: Callable[[UsageError], UsageError],
    ask: bool,
) -> list[Finding]:
    """The findings on the model or judge that all these roles are bound to."""
    about = " and ".join(roles)
    try:
        binding = await in_thread(lambda: binder.bind_given(roles[0]))
    except UsageError as error:
        return [bad_by(about, with_source(error))]
    models = list(dict.fromkeys(binding.models))
    if not models:
        return [good(about, f"{binding.label} judges by rule and calls no model")]
    found = await asyncio.gather(*(_model(model, ask=ask) for model in models))
    names = [f", {model.identity.name}" if len(models) > 1 else "" for model in models]
    return [
        msgspec.structs.replace(finding, about=f"{about}{name}: {finding.about}")
        for name, several in zip(names, found, strict=True)
        for finding in several
    ]


async def _model(model: Model, *, ask: bool) -> list[Finding]:
    name = model.identity.label
    try:
        found = list(await model.check())
    except HarnessError as error:
        return [bad_by(name, error)]
    if not found:
        found = [good("arguments", f"{name} can be created from them")]
    if not ask or model.identity.scope == "call":
        return found
    answer = await ask_question(model)
    if answer.state == "good":
        # It answers, so the problems that were found do not prevent a run.
        found = [
            msgspec.structs.replace(one, state="doubtful") if one.state == "bad" else one
            for one in found
        ]
    return [*found, answer]


async def ask_question(model: Model) -> Finding:
    """The finding of one small question to the model."""
    about = "question"
    try:
        if await in_thread(model.server_command) is not None:
            return doubtful(
                about,
                "not asked: the server of the model would have to be started",
                "try a run with --limit 1",
            )
        async with asyncio.timeout(ASK_SECONDS):
            await model.open()
            try:
                reply = await model.ask(QUESTION)
            finally:
                await model.close()
    except TimeoutError:
        return bad(about, f"no answer within {ASK_SECONDS:g} s")
    except CallError as error:
        if error.cause == REASONING_ONLY:
            return good(about, "answered, but with reasoning only")
        return bad(about, f"{error.cause}: {error.detail}")
    except HarnessError as error:
        return bad_by(about, error)
    used = reply.usage
    cost = f" ({used.prompt_tokens} tokens in, {used.completion_tokens} out)" if used else ""
    return good(about, f"answered{cost}")
