"""The registrations of plugins, by name and with their origin."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from harness.base.errors import PluginError
from harness.registry.hookspecs import (
    AnalysisFactory,
    BenchmarkFactory,
    DataToolFactory,
    EmbedderFactory,
    ExecutorFactory,
    JudgeFactory,
    ModelFactory,
    Respondent,
)

if TYPE_CHECKING:
    from harness.contracts.judge import JudgeInput

K = TypeVar("K", bound=Hashable)
F = TypeVar("F")
R = TypeVar("R", bound="Registration[Any]")

RespondentKey = tuple[str, str, str, str]
"""Benchmark, prompt, role and the respondent's name."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The plugin behind a registration; `package` is the folder of its top-level package."""

    plugin: str
    distribution: str
    module: str
    package: Path | None

    def __str__(self) -> str:
        return f"plugin {self.plugin!r} of {self.distribution}"


@dataclass(frozen=True, kw_only=True)
class Registration(Generic[F]):
    """A name with the factory that a plugin registered for it."""

    name: str
    factory: F
    origin: Origin
    description: str = ""

    def __post_init__(self) -> None:
        """Raise PluginError for what would break the lists of all plugins."""
        for text in (self.name, self.description):
            if not isinstance(text, str):
                raise PluginError(f"{self.name!r} was registered with {text!r}, which is no text")


@dataclass(frozen=True, kw_only=True)
class ModelRegistration(Registration[ModelFactory]):
    """A kind of model; `arguments` holds the help of each of its arguments.

    `shared` are the arguments that suit all weights of a candidate's kind in its place.
    """

    arguments: Mapping[str, str] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class JudgeRegistration(Registration[JudgeFactory]):
    """A judge adapter; `on` is what it wraps, `arguments` the help of its arguments."""

    on: JudgeInput = "alone"
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EmbedderRegistration(Registration[EmbedderFactory]):
    """A kind of embedder; `arguments` holds the help of each of its arguments."""

    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RespondentRegistration(Registration[Callable[[], Respondent]]):
    """A baseline respondent; its factory returns the function that answers."""

    benchmark: str
    prompt: str
    role: str
    version: int = 1

    @property
    def key(self) -> RespondentKey:
        """The key of the registration."""
        return self.benchmark, self.prompt, self.role, self.name


@dataclass(frozen=True, kw_only=True)
class AnalysisRegistration(Registration[AnalysisFactory]):
    """An analysis; its name is unique over all benchmarks, so that commands stay short.

    `report` is whether a report shows it by itself.
    """

    benchmark: str
    report: bool = False


@dataclass(frozen=True, kw_only=True)
class DataToolRegistration(Registration[DataToolFactory]):
    """A data tool, called by `harness COMMAND NAME`."""

    command: str


class Registry(Mapping[K, R]):
    """Registrations by name; PluginError on access to a name that two plugins registered."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._given: dict[K, list[R]] = {}

    def __getitem__(self, name: K) -> R:
        given = self._given[name]
        if len(given) > 1:
            raise PluginError(
                self._twice(name),
                expected="each name from one plugin only",
                hint="uninstall one of the plugins",
            )
        return given[0]

    def __iter__(self) -> Iterator[K]:
        return iter(sorted(self._given, key=str))

    def __len__(self) -> int:
        return len(self._given)

    def __contains__(self, name: object) -> bool:
        return name in self._given

    def add(self, name: K, registration: R) -> None:
        """Add a registration."""
        self._given.setdefault(name, []).append(registration)

    def everything(self) -> Iterator[R]:
        """Every registration, including all registrations of a repeated name."""
        return (registration for given in self._given.values() for registration in given)

    def duplicates(self, *, of: Origin | None = None) -> list[str]:
        """A line for each name that was registered more than once, by `of` if given."""
        return [
            self._twice(name)
            for name in self
            if len(self._given[name]) > 1
            and (of is None or any(one.origin == of for one in self._given[name]))
        ]

    def _twice(self, name: K) -> str:
        text = ", ".join(map(repr, name)) if isinstance(name, tuple) else repr(name)
        sources = " and by ".join(str(one.origin) for one in self._given[name])
        return f"the {self.kind} {text} is registered more than once: by {sources}"


@dataclass(kw_only=True, eq=False)
class Registries:
    """The registries of all kinds, each filled by the hook `register_` with its name."""

    benchmarks: Registry[str, Registration[BenchmarkFactory]] = field(
        default_factory=lambda: Registry("benchmark")
    )
    models: Registry[str, ModelRegistration] = field(
        default_factory=lambda: Registry("kind of model")
    )
    judges: Registry[str, JudgeRegistration] = field(default_factory=lambda: Registry("judge"))
    embedders: Registry[str, EmbedderRegistration] = field(
        default_factory=lambda: Registry("kind of embedder")
    )
    executors: Registry[str, Registration[ExecutorFactory]] = field(
        default_factory=lambda: Registry("executor")
    )
    respondents: Registry[RespondentKey, RespondentRegistration] = field(
        default_factory=lambda: Registry("respondent")
    )
    analyses: Registry[str, AnalysisRegistration] = field(
        default_factory=lambda: Registry("analysis")
    )
    data_tools: Registry[tuple[str, str], DataToolRegistration] = field(
        default_factory=lambda: Registry("tool")
    )

    def by_kind(self) -> dict[str, Registry[Any, Any]]:
        """Every registry by its name, such as `data_tools`."""
        return {each.name: getattr(self, each.name) for each in fields(Registries)}
