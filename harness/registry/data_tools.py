"""Tools and analyses of plugins: run, and as the step that builds a task's data."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.base.errors import HarnessError, PluginError, TaskError, one_of
from harness.data.fetch import BuildTool
from harness.registry.hookspecs import hint_for
from harness.registry.registry import made
from harness.tasks.shapes import Misfit
from harness.tasks.task_schema import dotted, short, typed

if TYPE_CHECKING:
    from harness.analysis.analysis import DataTool, Progress
    from harness.contracts.report import Report
    from harness.contracts.task import BuildSpec
    from harness.registry.hookspecs import Registration
    from harness.registry.registry import Plugins

OUT = "out"
"""The option with the folder that a tool writes to."""


def run_tool(registration: Registration[Any], run: Callable[[], Report]) -> Report:
    """The report of a tool; PluginError if the tool fails."""
    try:
        return run()
    except HarnessError:
        raise
    except Exception as error:
        install = hint_for(error, registration.origin.distribution)
        trace = traceback.format_exc(limit=-4).strip()
        raise PluginError(
            f"{registration.name!r} failed",
            where=str(registration.origin),
            found=str(error) if install else trace,
            hint=install or "fix the plugin, or report this to its developers",
        ) from error


def build_tool(plugins: Plugins, spec: BuildSpec) -> BuildTool:
    """The data tool that a task's data is built with; TaskError if its options are wrong."""
    registration = plugins.data_tool(spec.tool)
    tool = made(registration)
    fields = {field.encode_name: field for field in msgspec.structs.fields(tool.options)}
    for name in (*spec.options, *spec.inputs, OUT):
        if name not in fields or (name == OUT and name in spec.options):
            problem = f"the data tool {spec.tool!r} has no option {name!r} for a task to set"
            one_of(name, sorted({*fields} - {OUT}), problem, TaskError, listed="one of {}")
    # Wrong options are found before anything is fetched.
    trial = _settings(tool, spec, {one: [Path("file")] for one in spec.inputs}, Path("out"))
    options = {
        name: msgspec.to_builtins(getattr(trial, field.name), enc_hook=str)
        for name, field in fields.items()
        if name not in {*spec.inputs, OUT}
    }

    def run(inputs: Mapping[str, Sequence[Path]], out: Path, progress: Progress) -> None:
        run_tool(registration, partial(tool.run, _settings(tool, spec, inputs, out), progress))

    origin = registration.origin
    versions = {one.distribution: one.version for one in plugins.loaded}
    named = f"{origin} {versions.get(origin.distribution, '')}".rstrip()
    return BuildTool(plugin=named, options=options, run=run, continues=tool.continues)


def _settings(
    tool: DataTool, spec: BuildSpec, inputs: Mapping[str, Sequence[Path]], out: Path
) -> msgspec.Struct:
    """The options of a tool with the files of each input; a path stands for the only file."""
    files = {name: [str(path) for path in paths] for name, paths in inputs.items()}
    given = {**spec.options, **files, OUT: str(out)}

    def unfit(one: Misfit) -> TaskError:
        name = f"option `{dotted(one.path)}`" if one.path else "options"
        return TaskError(
            f"the {name} of the data tool {spec.tool!r} cannot be used",
            found=short(one.found) if one.kind == "invalid" else one.kind,
            expected=one.expected,
        )

    return typed(given, tool.options, unfit, made=lambda kind, value: kind(value))
