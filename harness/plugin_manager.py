"""The plugins there are and what they registered; a broken one costs itself alone."""

from __future__ import annotations

import functools
import re
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pluggy

from harness import hookspecs
from harness.errors import HarnessError, PluginError, UnknownName, did_you_mean
from harness.hookspecs import (
    DATA,
    TAKEN,
    AnalysisFactory,
    BenchmarkFactory,
    DataToolFactory,
    JudgeFactory,
    ModelFactory,
    Respondent,
)
from harness.resources import Bundle, bundles, package_folder, top_level

if TYPE_CHECKING:
    from harness.pipeline.benchmark import Benchmark

GROUP = "harness.plugins"
REGISTERING = (
    "register_benchmarks",
    "register_models",
    "register_judges",
    "register_respondents",
    "register_analyses",
    "register_data_tools",
)

COMMAND = re.compile(r"[A-Za-z]\w*", re.ASCII)

K = TypeVar("K", bound=Hashable)
F = TypeVar("F")
R = TypeVar("R", bound="Registration[Any]")

RespondentKey = tuple[str, str, str, str]
"""Benchmark, prompt, role and the respondent's own name."""

ToolKey = tuple[str, str]
"""A command, and the name of a tool of it."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Which plugin something came from. `package` is the folder of its top-level package."""

    plugin: str
    distribution: str
    module: str
    package: Path | None

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} of {self.distribution}"


@dataclass(frozen=True, kw_only=True)
class Registration(Generic[F]):
    """A name with the factory that a plugin gave for it."""

    name: str
    factory: F
    origin: Origin
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class JudgeRegistration(Registration[JudgeFactory]):
    """A judge adapter; `needs_model` says that its factory wants a model."""

    needs_model: bool = False


@dataclass(frozen=True, kw_only=True)
class RespondentRegistration(Registration[Callable[[], Respondent]]):
    """A baseline respondent; its factory gives the function that answers."""

    benchmark: str
    prompt: str
    role: str
    version: int = 1

    @property
    def key(self) -> RespondentKey:
        """What it is registered under."""
        return self.benchmark, self.prompt, self.role, self.name


@dataclass(frozen=True, kw_only=True)
class AnalysisRegistration(Registration[AnalysisFactory]):
    """An analysis; its name is one word for all benchmarks, so that commands stay short."""

    benchmark: str


@dataclass(frozen=True, kw_only=True)
class DataToolRegistration(Registration[DataToolFactory]):
    """A tool; `command` is the word after `harness` that its name follows."""

    command: str


@dataclass(frozen=True, kw_only=True)
class BrokenPlugin:
    """A plugin that could not be loaded, and why."""

    entry_point: str
    distribution: str
    module: str
    error: str
    traceback: str

    def __str__(self) -> str:
        return (
            f"plugin {self.entry_point!r} of {self.distribution} could not be loaded: {self.error}"
        )


