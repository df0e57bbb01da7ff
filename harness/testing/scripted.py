"""Scripted models, and runs of tasks in tests with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.base.errors import UsageError
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Model, Reply, Request
from harness.registry import ModelRegistration, Origin, Registry, load_plugins
from harness.registry.hookspecs import HARNESS
from harness.testing.server import FaultyServer

if TYPE_CHECKING:
    from harness.pipeline.run import RunResult


Answer: TypeAlias = str | Reply | CallError
Answers: TypeAlias = str | Sequence[Answer] | Callable[[Request], Answer]
"""One text for every request, a list of answers in order, or a function of the request."""

KIND = "scripted"


class ScriptedModel(Model):
    """A model in this process: no server, no key, no thread.

        model = ScriptedModel(lambda request: "yes" if "film" in str(request.messages) else "no")

    An answer is a text, a `Reply` if more than its text matters (`finish="length"`), or a
    `CallError`, which is raised. A list answers one request at a time, and the run ends with an
    error when the list is used up or a function raises another error. `requests` holds all requests
    that arrived; `request.topic.variables` are the variables of a prompt. Models of one run need
    different names. `details` are those of its identity.
    """

    def __init__(
        self,
        answers: Answers = "ok",
        *,
        name: str = "model",
        concurrency: int = 4,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        in_order = not isinstance(answers, str) and isinstance(answers, Sequence)
        self.answers = answers
        self.concurrency = 1 if in_order else concurrency
        self.identity = Identity(kind=KIND, name=name, details=dict(details or {}), scope="run")
        self.requests: list[Request] = []

    @property
    def count(self) -> int:
        """The number of requests that arrived."""
        return len(self.requests)

    @property
    def spec(self) -> str:
        """The model's SPEC on the command line, valid while it is `offered`."""
        return f"{KIND}:model={self.identity.name}"

    async def ask(self, request: Request) -> Reply:
        """The scripted answer to the request."""
        number = len(self.requests)
        self.requests.append(request)
        answers = self.answers
        answer: Answer
        if isinstance(answers, str):
            answer = answers
        elif callable(answers):
            try:
                answer = answers(request)
            except CallError:
                raise
            except Exception as error:  # an `assert`, say: it must not count as a failed call
                raise self._wrong(f"raised {type(error).__name__}: {error}") from error
        elif number < len(answers):
            answer = answers[number]
        else:
            raise self._wrong(f"has {len(answers)} answers, but this is request {number + 1}")
        if isinstance(answer, CallError):
            raise answer
        if not isinstance(answer, str | Reply):
            raise self._wrong(f"returned {answer!r}, which is no text, Reply or CallError")
        return answer if isinstance(answer, Reply) else Reply(text=answer)

    def _wrong(self, what: str) -> CallError:
        """An error that ends the run, since the test is wrong and not the model."""
        return CallError("bad_request", f"the script of {self.identity.name!r} {what}", fatal=True)


@contextmanager
def offered(models: Sequence[ScriptedModel]) -> Iterator[None]:
    """Within the `with` statement, SPECs such as `scripted:model=NAME` name these models."""
    by_name = {model.identity.name: model for model in models}
    if len(by_name) < len(set(models)):
        raise UsageError(
            "two scripted models of one run have the same name",
            found=", ".join(model.identity.name for model in models),
            expected='different names: ScriptedModel(…, name="judge")',
        )
    plugins = load_plugins()
    before = plugins.models
    origin = Origin(plugin="testing", distribution=HARNESS, module="harness.testing", package=None)
    scripted = ModelRegistration(
        KIND, lambda settings: by_name[settings.args["model"]], origin=origin
    )
    plugins.models = Registry(before.kind, [*before.everything(), scripted])
    try:
        yield
    finally:
        plugins.models = before


Player: TypeAlias = str | ScriptedModel | FaultyServer
"""The model for a role: a SPEC of the command line, a scripted model, or a running server."""


def run_tasks(
    tasks: str | Sequence[str],
    *,
    folder: Path,
    model: Player = "baseline",
    judge: Player | None = None,
    roles: Mapping[str, Player] | None = None,
    **settings: Any,
) -> RunResult:
    """The result of `harness.evaluate`, over the bundled sample unless `data` is given.

        result = run_tasks("films", folder=tmp_path, model=ScriptedModel("comedy"))

    `folder` gets the run folders and the store of answered calls. `judge` and `roles` give the
    models of the roles other than the candidate. `settings` are further arguments of
    `harness.evaluate`: limit, seed, set, concurrency, max_failures, … An error that a server's
    `answer` raised is raised here.
    """
    from harness.api import evaluate

    players = dict(roles or {}) | ({} if judge is None else {"judge": judge})
    everybody = (model, *players.values())
    scripted = dict.fromkeys(one for one in everybody if isinstance(one, ScriptedModel))
    places: dict[str, Any] = {
        "data": "sample",
        "output_path": folder / "runs",
        "store": folder / "calls.sqlite",
    }
    with offered(tuple(scripted)):
        result = evaluate(
            tasks,
            model=spec_of(model),
            role={role: spec_of(player) for role, player in players.items()},
            **(places | settings),
        )
    for player in everybody:
        if isinstance(player, FaultyServer) and player.mistake is not None:
            raise player.mistake
    return result


def spec_of(player: Player) -> str:
    """The SPEC of a player on the command line."""
    if isinstance(player, ScriptedModel):
        return player.spec
    if isinstance(player, FaultyServer):
        return f"openai:model=m,base_url={player.url}"
    return player
