"""Loads the installed plugins one by one, so that a broken one affects no other."""

from __future__ import annotations

import functools
import os
import traceback
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from harness.base.errors import PluginError, UsageError, did_you_mean
from harness.base.redaction import without_key_material
from harness.base.resources import bundles, package_folder
from harness.registry import hookspecs
from harness.registry.collecting import registered_by
from harness.registry.registrations import AnalysisRegistration, Origin, Registries
from harness.registry.registry import BrokenPlugin, LoadedPlugin, Plugins, Source, line_of

GROUP = "harness.plugins"

CHOSEN = "HARNESS_PLUGINS"
"""The environment variable with the names of the plugins to load; all are loaded without it."""


OWN = Origin(
    plugin="harness",
    distribution="user-understanding-harness",
    module="harness.analysis",
    package=package_folder("harness"),
)
OWN_ANALYSES = {
    "forest": ("harness.analysis.forest.run", "each metric of each run, with its interval"),
}
"""The harness's own analyses, which exist without a plugin: the function that makes the report, and
the description."""


@functools.cache
def load_plugins() -> Plugins:
    """All installed plugins, loaded once in each process."""
    return plugins_from(entry_points(group=GROUP), only=os.environ.get(CHOSEN))


def reset() -> None:
    """Forget the loaded plugins, so that the next `load_plugins` loads again."""
    load_plugins.cache_clear()


def plugins_from(found: Iterable[EntryPoint], *, only: str | None = None) -> Plugins:
    """The plugins behind the entry points, each loaded on its own.

    `only` names the wanted plugins by entry point or distribution, separated by commas: the others
    are left out, with their tasks and prompts. UsageError for a name that no plugin has.
    """
    from harness.analysis.analysis import analysis_from

    points = sorted(found, key=lambda point: (_distribution(point), point.name))
    wanted = _wanted(points, only)
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    registries = Registries()
    for name, (function, description) in OWN_ANALYSES.items():
        analysis = AnalysisRegistration(
            name=name,
            factory=functools.partial(analysis_from, function, name=name, description=description),
            origin=OWN,
            description=description,
            benchmark=hookspecs.ANY_BENCHMARK,
            report=True,
        )
        registries.analyses.add(name, analysis)
    loaded: list[LoadedPlugin] = []
    broken: list[BrokenPlugin] = []
    for point in wanted:
        try:
            loaded.append(_load(point, manager, registries))
        except (Exception, SystemExit) as error:  # foreign code: the other plugins still load
            trace = without_key_material("".join(traceback.format_exception(error)))
            broken.append(BrokenPlugin(**_source(point), error=line_of(error), traceback=trace))
    problems = [line for one in loaded for line in one.problems]
    problems += [line for one in registries.by_kind().values() for line in one.duplicates()]
    return Plugins(
        manager=manager,
        **vars(registries),
        broken=tuple(broken),
        problems=tuple(problems),
        bundles=tuple(bundles(wanted)),
        loaded=tuple(loaded),
        left_out=tuple(Source(**_source(point)) for point in points if point not in wanted),
    )


def _wanted(points: Sequence[EntryPoint], only: str | None) -> list[EntryPoint]:
    names = {name.strip() for name in (only or "").split(",") if name.strip()}
    if not names:
        return list(points)
    known = {word for point in points for word in (point.name, _distribution(point))}
    for name in sorted(names - known):
        raise UsageError(
            f"{CHOSEN} names a plugin that is not installed: {name!r}",
            found=only,
            expected=", ".join(sorted({point.name for point in points}))
            or "no name: none is installed",
            hint=did_you_mean(name, known),
        )
    return [point for point in points if {point.name, _distribution(point)} & names]


def _load(point: EntryPoint, manager: pluggy.PluginManager, registries: Registries) -> LoadedPlugin:
    """Load a plugin and add all its registrations, or none where it fails."""
    plugin = point.load()
    distribution = _distribution(point)
    earlier = manager.get_name(plugin)
    if earlier is not None:
        raise PluginError(f"the plugin is the same object as {earlier}, which is loaded")
    origin = Origin(
        plugin=point.name,
        distribution=distribution,
        module=point.module,
        package=package_folder(point.module),
    )
    try:
        manager.register(plugin, name=str(origin))
        registered = registered_by(plugin, manager, origin)
    except BaseException:
        if manager.is_registered(plugin):
            manager.unregister(plugin)
        raise
    for kind, registry in registries.by_kind().items():
        for key, registration in registered[kind]:
            registry.add(key, registration)
    specified = [
        name for name in vars(hookspecs) if manager.parse_hookspec_opts(hookspecs, name) is not None
    ]
    callers = manager.get_hookcallers(plugin) or ()
    misspelt = []
    for caller in callers:
        optional = all(one.optionalhook for one in caller.get_hookimpls() if one.plugin is plugin)
        if not caller.has_spec() and not optional:
            near = did_you_mean(caller.name, specified)
            misspelt.append(
                f"{origin} implements {caller.name!r}, which is no hook"
                + (f": {near}" if near else "")
            )
    return LoadedPlugin(
        **_source(point),
        origin=origin,
        hooks=tuple(name for name in specified if name in {one.name for one in callers}),
        problems=tuple(misspelt),
    )


def _source(point: EntryPoint) -> dict[str, Any]:
    return {
        "entry_point": point.name,
        "distribution": _distribution(point),
        "version": point.dist.version if point.dist is not None else "",
        "module": point.value.partition(":")[0].strip(),
    }


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unknown distribution"
