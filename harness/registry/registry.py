"""The installed plugins, loaded one by one, and everything that they registered."""

from __future__ import annotations

import dataclasses
import functools
import os
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import pluggy

from harness.base.errors import HarnessError, PluginError, UnknownName, did_you_mean, one_of
from harness.base.redaction import without_key_material
from harness.base.resources import Bundle, bundles, package_folder
from harness.registry import hookspecs
from harness.registry.hookspecs import (
    ANY_BENCHMARK,
    DATA,
    KINDS,
    AnalysisRegistration,
    BenchmarkRegistration,
    DataToolRegistration,
    EmbedderRegistration,
    ExecutorRegistration,
    JudgeRegistration,
    MetricRegistration,
    ModelRegistration,
    Origin,
    Registration,
    RespondentRegistration,
    hint_for,
)

if TYPE_CHECKING:
    from harness.contracts.benchmark import Benchmark

K = TypeVar("K", bound=Hashable)
R = TypeVar("R", bound=Registration[Any])
P = ParamSpec("P")
T = TypeVar("T")

GROUP = "harness.plugins"

CHOSEN = "HARNESS_PLUGINS"
"""The environment variable with the names of the plugins to load; all are loaded without it."""


class Registry(Mapping[K, R]):
    """Registrations by key; PluginError on access to a name that two plugins registered."""

    def __init__(self, kind: str, registrations: Iterable[R] = ()) -> None:
        self.kind = kind
        self._given: dict[K, list[R]] = {}
        for one in registrations:
            self.add(one)

    def __getitem__(self, key: K) -> R:
        first, *others = self._given[key]
        if others:
            raise PluginError(
                self._twice(key),
                expected="each name from one plugin only",
                hint="uninstall one of the plugins",
            )
        return first

    def __iter__(self) -> Iterator[K]:
        return iter(sorted(self._given, key=str))

    def __len__(self) -> int:
        return len(self._given)

    def __contains__(self, key: object) -> bool:
        return key in self._given

    def add(self, registration: R) -> None:
        """Add a registration."""
        self._given.setdefault(registration.key, []).append(registration)

    def everything(self) -> Iterator[R]:
        """Every registration, including all registrations of a repeated name."""
        return (one for given in self._given.values() for one in given)

    def duplicates(self, *, of: Origin | None = None) -> list[str]:
        """A line for each name that was registered more than once, by `of` if given."""
        return [
            self._twice(key)
            for key in self
            if len(given := self._given[key]) > 1
            and (of is None or any(str(one.origin) == str(of) for one in given))
        ]

    def _twice(self, key: K) -> str:
        given = self._given[key]
        text = ", ".join(map(repr, key)) if isinstance(key, tuple) else repr(key)
        sources = " and by ".join(str(one.origin) for one in given)
        return f"the {self.kind} {text} is registered more than once: by {sources}"


