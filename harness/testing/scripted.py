"""A model that answers from a script of a test, and keeps the requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from harness.base.errors import UsageError
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Model, Reply, Request
from harness.registry import ModelRegistration, Origin, Registry, load_plugins
from harness.registry.hookspecs import HARNESS

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