class Registry(Mapping[K, R]):
    """Registrations by name; asking for a name that two plugins gave is a PluginError."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._given: dict[K, list[R]] = {}

    def __getitem__(self, name: K) -> R:
        given = self._given[name]
        if len(given) > 1:
            raise PluginError(self._twice(name), hint="uninstall one of them")
        return given[0]

    def __iter__(self) -> Iterator[K]:
        return iter(sorted(self._given))  # type: ignore[type-var]

    def __len__(self) -> int:
        return len(self._given)

    def __contains__(self, name: object) -> bool:
        return name in self._given

    def add(self, name: K, registration: R) -> None:
        """Keep one registration."""
        self._given.setdefault(name, []).append(registration)

    def everything(self) -> Iterator[R]:
        """Every registration, those of a name that was given twice among them."""
        return (registration for given in self._given.values() for registration in given)

    def duplicates(self) -> list[str]:
        """One line for each name that was registered more than once."""
        return [self._twice(name) for name in self if len(self._given[name]) > 1]

    def _twice(self, name: K) -> str:
        shown = ", ".join(map(repr, name)) if isinstance(name, tuple) else repr(name)
        sources = " and by ".join(str(one.origin) for one in self._given[name])
        return f"the {self.kind} {shown} is registered more than once: by {sources}"


@dataclass(frozen=True, kw_only=True)
class Registries:
    """A registry for each kind of thing that plugins register."""

    benchmarks: Registry[str, Registration[BenchmarkFactory]] = field(
        default_factory=lambda: Registry("benchmark")
    )
    models: Registry[str, Registration[ModelFactory]] = field(
        default_factory=lambda: Registry("kind of model")
    )
    judges: Registry[str, JudgeRegistration] = field(default_factory=lambda: Registry("judge"))
    respondents: Registry[RespondentKey, RespondentRegistration] = field(
        default_factory=lambda: Registry("respondent")
    )

    analyses: Registry[str, AnalysisRegistration] = field(
        default_factory=lambda: Registry("analysis")
    )
    data_tools: Registry[ToolKey, DataToolRegistration] = field(
        default_factory=lambda: Registry("tool")
    )

    def all(self) -> tuple[Registry[Any, Any], ...]:
        """Every registry, in the order of `REGISTERING`."""
        return (
            self.benchmarks, self.models, self.judges, self.respondents, self.analyses,
            self.data_tools,
        )  # fmt: skip


class Plugins:
    """What all plugins together offer. Benchmarks are made at first use and kept."""

    def __init__(
        self,
        *,
        manager: pluggy.PluginManager,
        registries: Registries,
        broken: tuple[BrokenPlugin, ...],
        problems: tuple[str, ...],
        bundles: tuple[Bundle, ...],
    ) -> None:
        self._manager = manager
        self._made: dict[str, Benchmark] = {}
        self.benchmarks = registries.benchmarks
        self.models = registries.models
        self.judges = registries.judges
        self.respondents = registries.respondents
        self.analyses = registries.analyses
        self.data_tools = registries.data_tools
        self.broken = broken
        self.problems = problems
        self.bundles = bundles

    @property
    def hook(self) -> pluggy.HookRelay:
        """Calls a hook of all plugins at once."""
        return self._manager.hook

    def notify(self, hook_name: str, event: Any) -> list[str]:
        """Tell every observer of an event; one line for each observer that raised."""
        raised = []
        for implementation in reversed(getattr(self.hook, hook_name).get_hookimpls()):
            arguments = [event] * len(implementation.argnames)
            try:
                implementation.function(*arguments)
            except Exception as error:  # an observer must not end a run
                raised.append(
                    f"{implementation.plugin_name} failed in {hook_name}: {_line_of(error)}"
                )
        return raised

    def has_benchmark(self, name: str) -> bool:
        """Whether a loaded plugin registered a benchmark of that name."""
        return name in self.benchmarks

    def has_model(self, name: str) -> bool:
        """Whether a loaded plugin registered a kind of model of that name."""
        return name in self.models

    def has_judge(self, name: str) -> bool:
        """Whether a loaded plugin registered a judge of that name."""
        return name in self.judges

    def benchmark(self, name: str) -> Benchmark:
        """The benchmark of that name."""
        if name not in self._made:
            self._made[name] = _make(self._registered(self.benchmarks, name))
        return self._made[name]

    def model(self, name: str) -> Registration[ModelFactory]:
        """How to make a model of that kind."""
        return self._registered(self.models, name)

    def judge(self, name: str) -> JudgeRegistration:
        """How to make the judge of that name."""
        return self._registered(self.judges, name)

    def analysis(self, name: str) -> AnalysisRegistration:
        """How to make the analysis of that name."""
        return self._registered(self.analyses, name)

    def data_tool(self, name: str, command: str = DATA) -> DataToolRegistration:
        """How to make the tool of that name of a command."""
        return self._registered(self.tools_of(command), name)

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that tools belong to, sorted."""
        return tuple(sorted({command for command, _ in self.data_tools}))

    def tools_of(self, command: str) -> Registry[str, DataToolRegistration]:
        """The tools of a command; none where no plugin has that command."""
        tools: Registry[str, DataToolRegistration] = Registry(self.data_tools.kind)
        for tool in self.data_tools.everything():
            if tool.command == command:
                tools.add(tool.name, tool)
        return tools

    def respondent(
        self, benchmark: str, prompt: str, role: str, name: str = "default"
    ) -> RespondentRegistration:
        """The baseline respondent that answers a role's prompt of a benchmark."""
        key = (benchmark, prompt, role, name)
        if key in self.respondents:
            return self.respondents[key]
        known = [f"{one[1]}.{one[2]}: {one[3]}" for one in self.respondents if one[0] == benchmark]
        raise PluginError(
            f"no respondent {name!r} answers the prompt {prompt!r} for the role {role!r} "
            f"of the benchmark {benchmark!r}",
            expected=f"one of {'; '.join(known)}" if known else "one registered by its plugin",
            hint=self._broken_lines(self.broken_behind(benchmark)),
        )

    def package_of(self, benchmark_name: str) -> Path:
        """The folder of the package that registered a benchmark; its sample data lies there."""
        origin = self._registered(self.benchmarks, benchmark_name).origin
        if origin.package is None:
            raise PluginError(f"{origin} lies in no folder", found=origin.module)
        return origin.package

    def broken_behind(
        self, benchmark_name: str, bundle_name: str | None = None
    ) -> tuple[BrokenPlugin, ...]:
        """The broken plugins that a benchmark must be of: by its task's bundle, or by its name."""
        return tuple(
            one
            for one in self.broken
            if top_level(one.module) == bundle_name
            or benchmark_name in (one.entry_point, top_level(one.module))
            or top_level(one.module) == f"harness_{benchmark_name}"
        )

    def _registered(self, registry: Registry[str, R], name: str) -> R:
        if name in registry:
            return registry[name]
        behind = self.broken_behind(name) or self.broken
        # Benchmarks are named by task files, all else by the user.
        named_by_user = registry is not self.benchmarks
        raise (UnknownName if named_by_user and not behind else PluginError)(
            f"no plugin offers the {registry.kind} {name!r}",
            expected=f"one of {', '.join(registry)}" if registry else "one that is registered",
            hint=did_you_mean(name, registry) or self._broken_lines(behind),
        )

    @staticmethod
    def _broken_lines(broken: Iterable[BrokenPlugin]) -> str | None:
        return "; ".join(str(one) for one in broken) or None