@dataclass(frozen=True, kw_only=True)
class LoadedPlugin(Origin):
    """A loaded plugin with the hooks that it implements; `problems` names misspelt hooks."""

    hooks: tuple[str, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BrokenPlugin(Origin):
    """A plugin that could not be loaded, with the error and its traceback."""

    error: str
    traceback: str

    def __str__(self) -> str:
        return f"{super().__str__()} could not be loaded: {self.error}"


class Plugins:
    """Everything that the plugins registered. Benchmarks are made at first use and kept."""

    def __init__(
        self,
        manager: pluggy.PluginManager,
        *,
        bundles: Sequence[Bundle] = (),
        left_out: Sequence[Origin] = (),
    ) -> None:
        self.manager = manager
        self.benchmarks: Registry[str, BenchmarkRegistration] = Registry("benchmark")
        self.models: Registry[str, ModelRegistration] = Registry("kind of model")
        self.judges: Registry[str, JudgeRegistration] = Registry("judge")
        self.embedders: Registry[str, EmbedderRegistration] = Registry("kind of embedder")
        self.executors: Registry[str, ExecutorRegistration] = Registry("executor")
        self.respondents: Registry[tuple[str, ...], RespondentRegistration] = Registry("respondent")
        self.metrics: Registry[tuple[str, ...], MetricRegistration] = Registry("metric")
        self.analyses: Registry[str, AnalysisRegistration] = Registry("analysis")
        self.data_tools: Registry[tuple[str, ...], DataToolRegistration] = Registry("tool")
        self.broken: tuple[BrokenPlugin, ...] = ()
        self.problems: tuple[str, ...] = ()
        self.loaded: tuple[LoadedPlugin, ...] = ()
        self.bundles = tuple(bundles)
        self.left_out = tuple(left_out)
        self._made: dict[str, Benchmark] = {}

    def by_kind(self) -> dict[str, Registry[Any, Any]]:
        """Every registry by its name, such as `data_tools`."""
        return {kind: getattr(self, kind) for kind in KINDS}

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
        if found := [*map(str, self.broken), *self.problems]:
            raise PluginError(
                "plugin problems found (--strict_plugins)",
                found="\n            ".join(found),
                expected="plugins that load, hooks that exist, and names that one plugin registers",
                hint="`harness list plugins NAME` shows one plugin; HARNESS_PLUGINS=a,b loads only "
                "these",
            )

    def problems_of(self, plugin: LoadedPlugin) -> tuple[str, ...]:
        """The problems of a plugin: misspelt hooks, and names that another plugin registers too."""
        registries = self.by_kind().values()
        twice = (line for one in registries for line in one.duplicates(of=plugin))
        return (*plugin.problems, *twice)

    def registered_by(self, plugin: LoadedPlugin) -> dict[str, tuple[Registration[Any], ...]]:
        """The registrations of a plugin by kind, such as `data_tools`; empty kinds are left out."""
        found = {
            kind: tuple(one for one in registry.everything() if str(one.origin) == str(plugin))
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
            self._made[name] = self._with_added_metrics(benchmark)
        return self._made[name]

    def _with_added_metrics(self, benchmark: Benchmark) -> Benchmark:
        keys = [key for key in self.metrics if key[0] == benchmark.name]
        added = {key[1]: self.metrics[key] for key in keys}
        for name, registration in added.items():
            if name in benchmark.metrics:
                raise PluginError(
                    f"the benchmark {benchmark.name!r} has a metric {name!r} of its own",
                    where=str(registration.origin),
                    expected="another name in register_metrics",
                    hint="uninstall the plugin, or leave it out with HARNESS_PLUGINS",
                )
        if not added:
            return benchmark
        metrics = {name: one.factory for name, one in added.items()}
        return dataclasses.replace(benchmark, metrics={**benchmark.metrics, **metrics})

    def model(self, name: str) -> ModelRegistration:
        """The registration of a kind of model."""
        return self._registered(self.models, name)

    def judge(self, name: str) -> JudgeRegistration:
        """The registration of a judge."""
        return self._registered(self.judges, name)

    def embedder(self, name: str) -> EmbedderRegistration:
        """The registration of a kind of embedder."""
        return self._registered(self.embedders, name)

    def executor(self, name: str) -> ExecutorRegistration:
        """The registration of an executor; `local` is the harness itself and has none."""
        known = ["local", *self.executors]
        return self._registered(self.executors, name, known, where=f"--executor {name}")

    def analysis(self, name: str) -> AnalysisRegistration:
        """The registration of an analysis."""
        return self._registered(self.analyses, name)

    def data_tool(self, name: str, command: str = DATA) -> DataToolRegistration:
        """The registration of a data tool of a command."""
        known = [one for owner, one in self.data_tools if owner == command]
        key = (command, name) if name in known else name
        return self._registered(self.data_tools, key, known)

    def tools_of(self, command: str) -> Registry[tuple[str, ...], DataToolRegistration]:
        """The tools of a command; empty where no plugin has that command."""
        tools = (one for one in self.data_tools.everything() if one.command == command)
        return Registry(self.data_tools.kind, tools)

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that tools belong to, sorted."""
        return tuple(sorted({command for command, _ in self.data_tools}))

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
            hint="; ".join(map(str, self.broken)) or None,
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

    def _registered(
        self,
        registry: Registry[Any, R],
        key: Any,
        known: Sequence[str] | None = None,
        *,
        where: str | None = None,
    ) -> R:
        if key in registry:
            return registry[key]
        known = [*registry] if known is None else known
        left_out = ", ".join(one.plugin for one in self.left_out)  # one may have the name
        kinds = "a model behind a server is openai:NAME; `harness list models` lists all kinds"
        # Task files name benchmarks, and the user names everything else.
        named_by_user = registry is not self.benchmarks
        raise (UnknownName if named_by_user and not self.broken else PluginError)(
            f"no plugin offers the {registry.kind} {key!r}",
            where=where,
            expected=f"one of {', '.join(known)}" if known else "a name that a plugin registers",
            hint=did_you_mean(key, known)
            or "; ".join(map(str, self.broken))
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
            hint=hint_for(error, registration.origin.distribution)
            or "fix the plugin, or report this to its developers",
        ) from error


def line_of(error: BaseException) -> str:
    """The last line of a traceback without secrets: the class of the error and its message."""
    lines = str(error).strip().split("\n")
    # Pluggy puts the problem of a hook last, below the names of hook and plugin.
    text = "; ".join(lines) if isinstance(error, pluggy.PluginValidationError) else lines[0]
    line = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return str(without_key_material(line))


@functools.cache
def load_plugins() -> Plugins:
    """All installed plugins, loaded once in each process."""
    return plugins_from(entry_points(group=GROUP), only=os.environ.get(CHOSEN))


def reset() -> None:
    """Forget the loaded plugins, so that the next `load_plugins` loads again."""
    load_plugins.cache_clear()


def plugins_from(found: Iterable[EntryPoint], *, only: str | None = None) -> Plugins:
    """The plugins behind the entry points, each loaded on its own.

    `only` names the wanted plugins by entry point or distribution, separated by commas: the others
    are left out, with their tasks and prompts. UsageError for a name that no plugin has.
    """
    points = sorted(found, key=lambda point: (_distribution(point), point.name))
    wanted = _wanted(points, only)
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    plugins = Plugins(
        manager,
        bundles=bundles(wanted),
        left_out=[Origin(**_declared(point)) for point in points if point not in wanted],
    )
    plugins.analyses.add(_forest())
    for point in wanted:
        try:
            plugins.loaded += (_load(point, plugins),)
        except (Exception, SystemExit) as error:  # foreign code: the other plugins still load
            trace = without_key_material("".join(traceback.format_exception(error)))
            broken = BrokenPlugin(**_declared(point), error=line_of(error), traceback=trace)
            plugins.broken += (broken,)
    plugins.problems = tuple(line for one in plugins.loaded for line in one.problems)
    for registry in plugins.by_kind().values():
        plugins.problems += tuple(registry.duplicates())
    return plugins


def _forest() -> AnalysisRegistration:
    """The one analysis of the harness itself, for the runs of all benchmarks."""
    from harness.analysis.analysis import analysis_from

    about = "each metric of each run, with its interval"
    make = functools.partial(
        analysis_from, "harness.analysis.forest.run", name="forest", description=about
    )
    return AnalysisRegistration(ANY_BENCHMARK, "forest", make, description=about)


def _wanted(points: Sequence[EntryPoint], only: str | None) -> list[EntryPoint]:
    names = {name.strip() for name in (only or "").split(",") if name.strip()}
    if not names:
        return list(points)
    known = {word for point in points for word in (point.name, _distribution(point))}
    listed = ", ".join(sorted({point.name for point in points}))
    for name in sorted(names - known):
        problem = f"{CHOSEN} names a plugin that is not installed: {name!r}"
        one_of(name, known, problem, found=only, listed=listed, none="no name: none is installed")
    return [point for point in points if {point.name, _distribution(point)} & names]


def _load(point: EntryPoint, plugins: Plugins) -> LoadedPlugin:
    """Load a plugin and add all its registrations, or none where it fails."""
    plugin, manager = point.load(), plugins.manager
    if earlier := manager.get_name(plugin):
        raise PluginError(f"the plugin is the same object as {earlier}, which is loaded")
    origin = Origin(**_declared(point))
    registered: list[tuple[str, Registration[Any]]] = []

    def register(kind: str, *given: Any, **named: Any) -> None:
        # None is what a plugin writes for arguments that its kind does not have.
        given_by_name = {name: value for name, value in named.items() if value is not None}
        registered.append((kind, KINDS[kind](*given, **given_by_name, origin=origin)))

    try:
        manager.register(plugin, name=str(origin))
        others = [one for one in manager.get_plugins() if one is not plugin]
        for kind in KINDS:
            caller = manager.subset_hook_caller(f"register_{kind}", others)
            caller(register=functools.partial(register, kind))
    except BaseException:
        if manager.is_registered(plugin):
            manager.unregister(plugin)
        raise
    for kind, registration in registered:
        plugins.by_kind()[kind].add(registration)
    known = [one for one in vars(hookspecs) if manager.parse_hookspec_opts(hookspecs, one)]
    hooks, problems = set[str](), []
    for hook in manager.get_hookcallers(plugin) or ():
        hooks.add(hook.name)
        optional = all(one.optionalhook for one in hook.get_hookimpls() if one.plugin is plugin)
        if not hook.has_spec() and not optional:
            near = did_you_mean(hook.name, known)
            line = f"{origin} implements {hook.name!r}, which is no hook"
            problems.append(f"{line}: {near}" if near else line)
    return LoadedPlugin(
        **vars(origin),
        hooks=tuple(name for name in known if name in hooks),
        problems=tuple(problems),
    )


def _declared(point: EntryPoint) -> dict[str, Any]:
    return {
        "plugin": point.name,
        "distribution": _distribution(point),
        "module": point.value.partition(":")[0].strip(),
        "package": package_folder(point.value),
        "version": point.dist.version if point.dist is not None else "",
    }


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unknown distribution"
