"""Everything that the loaded plugins registered, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import pluggy

from harness.base.errors import HarnessError, PluginError, UnknownName, did_you_mean
from harness.base.redaction import without_key_material
from harness.base.resources import Bundle, top_level
from harness.registry.hookspecs import DATA, ExecutorFactory
from harness.registry.missing_packages import hint_for
from harness.registry.registrations import (
    AnalysisRegistration,
    DataToolRegistration,
    EmbedderRegistration,
    JudgeRegistration,
    ModelRegistration,
    Origin,
    Registration,
    Registries,
    Registry,
    RespondentRegistration,
)

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark

R = TypeVar("R", bound=Registration[Any])
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Source:
    """The declaration of a plugin: an entry point of an installed distribution."""

    entry_point: str
    distribution: str
    version: str
    module: str


@dataclass(frozen=True, kw_only=True)
class LoadedPlugin(Source):
    """A loaded plugin with the hooks that it implements; `problems` names misspelt hooks."""

    origin: Origin
    hooks: tuple[str, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BrokenPlugin(Source):
    """A plugin that could not be loaded, with the error and its traceback."""

    error: str
    traceback: str

    def __str__(self) -> str:
        return (
            f"plugin {self.entry_point!r} of {self.distribution} could not be loaded: {self.error}"
        )


@dataclass(kw_only=True, eq=False)
class Plugins(Registries):
    """Everything that the plugins registered. Benchmarks are made at first use and kept."""

    manager: pluggy.PluginManager
    broken: tuple[BrokenPlugin, ...] = ()
    problems: tuple[str, ...] = ()
    bundles: tuple[Bundle, ...] = ()
    loaded: tuple[LoadedPlugin, ...] = ()
    left_out: tuple[Source, ...] = ()
    _made: dict[str, Benchmark] = field(default_factory=dict, init=False)

    def notify(self, hook_name: str, event: Any) -> list[str]:
        """Call every plugin's observer of an event; returns a line for each one that raised."""
        raised = []
        for implementation in reversed(getattr(self.manager.hook, hook_name).get_hookimpls()):
            try:
                implementation.function(*[event] * len(implementation.argnames))
            except Exception as error:  # an observer must not end a run
                raised.append(
                    f"{implementation.plugin_name} failed in {hook_name}: {line_of(error)}"
                )
        return raised

    def check_problems(self) -> None:
        """Raise PluginError where a plugin is broken, a hook misspelt or a name repeated."""
        found = [*map(str, self.broken), *self.problems]
        if found:
            raise PluginError(
                "plugin problems found (--strict_plugins)",
                found="\n            ".join(found),
                expected="plugins that load, hooks that exist, and names that one plugin registers",
                hint="`harness plugins NAME` shows one plugin; HARNESS_PLUGINS=a,b loads only "
                "these",
            )

    def problems_of(self, plugin: LoadedPlugin) -> tuple[str, ...]:
        """The problems of a plugin: misspelt hooks, and names that another plugin registers too."""
        registries = self.by_kind().values()
        twice = (line for one in registries for line in one.duplicates(of=plugin.origin))
        return (*plugin.problems, *twice)

    def registered_by(self, plugin: LoadedPlugin) -> dict[str, tuple[Registration[Any], ...]]:
        """The registrations of a plugin by kind, such as `data_tools`; empty kinds are left out."""
        found = {
            kind: tuple(one for one in registry.everything() if one.origin is plugin.origin)
            for kind, registry in self.by_kind().items()
        }
        return {kind: given for kind, given in found.items() if given}

    def benchmark(self, name: str) -> Benchmark:
        """The benchmark of that name; PluginError where no plugin registered it."""
        if name not in self._made:
            registration = self._registered(self.benchmarks, name)
            benchmark = made(registration)
            if benchmark.name != name:
                raise PluginError(
                    f"the benchmark registered as {name!r} has the name {benchmark.name!r}",
                    where=str(registration.origin),
                    expected="the same name in register(…) and Benchmark(name=…)",
                )
            self._made[name] = benchmark
        return self._made[name]

    def model(self, name: str) -> ModelRegistration:
        """The registration of a kind of model."""
        return self._registered(self.models, name)

    def judge(self, name: str) -> JudgeRegistration:
        """The registration of a judge."""
        return self._registered(self.judges, name)

    def embedder(self, name: str) -> EmbedderRegistration:
        """The registration of a kind of embedder."""
        return self._registered(self.embedders, name)

    def executor(self, name: str) -> Registration[ExecutorFactory]:
        """The registration of an executor; `local` is the harness itself and has none."""
        where = f"--executor {name}"
        return self._registered(self.executors, name, where=where, others=("local",))

    def analysis(self, name: str) -> AnalysisRegistration:
        """The registration of an analysis."""
        return self._registered(self.analyses, name)

    def data_tool(self, name: str, command: str = DATA) -> DataToolRegistration:
        """The registration of a data tool of a command."""
        return self._registered(self.tools_of(command), name)

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that tools belong to, sorted."""
        return tuple(sorted({command for command, _ in self.data_tools}))

    def tools_of(self, command: str) -> Registry[str, DataToolRegistration]:
        """The tools of a command; empty where no plugin has that command."""
        tools: Registry[str, DataToolRegistration] = Registry(self.data_tools.kind)
        for tool in self.data_tools.everything():
            if tool.command == command:
                tools.add(tool.name, tool)
        return tools

    def respondent(
        self, benchmark: str, prompt: str, role: str, name: str = "default"
    ) -> RespondentRegistration:
        """The registration of the respondent that answers a role's prompt of a benchmark."""
        key = (benchmark, prompt, role, name)
        if key in self.respondents:
            return self.respondents[key]
        known = [f"{one[1]}.{one[2]}: {one[3]}" for one in self.respondents if one[0] == benchmark]
        raise PluginError(
            f"no respondent {name!r} answers the prompt {prompt!r} for the role {role!r} "
            f"of the benchmark {benchmark!r}",
            expected=f"one of {'; '.join(known)}"
            if known
            else "a respondent that its plugin registers",
            hint="; ".join(map(str, self.broken_behind(benchmark))) or None,
        )

    def package_of(self, benchmark_name: str) -> Path:
        """The folder of the package that registered a benchmark, with its sample data."""
        origin = self._registered(self.benchmarks, benchmark_name).origin
        if origin.package is None:
            raise PluginError(
                "the plugin's package has no directory to read sample data from",
                where=str(origin),
                found=f"the module {origin.module}",
                expected="a plugin inside an installed package",
            )
        return origin.package

    def broken_behind(
        self, benchmark_name: str, bundle_name: str | None = None
    ) -> tuple[BrokenPlugin, ...]:
        """The broken plugins that may hold a benchmark, by its task's bundle or by its name."""
        return tuple(
            one
            for one in self.broken
            if top_level(one.module) == bundle_name
            or benchmark_name in (one.entry_point, top_level(one.module))
            or top_level(one.module) == f"harness_{benchmark_name}"
        )

    def _registered(
        self,
        registry: Registry[str, R],
        name: str,
        *,
        where: str | None = None,
        others: tuple[str, ...] = (),
    ) -> R:
        if name in registry:
            return registry[name]
        known = [*others, *registry]
        behind = self.broken_behind(name) or self.broken
        left_out = ", ".join(one.entry_point for one in self.left_out)  # one may have the name
        kinds = "a model behind a server is openai:NAME; `harness models` lists all kinds"
        # Task files name benchmarks, and the user names everything else.
        named_by_user = registry is not self.benchmarks
        raise (UnknownName if named_by_user and not behind else PluginError)(
            f"no plugin offers the {registry.kind} {name!r}",
            where=where,
            expected=f"one of {', '.join(known)}" if known else "a name that a plugin registers",
            hint=did_you_mean(name, known)
            or "; ".join(map(str, behind))
            or (f"HARNESS_PLUGINS leaves out {left_out}" if left_out else None)
            or (kinds if registry is self.models else None),
        )


def made(registration: Registration[Callable[P, T]], *given: P.args, **named: P.kwargs) -> T:
    """What a plugin makes; PluginError with the plugin's name if it fails."""
    try:
        return registration.factory(*given, **named)
    except HarnessError:
        raise
    except Exception as error:
        raise PluginError(
            f"{registration.name!r} cannot be made",
            where=str(registration.origin),
            found=line_of(error),
            hint=hint_for(error, registration.origin.distribution),
        ) from error


def line_of(error: BaseException) -> str:
    """The last line of a traceback without secrets: the class of the error and its message."""
    lines = str(error).strip().split("\n")
    # Pluggy puts the problem of a hook last, below the names of hook and plugin.
    text = "; ".join(lines) if isinstance(error, pluggy.PluginValidationError) else lines[0]
    line = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return str(without_key_material(line))
