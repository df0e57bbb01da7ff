"""Collects everything that one plugin registers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

from harness.base.errors import PluginError
from harness.registry.hookspecs import (
    DATA,
    TAKEN,
    TAKEN_TOOLS,
    AnalysisFactory,
    BenchmarkFactory,
    DataToolFactory,
    EmbedderFactory,
    ExecutorFactory,
    JudgeFactory,
    ModelFactory,
    Respondent,
)
from harness.registry.registrations import (
    AnalysisRegistration,
    DataToolRegistration,
    EmbedderRegistration,
    JudgeRegistration,
    ModelRegistration,
    Origin,
    Registration,
    RespondentRegistration,
)

if TYPE_CHECKING:
    from harness.contracts.judge import JudgeInput

COMMAND = re.compile(r"[A-Za-z]\w*", re.ASCII)


def registered_by(
    plugin: object, manager: pluggy.PluginManager, origin: Origin
) -> dict[str, list[tuple[Any, Any]]]:
    """The keys and registrations of one plugin by registry, such as `data_tools`."""
    found: dict[str, list[tuple[Any, Any]]] = defaultdict(list)

    def keep(kind: str, registration: Registration[Any], key: Any = None) -> None:
        found[kind].append((key or registration.name, registration))

    def add_benchmark(name: str, factory: BenchmarkFactory) -> None:
        keep("benchmarks", Registration(name=name, factory=factory, origin=origin))

    def add_model(
        name: str,
        factory: ModelFactory,
        *,
        description: str = "",
        arguments: Mapping[str, str] | None = None,
        shared: Collection[str] = (),
    ) -> None:
        keep("models", ModelRegistration(
            name=name, factory=factory, origin=origin, description=description,
            arguments=dict(arguments or {}), shared=frozenset(shared),
        ))  # fmt: skip

    def add_judge(
        name: str,
        factory: JudgeFactory,
        *,
        on: JudgeInput = "alone",
        description: str = "",
        arguments: Mapping[str, str] | None = None,
    ) -> None:
        keep("judges", JudgeRegistration(
            name=name, factory=factory, origin=origin, description=description,
            on=on, arguments=dict(arguments or {}),
        ))  # fmt: skip

    def add_embedder(
        name: str,
        factory: EmbedderFactory,
        *,
        description: str = "",
        arguments: Mapping[str, str] | None = None,
    ) -> None:
        keep("embedders", EmbedderRegistration(
            name=name, factory=factory, origin=origin, description=description,
            arguments=dict(arguments or {}),
        ))  # fmt: skip

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
        keep("respondents", registration, registration.key)

    def add_analysis(benchmark: str, name: str, factory: AnalysisFactory, **about: Any) -> None:
        keep("analyses", AnalysisRegistration(
            name=name, factory=factory, origin=origin, benchmark=benchmark, **about
        ))  # fmt: skip

    def add_data_tool(
        name: str, factory: DataToolFactory, *, description: str = "", command: str = DATA
    ) -> None:
        check_command(command, tool=name)
        registration = DataToolRegistration(
            name=name, factory=factory, origin=origin, description=description, command=command
        )
        keep("data_tools", registration, (command, name))

    def add_executor(name: str, factory: ExecutorFactory, *, description: str = "") -> None:
        keep("executors", Registration(
            name=name, factory=factory, origin=origin, description=description
        ))  # fmt: skip

    adders: dict[str, Callable[..., None]] = {
        "benchmarks": add_benchmark,
        "models": add_model,
        "judges": add_judge,
        "embedders": add_embedder,
        "executors": add_executor,
        "respondents": add_respondent,
        "analyses": add_analysis,
        "data_tools": add_data_tool,
    }
    others = [one for one in manager.get_plugins() if one is not plugin]
    for kind, register in adders.items():
        manager.subset_hook_caller(f"register_{kind}", others)(register=register)
    return found


def check_command(command: str, *, tool: str) -> None:
    """Raise PluginError for a word after `harness` that cannot be a plugin's command."""
    if command in TAKEN or not COMMAND.fullmatch(command):
        taken = "a command of the harness itself, " if command in TAKEN else ""
        raise PluginError(
            f"the tool {tool!r} cannot belong to {taken}{command!r}",
            expected=f"a command of letters, digits and _, other than {', '.join(TAKEN)}",
        )
    if command == DATA and tool in TAKEN_TOOLS:
        raise PluginError(
            f"the tool {tool!r} cannot belong to {command!r}, where the harness has this name",
            expected=f"a name other than {', '.join(TAKEN_TOOLS)}, or another command",
        )