@functools.cache
def load_plugins() -> Plugins:
    """All installed plugins, loaded once a process."""
    return plugins_from(entry_points(group=GROUP))


def reset() -> None:
    """Forget what is loaded, so that the next `load_plugins` looks again."""
    load_plugins.cache_clear()


def plugins_from(found: Iterable[EntryPoint]) -> Plugins:
    """The plugins behind the entry points, each loaded on its own."""
    points = sorted(found, key=lambda point: (_distribution(point), point.name))
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    registries = Registries()
    broken = []
    problems = []
    for point in points:
        try:
            problems += _load(point, manager, registries)
        except (Exception, SystemExit) as error:  # whatever it is, it costs this plugin alone
            broken.append(_broken(point, error))
    problems += [line for registry in registries.all() for line in registry.duplicates()]
    return Plugins(
        manager=manager,
        registries=registries,
        broken=tuple(broken),
        problems=tuple(problems),
        bundles=tuple(bundles(points)),
    )


def _load(point: EntryPoint, manager: pluggy.PluginManager, registries: Registries) -> list[str]:
    """Load a plugin and keep what it registers, all of it or nothing; its misspelt hooks."""
    plugin = point.load()
    distribution = _distribution(point)
    earlier = manager.get_name(plugin)
    if earlier is not None:
        return [f"plugin {point.name!r} of {distribution} is the same as {earlier}"]
    origin = Origin(
        plugin=point.name,
        distribution=distribution,
        module=point.module,
        package=package_folder(point.module),
    )
    manager.register(plugin, name=str(origin))
    try:
        registered = _registered_by(plugin, manager, origin)
    except BaseException:
        manager.unregister(plugin)
        raise
    for registry, added in zip(registries.all(), registered, strict=True):
        for key, registration in added:
            registry.add(key, registration)
    return _misspelt(plugin, manager, origin)


