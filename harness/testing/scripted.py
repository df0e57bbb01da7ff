"""A model that answers as a test says, and keeps what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from harness.base.errors import UsageError
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Model, ModelSettings, Reply, Request
from harness.registry import ModelRegistration, Origin, Registry, load_plugins

Answer: TypeAlias = str | Reply | CallError
Answers: TypeAlias = str | Sequence[Answer] | Callable[[Request], Answer]
"""One text for every request, answers in the order of asking, or a function of the request."""

KIND = "scripted"


class ScriptedModel(Model):
    """A model in this process: no server, no key, no thread.

    An answer is a text, a `Reply` where more than its text matters (`finish="length"`), or a
    `CallError`, which is raised. A list answers in the order of asking, one request at a time, and
    ends the run when it is used up; so does a function that raises anything else. `requests` are
    all that arrived, `request.topic.variables` the variables of their prompts. Models that play in
    one run need different names.
    """

    def __init__(
        self, answers: Answers = "ok", *, name: str = "model", concurrency: int = 4
    ) -> None:
        in_order = not isinstance(answers, str) and isinstance(answers, Sequence)
        self.answers = answers
        self.concurrency = 1 if in_order else concurrency
        self.identity = Identity(kind=KIND, name=name, scope="run")
        self.requests: list[Request] = []

    @property
    def count(self) -> int:
        """How many requests arrived."""
        return len(self.requests)

    @property
    def spec(self) -> str:
        """What stands for it where a model is named, while it is `offered`."""
        return f"{KIND}:model={self.identity.name}"

    async def ask(self, request: Request) -> Reply:
        """The answer that the script has for the request."""
        number = len(self.requests)
        self.requests.append(request)
        answer = self._answer(number, request)
        if isinstance(answer, CallError):
            raise answer
        if not isinstance(answer, str | Reply):
            raise self._wrong(f"gave {answer!r}, which is no text, Reply or CallError")
        return answer if isinstance(answer, Reply) else Reply(text=answer)

    def _answer(self, number: int, request: Request) -> Answer:
        answers = self.answers
        if isinstance(answers, str):
            return answers
        if callable(answers):
            try:
                return answers(request)
            except CallError:
                raise
            except Exception as error:  # an `assert`, say: it must not pass for a failed call
                raise self._wrong(f"raised {type(error).__name__}: {error}") from error
        if number < len(answers):
            return answers[number]
        raise self._wrong(f"has {len(answers)} answers, and this is request {number + 1}")

    def _wrong(self, what: str) -> CallError:
        """What ends the run: the test is wrong, and not the model."""
        said = f"the script of {self.identity.name!r} {what}"
        return CallError("bad_request", said, fatal=True)


@contextmanager
def offered(models: Sequence[ScriptedModel]) -> Iterator[None]:
    """While this holds, `--model scripted:model=NAME` and the like mean these models."""
    by_name = {model.identity.name: model for model in models}
    if len(by_name) < len(set(models)):
        raise UsageError(
            "two scripted models of one run have one name",
            found=", ".join(model.identity.name for model in models),
            expected='a name for each: ScriptedModel(…, name="judge")',
        )
    plugins = load_plugins()
    before = plugins.models
    plugins.models = _with(before, by_name)
    try:
        yield
    finally:
        plugins.models = before


def _with(
    models: Registry[str, ModelRegistration], by_name: Mapping[str, ScriptedModel]
) -> Registry[str, ModelRegistration]:
    """The same kinds of models and the scripted one."""

    def make(settings: ModelSettings) -> ScriptedModel:
        return by_name[settings.args["model"]]

    origin = Origin(
        plugin="testing",
        distribution="user-understanding-harness",
        module="harness.testing",
        package=None,
    )
    more: Registry[str, ModelRegistration] = Registry(models.kind)
    for registration in models.everything():
        more.add(registration.name, registration)
    more.add(KIND, ModelRegistration(name=KIND, factory=make, origin=origin))
    return more
