"""`harness plugins`: the installed plugins, what each registered, and why one failed to load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from harness.base.errors import HarnessError, UnknownName, one_of
from harness.cli.command import argument, command, json_option, option
from harness.cli.output import Row, print_error, print_json, print_sections
from harness.registry import (
    BrokenPlugin,
    DataToolRegistration,
    LoadedPlugin,
    RespondentRegistration,
    load_plugins,
)

if TYPE_CHECKING:
    from harness.registry import LoadedPlugin, Plugins, Source
    from harness.registry.registrations import Registration


@command("harness plugins", "harness plugins interests", "harness plugins --strict_plugins")
@argument(
    "names", metavar="NAME", nargs=-1, help="a plugin or a distribution",
    candidates="plugin_names",
)  # fmt: skip
@json_option
@option(
    "--strict_plugins", is_flag=True,
    help="fail if a plugin is broken, a hook is misspelt or a name is registered twice",
)  # fmt: skip
def plugins(names: Sequence[str], json: bool, strict_plugins: bool) -> int:
    """List the installed plugins and what each registered; broken plugins come first. For each
    NAME, show everything that the plugin registered, or its traceback.
    """
    plugins = load_plugins()
    chosen = _chosen(plugins, names)
    if json:
        print_json(_document(plugins, chosen))
    elif names:
        print_sections(section for one in chosen for section in _page(one, plugins))
    else:
        print_sections(_sections(plugins))
        print_error(*plugins.problems)
    if strict_plugins:
        plugins.check_problems()
    return 0


def _chosen(plugins: Plugins, names: Sequence[str]) -> list[Source]:
    everything: list[Source] = [*plugins.broken, *plugins.loaded, *plugins.left_out]
    known = {word for one in everything for word in (one.entry_point, one.distribution)}
    listed = f"one of {', '.join(sorted({one.entry_point for one in everything}))}"
    for name in names:
        one_of(name, known, f"there is no plugin {name!r}", UnknownName, listed=listed)
    return [
        one for one in everything if not names or {one.entry_point, one.distribution} & {*names}
    ]


def _sections(plugins: Plugins) -> Iterator[tuple[str, list[Row]]]:
    yield "broken", [(one.entry_point, f"{_origin(one)}; {one.error}") for one in plugins.broken]
    yield "plugins", [(one.entry_point, _summary(one, plugins)) for one in plugins.loaded]
    yield (
        "left out by HARNESS_PLUGINS",
        [(one.entry_point, _origin(one)) for one in plugins.left_out],
    )


def _summary(plugin: LoadedPlugin, plugins: Plugins) -> str:
    from harness.base.resources import top_level

    registered = plugins.registered_by(plugin)
    hooks = []
    for hook in plugin.hooks:
        kind = hook.removeprefix("register_")
        hooks.append(hook if kind == hook else f"{hook} ({len(registered.get(kind, ()))})")
    package = top_level(plugin.module)
    tasks = any(one.name == package and one.task_configs is not None for one in plugins.bundles)
    without = "task files only" if tasks else "implements no hook"
    return f"{_origin(plugin)}; {', '.join(hooks) or without}"


def _page(one: Source, plugins: Plugins) -> Iterator[tuple[str, list[Row]]]:
    yield "plugin", [(one.entry_point, _origin(one))]
    if isinstance(one, LoadedPlugin):
        yield "hooks", [(hook, "") for hook in one.hooks]
        for kind, registrations in plugins.registered_by(one).items():
            rows = [_row(one) for one in registrations]
            if kind == "benchmarks":
                rows = [(name, _about(name, plugins)) for name, _ in rows]
            yield kind.replace("_", " "), rows
        yield "problems", [(line, "") for line in plugins.problems_of(one)]
    elif isinstance(one, BrokenPlugin):
        yield "could not be loaded", [(line, "") for line in one.traceback.rstrip().split("\n")]
    else:
        yield "left out", [("HARNESS_PLUGINS does not name it", "")]


def _row(registration: Registration[Any]) -> Row:
    if isinstance(registration, RespondentRegistration):
        benchmark, prompt, role, name = registration.key
        return f"{benchmark}/{prompt}.{role}", f"{name}, version {registration.version}"
    if isinstance(registration, DataToolRegistration):
        return f"{registration.command} {registration.name}", registration.description
    return registration.name, registration.description


def _about(benchmark: str, plugins: Plugins) -> str:
    """The description of a benchmark, or why the benchmark cannot be used."""
    try:
        return plugins.benchmark(benchmark).description
    except HarnessError as error:
        return f"cannot be used: {error.problem}"


def _document(plugins: Plugins, chosen: Sequence[Source]) -> dict[str, Any]:
    return {
        "plugins": [
            {
                **_source(one),
                "hooks": list(one.hooks),
                "registered": {
                    kind: [
                        dict(zip(("name", "description"), _row(each), strict=True))
                        for each in registrations
                    ]
                    for kind, registrations in plugins.registered_by(one).items()
                },
                "problems": list(plugins.problems_of(one)),
            }
            for one in chosen
            if isinstance(one, LoadedPlugin)
        ],
        "broken": [
            {**_source(one), "error": one.error, "traceback": one.traceback}
            for one in chosen
            if isinstance(one, BrokenPlugin)
        ],
        "left_out": [
            _source(one) for one in chosen if not isinstance(one, (LoadedPlugin, BrokenPlugin))
        ],
        "problems": list(plugins.problems),
    }


def _source(one: Source) -> dict[str, str]:
    return {
        "plugin": one.entry_point,
        "distribution": one.distribution,
        "version": one.version,
        "module": one.module,
    }


def _origin(one: Source) -> str:
    return f"{one.distribution} {one.version}".rstrip() + f", {one.module}"
