"""Checks of the installation: versions, libraries, plugins, and the terminal."""

from __future__ import annotations

import codecs
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata

from harness.contracts.finding import Finding, bad, doubtful, good

DISTRIBUTION = "user-understanding-harness"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def versions() -> Iterator[Finding]:
    """The versions of the harness, of Python and of the system."""
    python = f"Python {platform.python_version()}, {sys.executable}"
    system = f"{platform.system()} {platform.machine()}"
    yield good("harness", f"{metadata.version(DISTRIBUTION)}; {python}; {system}")


def libraries(distribution: str = DISTRIBUTION) -> Iterator[Finding]:
    """Whether the required packages of a distribution are installed in suitable versions."""
    from packaging.requirements import Requirement

    installed: list[str] = []
    for text in metadata.requires(distribution) or ():
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        try:
            version = metadata.version(wanted.name)
        except metadata.PackageNotFoundError:
            version = ""
        if not version or not wanted.specifier.contains(version, prereleases=True):
            found = f"{wanted.name} {version}" if version else f"no {wanted.name}"
            yield bad(
                "libraries",
                f"found {found}; expected {wanted.name}{wanted.specifier}",
                f"pip install '{wanted.name}{wanted.specifier}'",
            )
        else:
            installed.append(f"{wanted.name} {version}")
    if installed:
        yield good("libraries", ", ".join(sorted(installed)))


def plugins(*, strict: bool) -> Iterator[Finding]:
    """The loaded plugins, the broken plugins, and the problems of plugins."""
    from harness.registry import load_plugins

    loaded = load_plugins()
    for broken in loaded.broken:
        yield bad(
            "plugins",
            str(broken),
            f"`harness plugins {broken.entry_point}` shows the traceback; install another "
            f"version of {broken.distribution}, or uninstall it",
        )
    finding = bad if strict else doubtful
    for problem in loaded.problems:
        yield finding("plugins", problem, "`harness plugins NAME` shows the details of one")
    if loaded.loaded:
        names = ", ".join(f"{one.entry_point} {one.version}".rstrip() for one in loaded.loaded)
        yield good("plugins", names)
    else:
        yield bad("plugins", "none is loaded, so there is nothing to run", "pip install PLUGIN")
    if loaded.left_out:
        names = ", ".join(one.entry_point for one in loaded.left_out)
        yield doubtful("plugins", f"left out by HARNESS_PLUGINS: {names}")


def terminal() -> Iterator[Finding]:
    """Whether the output cannot show all characters; no finding if it can."""
    encoding = sys.stdout.encoding or "ascii"
    if codecs.lookup(encoding).name != "utf-8":
        yield doubtful(
            "terminal",
            f"the output is written in {encoding}, which cannot show all characters of people and "
            "models",
            "export PYTHONUTF8=1",
        )
