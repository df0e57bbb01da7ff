"""What a plugin offers beside benchmarks: analyses of stored runs, and tools for data."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from harness.pipeline.benchmark import NoOptions

if TYPE_CHECKING:
    from harness.results.kept import KeptTask
    from harness.results.report import Report


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


def analysis_in(
    module: str, *, name: str, description: str, run: str = "run", options: str = "Options"
) -> Analysis:
    """The analysis that a function of a module makes, with the module's type of its options.

        analysis_in("harness_mine.curves", name="mine-sizes", description="scores by size",
                    run="sizes", options="SizeOptions")

    It has no options where the module has no type of that name.
    """
    found = importlib.import_module(module)
    return Analysis(
        name=name,
        description=description,
        run=getattr(found, run),
        options=getattr(found, options, NoOptions),
    )
