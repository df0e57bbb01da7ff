"""Analyses of finished runs and data tools, which plugins offer besides benchmarks."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

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


class Progress(Protocol):
    """Shows how far a tool has come: how much of what is done, and of how much, if that is known.

    progress("categories", 3, 33)
    """

    def __call__(self, what: str, done: int, of: int | None = None) -> None: ...


@dataclass(frozen=True, kw_only=True)
class DataTool:
    """A tool of `harness data` or of a plugin's own command; it may write files.

    `name`, `description` and `options` are the same as in `Analysis`. `run` gets an instance of
    `options` and what shows its progress, and returns a report on what it did. A tool that works
    for long turns KeyboardInterrupt into `Interrupted`, whose hint says what is kept. If it
    `continues`, it goes on with what it left unfinished in the folder of its option `out`.
    """

    name: str
    description: str
    run: Callable[[Any, Progress], Report]
    options: type[msgspec.Struct] = NoOptions
    continues: bool = False


def analysis_from(function: str, *, name: str, description: str) -> Analysis:
    """The analysis that a function makes; its options are of the type that it annotates.

    analysis_from("harness_mine.analyses.scores.forest", name="mine-forest", description="…")
    """
    run, options = _imported(function)
    return Analysis(name=name, description=description, run=run, options=options)


def tool_from(function: str, *, name: str, description: str, continues: bool = False) -> DataTool:
    """The data tool that a function makes; its options are of the type that it annotates.

    The function is `run(options, progress)`, or `run(options)` if its work is short.

    tool_from("harness_mine.logs.describe.run", name="mine-describe", description="…")
    """
    run, options = _imported(function)
    shows = "progress" in run.__annotations__
    return DataTool(
        name=name,
        description=description,
        run=run if shows else lambda given, _: run(given),
        options=options,
        continues=continues,
    )


def no_progress(what: str, done: int, of: int | None = None) -> None:
    """Shows nothing."""


def _imported(function: str) -> tuple[Callable[..., Report], type[msgspec.Struct]]:
    """A function by its full name, and the type of its options; `object` is no options."""
    module_name, _, function_name = function.rpartition(".")
    module = importlib.import_module(module_name)
    run = getattr(module, function_name)
    annotated = {name: kind for name, kind in run.__annotations__.items() if name != "progress"}
    *_, options, _report = annotated.values()
    if options in ("object", object):
        return run, NoOptions
    # A module that does not postpone annotations has the type itself.
    return run, getattr(module, options) if isinstance(options, str) else options
