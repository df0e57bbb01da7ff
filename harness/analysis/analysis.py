"""What a plugin offers beside benchmarks: analyses of stored runs, and tools for data."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from harness.contracts.benchmark import NoOptions

if TYPE_CHECKING:
    from harness.contracts.report import Report
    from harness.scoring.finished_task import KeptTask


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """A view on stored runs of one benchmark; a pure function of what they hold.

    `run` is given the tasks of all runs named, and options of the type `options`, whose fields are
    the command's own options: `Annotated[str, msgspec.Meta(description="…")]` is one with its help.
    """

    name: str
    description: str
    run: Callable[[Sequence[KeptTask], Any], Report]
    options: type[msgspec.Struct] = NoOptions


@dataclass(frozen=True, kw_only=True)
class DataTool:
    """A tool of `harness data`, or of a plugin's own command: may write files, and reports on it.

    The fields of `options` are the command's options, as in `Analysis`.
    """

    name: str
    description: str
    run: Callable[[Any], Report]
    options: type[msgspec.Struct] = NoOptions


def analysis_from(function: str, *, name: str, description: str) -> Analysis:
    """The analysis that a function makes; its options are of the type that it annotates.

    analysis_from("harness_mine.analyses.scores.forest", name="mine-forest", description="…")
    """
    run, options = _imported(function)
    return Analysis(name=name, description=description, run=run, options=options)


def tool_from(function: str, *, name: str, description: str) -> DataTool:
    """The data tool that a function makes; its options are of the type that it annotates.

    tool_from("harness_mine.logs.describe.run", name="mine-describe", description="…")
    """
    run, options = _imported(function)
    return DataTool(name=name, description=description, run=run, options=options)


def _imported(function: str) -> tuple[Callable[..., Report], type[msgspec.Struct]]:
    """A function by its full name, and the type of its last parameter; `object` is no options."""
    module_name, _, function_name = function.rpartition(".")
    module = importlib.import_module(module_name)
    run = getattr(module, function_name)
    *_, options, _report = run.__annotations__.values()
    return run, NoOptions if options == "object" else getattr(module, options)
