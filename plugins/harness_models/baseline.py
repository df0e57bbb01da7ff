"""The baseline: answers with the rules that benchmarks register as respondents, without a model."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from harness.base.errors import PluginError, one_of
from harness.base.hashing import stable_int
from harness.contracts.identity import Identity
from harness.contracts.model import CallError, Model, ModelSettings, Reply, Request

if TYPE_CHECKING:
    from harness.registry import Plugins
    from harness.registry.hookspecs import Respondent

DEFAULT = "default"


class BaselineModel(Model):
    """Answers each request by the named respondent of the request's benchmark, prompt and role."""

    def __init__(self, *, name: str, concurrency: int | None, plugins: Plugins) -> None:
        self.concurrency = concurrency or self.concurrency
        versions = {}
        for key in plugins.respondents:
            # Registered twice: only the benchmark that uses it fails, and not here.
            with suppress(PluginError):
                if key[3] == name:
                    versions["/".join(key[:3])] = plugins.respondents[key].version
        self.identity = Identity(kind="baseline", name=name, details=versions, scope="call")
        self._name = name
        self._plugins = plugins
        self._respondents: dict[tuple[str, str, str], Respondent] = {}

    async def ask(self, request: Request) -> Reply:
        """The respondent's answer; the same question and seed give the same answer."""
        from harness.registry import made

        topic = request.topic
        if topic is None:
            raise CallError(
                "bad_request",
                "a baseline needs the topic of a request, and this request has none",
                fatal=True,
            )
        key = (topic.benchmark, topic.prompt, topic.role)
        about = f"the respondent {self._name!r} of {topic.benchmark}, {topic.prompt}.{topic.role},"
        if key not in self._respondents:
            try:
                self._respondents[key] = made(self._plugins.respondent(*key, self._name))
            except PluginError as error:
                raise CallError("not_found", str(error), fatal=True) from error
        chance = Random(stable_int(request.seed, *key, *(m.content for m in request.messages)))
        try:
            text = self._respondents[key](topic.variables, chance)
        except Exception as error:
            raise CallError("bad_response", f"{about} raised {error!r}") from error
        if not isinstance(text, str):
            found = type(text).__name__
            raise CallError("bad_response", f"{about} returned {found}, not str")
        return Reply(text=text)


def make(settings: ModelSettings) -> Model:
    """The baseline for these settings; UsageError for unknown arguments and respondents."""
    from harness.registry import load_plugins

    for key in settings.args:
        one_of(
            key, ["respondent"], f"the model 'baseline' has no argument {key!r}",
            where="--model_args", found=key, listed="respondent=NAME",
        )  # fmt: skip
    plugins = load_plugins()
    name = settings.args.get("respondent", DEFAULT)
    known = sorted({key[3] for key in plugins.respondents})
    one_of(
        name, known, f"no plugin registers a respondent named {name!r}", where="--model_args",
        found=name, none="a plugin that registers one",
    )  # fmt: skip
    return BaselineModel(name=name, concurrency=settings.concurrency, plugins=plugins)
