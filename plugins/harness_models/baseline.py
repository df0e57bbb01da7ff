"""The baseline: answers with the rules that benchmarks register as respondents, without a model."""

from __future__ import annotations

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
        self.identity = Identity(
            kind="baseline", name=name, details=versions(plugins, name), scope="call"
        )
        self._name = name
        self._plugins = plugins
        self._respondents: dict[tuple[str, str, str], Respondent] = {}

    async def ask(self, request: Request) -> Reply:
        """The respondent's answer; the same question and seed give the same answer."""
        topic = request.topic
        if topic is None:
            raise CallError(
                "bad_request",
                "a baseline needs the topic of a request, and this request has none",
                fatal=True,
            )
        key = (topic.benchmark, topic.prompt, topic.role)
        respond = self._respondents.get(key) or self._find(key)
        chance = Random(stable_int(request.seed, *key, *(m.content for m in request.messages)))
        try:
            text = respond(topic.variables, chance)
        except Exception as error:
            raise CallError(
                "bad_response", f"the respondent {self._about(key)} raised {error!r}"
            ) from error
        if not isinstance(text, str):
            raise CallError(
                "bad_response",
                f"the respondent {self._about(key)} returned {type(text).__name__}, not str",
            )
        return Reply(text=text)

    def _find(self, key: tuple[str, str, str]) -> Respondent:
        from harness.registry import made

        try:
            respond = made(self._plugins.respondent(*key, self._name))
        except PluginError as error:
            raise CallError("not_found", str(error), fatal=True) from error
        self._respondents[key] = respond
        return respond

    def _about(self, key: tuple[str, str, str]) -> str:
        benchmark, prompt, role = key
        return f"{self._name!r} of {benchmark}, {prompt}.{role},"


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


def versions(plugins: Plugins, name: str) -> dict[str, int]:
    """The version of each respondent with this name, by `benchmark/prompt/role`."""
    found = {}
    for key in plugins.respondents:
        if key[3] == name:
            try:
                found["/".join(key[:3])] = plugins.respondents[key].version
            except PluginError:
                # Registered twice: only the benchmark that uses it fails, and not here.
                continue
    return found
