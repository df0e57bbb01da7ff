"""What a shell may offer for an option or argument of a command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from harness.plugin_manager import Plugins


def tasks(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Tasks, groups and tags, after those that commas divide off."""
    from harness.cli.run import included
    from harness.tasks.catalogue import Catalogue

    there = [folder for folder in ctx.params["include_path"] or () if folder.is_dir()]
    catalogue = Catalogue(_plugins(), include_path=included(there))
    listed, comma, _last = incomplete.rpartition(",")
    names = [*catalogue.names, *catalogue.groups, *(f"tag:{tag}" for tag in catalogue.tags)]
    return _beginning(incomplete, (f"{listed}{comma}{name}" for name in names))


def models(_ctx: Any, _param: Any, incomplete: str) -> list[str]:
    """Kinds of models, and models that settings name."""
    return _beginning(incomplete, [*_plugins().models, *_named_models()])


def judges(_ctx: Any, _param: Any, incomplete: str) -> list[str]:
    """Judges, kinds of models, and models that settings name."""
    plugins = _plugins()
    return _beginning(incomplete, [*plugins.judges, *plugins.models, *_named_models()])


def roles(ctx: Any, param: Any, incomplete: str) -> list[str]:
    """A role with a judge or model for it."""
    name, equals, spec = incomplete.partition("=")
    if not equals:
        return _beginning(incomplete, ["judge="])
    return [f"{name}={judge}" for judge in judges(ctx, param, spec)]


def data_places(_ctx: Any, _param: Any, incomplete: str) -> list[CompletionItem[str]]:
    """The bundled sample, else files."""
    from click.shell_completion import CompletionItem

    if incomplete and "sample".startswith(incomplete):
        return [CompletionItem("sample")]
    return [CompletionItem(incomplete, type="file")]


def runs(_ctx: Any, _param: Any, incomplete: str) -> list[str]:
    """The folders of runs that lie where runs usually go."""
    from harness.cli.kept_runs import usual_folder

    found = sorted(map(str, usual_folder().glob("*/manifest.json")), reverse=True)
    return _beginning(incomplete, (name.removesuffix("/manifest.json") for name in found))


def prompts(_ctx: Any, _param: Any, incomplete: str) -> list[str]:
    """The prompts that may be named."""
    from harness.pipeline.preparation import prompt_folders
    from harness.prompting import Templates

    return _beginning(incomplete, Templates(prompt_folders(_plugins())).everything())


def model_kinds(_ctx: Any, _param: Any, incomplete: str) -> list[str]:
    """Kinds of models."""
    return _beginning(incomplete, _plugins().models)


def judge_kinds(_ctx: Any, _param: Any, incomplete: str) -> list[str]:
    """Judges of plugins."""
    return _beginning(incomplete, _plugins().judges)


def plugin_names(_ctx: Any, _param: Any, incomplete: str) -> list[str]:
    """Plugins, broken ones among them."""
    plugins = _plugins()
    return _beginning(incomplete, (one.entry_point for one in (*plugins.loaded, *plugins.broken)))


def _plugins() -> Plugins:
    from harness.plugin_manager import load_plugins

    return load_plugins()


def _named_models() -> Iterable[str]:
    from harness.cli.settings_sources import HERE, read_settings, user_file

    files = [read_settings(file) for file in (user_file(), HERE)]
    tables = [file.values.get("models") for file in files if file is not None]
    return [name for table in tables if isinstance(table, dict) for name in table]


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]
