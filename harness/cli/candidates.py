"""Completions for the options and arguments of commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from harness.registry import Plugins


def _completions(names: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    return lambda ctx, param, incomplete: _starting_with(incomplete, names())


def _starting_with(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]


def _plugins() -> Plugins:
    from harness.registry import load_plugins

    return load_plugins()


def _named_models() -> Iterable[str]:
    from harness.cli.settings_sources import HERE, read_settings, user_file

    files = [read_settings(file) for file in (user_file(), HERE)]
    tables = [file.values.get("models") for file in files if file is not None]
    return [name for table in tables if isinstance(table, dict) for name in table]


def _runs() -> list[str]:
    from harness.cli.kept_runs import default_folder, kept_runs
    from harness.pipeline.specs import LATEST

    place = default_folder()
    found = sorted((str(file.parent) for file in place.glob("*/manifest.json")), reverse=True)
    labels = [manifest.label for _, manifest in kept_runs(place)]
    return [*found, *([LATEST] if found else []), *labels]


def _prompts() -> Iterable[str]:
    from harness.pipeline.preparation import prompt_folders
    from harness.prompts import Templates

    return Templates(prompt_folders(_plugins())).everything()


judges = _completions(lambda: [*_plugins().judges, *_plugins().models, *_named_models()])


def tasks(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Tasks, groups and tags for the last name of a list with commas."""
    from harness.cli.run_options import task_folders
    from harness.registry.task_catalogue import Catalogue

    there = [folder for folder in ctx.params["include_path"] or () if folder.is_dir()]
    catalogue = Catalogue(_plugins(), include_path=task_folders(there))
    before, comma, _last = incomplete.rpartition(",")
    names = [*catalogue.names, *catalogue.groups, *(f"tag:{tag}" for tag in catalogue.tags)]
    return _starting_with(incomplete, (f"{before}{comma}{name}" for name in names))


def roles(ctx: Any, param: Any, incomplete: str) -> list[str]:
    """`judge=`, or a judge or model for the role."""
    name, equals, spec = incomplete.partition("=")
    if not equals:
        return _starting_with(incomplete, ["judge="])
    return [f"{name}={judge}" for judge in judges(ctx, param, spec)]


def data_places(_ctx: Any, _param: Any, incomplete: str) -> list[str]:
    """`sample` or `build` if its first letters are typed; other places are files or folders."""
    return [name for name in ("sample", "build") if incomplete and name.startswith(incomplete)]


CANDIDATES: dict[str, Callable[[Any, Any, str], list[str]]] = {
    "data_places": data_places,
    "embedder_kinds": _completions(lambda: _plugins().embedders),
    "executors": _completions(lambda: ["local", *_plugins().executors]),
    "judge_kinds": _completions(lambda: _plugins().judges),
    "judges": judges,
    "model_kinds": _completions(lambda: _plugins().models),
    "models": _completions(lambda: [*_plugins().models, *_named_models()]),
    "plugin_names": _completions(
        lambda: [one.plugin for one in (*_plugins().loaded, *_plugins().broken)]
    ),
    "prompts": _completions(_prompts),
    "roles": roles,
    "runs": _completions(_runs),
    "tasks": tasks,
}
"""By name the completions that options and arguments refer to; only completion calls them."""
