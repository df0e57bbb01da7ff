"""One task on one page: its benchmark, options, roles, data and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.errors import print_error
from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.pipeline.benchmark import Benchmark
    from harness.plugin_manager import Plugins
    from harness.tasks.task import DataSpec, Task

Row = tuple[str, str]


def page(task: Task, plugins: Plugins) -> Iterator[tuple[str, list[Row]]]:
    """What there is to know of a task before it is run, as titles with rows of name and text."""
    from harness.tasks.load import shown

    yield "task", [(f"{task.name}, version {task.version}", task.description)]
    about = {
        "file": shown(task.file) if task.file else "",
        "over": ", ".join(base.name for base in reversed(task.bases)),
        "tags": ", ".join(task.tags),
        "metrics": ", ".join(task.metrics),
    }
    benchmark = _benchmark(task, plugins)
    yield "about", [(name, text) for name, text in about.items() if text]
    yield "benchmark", [(task.benchmark, _told(benchmark) if benchmark else "")]
    yield "options", list(_options(task, benchmark))
    yield "roles", list(_roles(task, benchmark)) if benchmark else []
    yield "data", list(_data(task.data))


def _benchmark(task: Task, plugins: Plugins) -> Benchmark | None:
    try:
        return plugins.benchmark(task.benchmark)
    except HarnessError as error:
        print_error(error)
        return None


def _told(benchmark: Benchmark) -> str:
    named = {"paper": benchmark.paper, "licence": benchmark.licence}
    told = [f"{word}: {text}" for word, text in named.items() if text]
    return "; ".join(filter(None, [benchmark.description.rstrip("."), *told]))


def _options(task: Task, benchmark: Benchmark | None) -> Iterator[Row]:
    """A row for each option that is not at its default, and one for all others."""
    import msgspec

    from harness.tasks.options import typed_options

    values: dict[str, Any] = task.options
    defaults: dict[str, Any] = {}
    if benchmark is not None:
        try:
            values = msgspec.to_builtins(typed_options(task, benchmark.options))
            defaults = msgspec.to_builtins(benchmark.options())
        except HarnessError as error:
            print_error(error)
        except TypeError:
            pass  # An option without a default has none to be told.
    usual = dict(_flat(defaults))
    at_default = []
    for name, value in _flat(values):
        if name not in usual:
            yield name, value
        elif value != usual[name]:
            yield name, f"{value}  (default {usual[name]})"
        else:
            at_default.append(f"{name}={value}")
    if at_default:
        yield "at default", ", ".join(at_default)


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[Row]:
    """Every value by its path, as `--set` takes both."""
    import json

    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{above}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{above}{name}", text


def _roles(task: Task, benchmark: Benchmark) -> Iterator[Row]:
    from harness.pipeline.roles import CANDIDATE, option_of
    from harness.tasks.task import RoleSpec

    asked = [role for stage in benchmark.stages for role in (*stage.roles, *stage.judges)]
    for role in dict.fromkeys(asked):
        stages = [one for one in benchmark.stages if role in (*one.roles, *one.judges)]
        spec = task.roles.get(role, RoleSpec())
        who = "--model" if role == CANDIDATE else option_of(role)
        if spec.same_as is not None:
            who = f"the {spec.same_as}, or {who}"
        elif spec.default is not None:
            who = f"{spec.default}, or {who}"
        sampling = ", ".join(f"{name} {value}" for name, value in spec.sampling.items())
        always = any(stage.when is None for stage in stages) or role == CANDIDATE
        where = "" if always else "where data and options call for it"
        yield role, "; ".join(filter(None, [who, sampling, where]))


def _data(data: DataSpec) -> Iterator[Row]:
    from harness.tasks.load import shown

    if data.hub is not None:
        yield "hub", data.hub.repo
    if data.folder is not None:
        yield "folder", shown(Path(data.folder))
    if data.sample is not None:
        yield "sample", "--data sample"
    if data.size is not None:
        yield "size", f"{data.size:,}"
    tables = [
        name if table.required else f"{name} (optional)" for name, table in data.tables.items()
    ]
    yield "tables", ", ".join(tables)
