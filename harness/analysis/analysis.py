"""Analyses of finished runs and data tools, which plugins offer besides benchmarks."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from harness.contracts.benchmark import NoOptions

if TYPE_CHECKING:
    from harness.contracts.report import Report
    from harness.scoring.finished_task import FinishedTask


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """A view of finished runs of one benchmark: a pure function of what the runs hold.

    `name` is its name in `harness analyse NAME RUN…` and `description` its help. `run` gets the
    tasks of all these runs and an instance of `options`, and returns the report. The fields of
    `options` become the command's options, each with its help:
    `Annotated[str, msgspec.Meta(description="…")]`.
    """

    name: str
    description: str
    run: Callable[[Sequence[FinishedTask], Any], Report]
    options: type[msgspec.Struct] = NoOptions


@dataclass(frozen=True, kw_only=True)
class DataTool:
    """A tool of `harness data` or of a plugin's own command; it may write files.

    `name`, `description` and `options` are the same as in `Analysis`. `run` gets an instance of
    `options` and returns a report on what it did.
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