def _registered_by(
    plugin: object, manager: pluggy.PluginManager, origin: Origin
) -> tuple[list[tuple[Any, Any]], ...]:
    """What one plugin registers: a list of keys and registrations for each registry."""
    benchmarks: list[tuple[Any, Any]] = []
    models: list[tuple[Any, Any]] = []
    judges: list[tuple[Any, Any]] = []
    respondents: list[tuple[Any, Any]] = []
    analyses: list[tuple[Any, Any]] = []
    data_tools: list[tuple[Any, Any]] = []

    def add_benchmark(name: str, factory: BenchmarkFactory) -> None:
        benchmarks.append((name, Registration(name=name, factory=factory, origin=origin)))

    def add_model(name: str, factory: ModelFactory, *, description: str = "") -> None:
        registration = Registration(
            name=name, factory=factory, origin=origin, description=description
        )
        models.append((name, registration))

    def add_judge(
        name: str, factory: JudgeFactory, *, needs_model: bool = False, description: str = ""
    ) -> None:
        registration = JudgeRegistration(
            name=name, factory=factory, origin=origin, description=description,
            needs_model=needs_model,
        )  # fmt: skip
        judges.append((name, registration))

    def add_respondent(
        benchmark: str,
        prompt: str,
        role: str,
        respond: Callable[[], Respondent],
        *,
        name: str = "default",
        version: int = 1,
    ) -> None:
        registration = RespondentRegistration(
            name=name, factory=respond, origin=origin, benchmark=benchmark, prompt=prompt,
            role=role, version=version,
        )  # fmt: skip
        respondents.append((registration.key, registration))

    def add_analysis(
        benchmark: str, name: str, factory: AnalysisFactory, *, description: str = ""
    ) -> None:
        registration = AnalysisRegistration(
            name=name, factory=factory, origin=origin, description=description, benchmark=benchmark
        )
        analyses.append((name, registration))

    def add_data_tool(
        name: str, factory: DataToolFactory, *, description: str = "", command: str = DATA
    ) -> None:
        check_command(command, tool=name)
        registration = DataToolRegistration(
            name=name, factory=factory, origin=origin, description=description, command=command
        )
        data_tools.append(((command, name), registration))

    others = [one for one in manager.get_plugins() if one is not plugin]
    adders = (
        add_benchmark, add_model, add_judge, add_respondent, add_analysis, add_data_tool,
    )  # fmt: skip
    for hook_name, register in zip(REGISTERING, adders, strict=True):
        manager.subset_hook_caller(hook_name, others)(register=register)
    return benchmarks, models, judges, respondents, analyses, data_tools


def check_command(command: str, *, tool: str) -> None:
    """Raise PluginError for a word after `harness` that no tool can be found by."""
    if command in TAKEN or not COMMAND.fullmatch(command):
        taken = "a command of the harness itself, " if command in TAKEN else ""
        raise PluginError(
            f"the tool {tool!r} cannot belong to {taken}{command!r}",
            expected=f"letters, digits and _, and none of {', '.join(TAKEN)}",
        )


def _misspelt(plugin: object, manager: pluggy.PluginManager, origin: Origin) -> list[str]:
    specified = [
        name for name in dir(hookspecs) if manager.parse_hookspec_opts(hookspecs, name) is not None
    ]
    problems = []
    for caller in manager.get_hookcallers(plugin) or ():
        optional = all(one.optionalhook for one in caller.get_hookimpls() if one.plugin is plugin)
        if not caller.has_spec() and not optional:
            near = did_you_mean(caller.name, specified)
            problems.append(
                f"{origin} implements {caller.name!r}, which is no hook"
                + (f": {near}" if near else "")
            )
    return problems


def _make(registration: Registration[BenchmarkFactory]) -> Benchmark:
    try:
        benchmark = registration.factory()
    except HarnessError:
        raise
    except Exception as error:
        raise PluginError(
            f"the benchmark {registration.name!r} cannot be made",
            where=str(registration.origin),
            found=_line_of(error),
        ) from error
    if benchmark.name != registration.name:
        raise PluginError(
            f"the benchmark registered as {registration.name!r} calls itself {benchmark.name!r}",
            where=str(registration.origin),
            expected="one name",
        )
    return benchmark


def _broken(point: EntryPoint, error: BaseException) -> BrokenPlugin:
    return BrokenPlugin(
        entry_point=point.name,
        distribution=_distribution(point),
        module=point.value.partition(":")[0].strip(),
        error=_line_of(error),
        traceback="".join(traceback.format_exception(error)),
    )


def _line_of(error: BaseException) -> str:
    """The last line of a traceback: the kind of error and what it says."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unknown distribution"
