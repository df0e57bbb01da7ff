"""The names of a new plugin: valid ones, that nothing installed has."""

from __future__ import annotations

import keyword
import re
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from typing import TYPE_CHECKING

from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.plugin_manager import Plugins

VALID = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
RESERVED = frozenset({"harness", "plugins", "test", "tests", "docs", "build", "dist"})


def package_name(name: str) -> str:
    """The package of a plugin of that name, which its benchmark and task are called as well."""
    suggested = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")
    if not VALID.fullmatch(name):
        raise UsageError(
            "not a name for a plugin",
            found=repr(name),
            expected="small letters, digits and single dashes, a letter first, as my-bench",
            hint=f"{suggested!r} would do" if VALID.fullmatch(suggested) else None,
        )
    package = name.replace("-", "_")
    if keyword.iskeyword(package) or package in RESERVED | sys.stdlib_module_names:
        raise UsageError(
            f"a package cannot well be called {package!r}",
            expected="a name that is no word of Python and no module of its library",
            hint=f"{name}-bench would do",
        )
    return package


def refuse_taken(package: str, plugins: Plugins) -> None:
    """Raise UsageError where something installed has the name already."""
    from harness.tasks.catalogue import Catalogue

    catalogue = Catalogue(plugins)
    holders = []
    if plugins.has_benchmark(package):
        holders.append(f"a benchmark of {plugins.benchmarks[package].origin}")
    holders += [
        f"a {'task' if entry.members is None else 'group'}, {entry.file}"
        for entry in catalogue.entries
        if entry.name == package
    ]
    if package in catalogue.tags:
        holders.append(f"a tag of {', '.join(catalogue.tags[package])}")
    installed = [*plugins.loaded, *plugins.broken, *plugins.left_out]
    holders += [
        f"a plugin of {one.distribution}" for one in installed if one.entry_point == package
    ]
    spec = find_spec(package)
    if spec is not None and not holders:
        holders.append(f"a package, {spec.origin or 'without a file'}")
    with suppress(PackageNotFoundError):
        told = distribution(package)
        if not holders:
            holders.append(f"what is installed as {told.name} {told.version}")
    if holders:
        raise UsageError(
            f"the name {package!r} is taken",
            found="; ".join(holders),
            expected="one that no plugin, benchmark, task, group, tag or package has",
            hint="begin it with your own, as acme-films, or uninstall what has it",
        )
