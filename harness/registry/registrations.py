"""What plugins register, by name and with where it came from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from harness.base.errors import PluginError
from harness.registry.hookspecs import (
    AnalysisFactory,
    BenchmarkFactory,
    DataToolFactory,
    JudgeFactory,
    ModelFactory,
    Respondent,
)

if TYPE_CHECKING:
    from harness.contracts.judge import Stands

K = TypeVar("K", bound=Hashable)
F = TypeVar("F")
R = TypeVar("R", bound="Registration[Any]")

RespondentKey = tuple[str, str, str, str]
"""Benchmark, prompt, role and the respondent's own name."""

ToolKey = tuple[str, str]
"""A command, and the name of a tool of it."""


REGISTERING = (
    "register_benchmarks",
    "register_models",
    "register_judges",
    "register_respondents",
    "register_analyses",
    "register_data_tools",
)
"""The hooks that register something."""


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

    def __post_init__(self) -> None:
        """Raise PluginError for what could not be shown or called later."""
        for word in ("name", "benchmark", "prompt", "role", "command"):
            said = getattr(self, word, word)
            if not (isinstance(said, str) and said.strip()):
                raise PluginError(f"{self.name!r} was registered with {said!r} as its {word}")
        if not callable(self.factory):
            raise PluginError(f"{self.name!r} was registered with {self.factory!r}, no function")
        arguments: Mapping[Any, Any] = getattr(self, "arguments", {})
        for text in (self.description, *arguments, *arguments.values()):
            if not isinstance(text, str):
                raise PluginError(f"{self.name!r} is described with {text!r}, which is no text")


@dataclass(frozen=True, kw_only=True)
class ModelRegistration(Registration[ModelFactory]):
    """A kind of model; `arguments` say what each of its arguments means."""

    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class JudgeRegistration(Registration[JudgeFactory]):
    """A judge adapter, and what it stands on."""

    on: Stands = "alone"
    arguments: Mapping[str, str] = field(default_factory=dict)


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


class Registry(Mapping[K, R]):
    """Registrations by name; asking for a name that two plugins gave is a PluginError."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._given: dict[K, list[R]] = {}

    def __getitem__(self, name: K) -> R:
        given = self._given[name]
        if len(given) > 1:
            raise PluginError(
                self._twice(name),
                expected="one plugin for a name",
                hint="uninstall one of them",
            )
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

    def duplicates(self, *, of: Origin | None = None) -> list[str]:
        """One line for each name that was registered more than once, by that origin if given."""
        return [
            self._twice(name)
            for name in self
            if len(self._given[name]) > 1
            and (of is None or any(one.origin == of for one in self._given[name]))
        ]

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
    models: Registry[str, ModelRegistration] = field(
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
