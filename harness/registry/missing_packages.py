"""Which extra of a distribution brings a package that is not installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata

DISTRIBUTIONS = {"sklearn": "scikit-learn", "faiss": "faiss-cpu"}
"""The distributions of modules that have another name."""


HARNESS = "user-understanding-harness"


def hint_for(error: Exception, distribution: str) -> str | None:
    """What to do about an error of a plugin's code, if it is a module that an extra brings.

    `distribution` holds the plugin; the extras of the harness are for every plugin.
    """
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    return install_hint(error.name, distribution) or install_hint(error.name, HARNESS)


def install_hint(module: str, distribution: str) -> str | None:
    """The command that installs the smallest extra of a distribution that brings a module.

    None if no extra does.

    >>> install_hint("sklearn.cluster", "user-understanding-harness")
    "pip install 'user-understanding-harness[analysis]'"
    """
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    top = module.partition(".")[0]
    wanted = canonicalize_name(DISTRIBUTIONS.get(top, top))
    try:
        about = metadata(distribution)
    except PackageNotFoundError:
        return None
    optional = [
        (canonicalize_name(one.name), one.marker)
        for one in map(Requirement, about.get_all("Requires-Dist") or ())
        if one.marker is not None and not one.marker.evaluate({"extra": ""})
    ]
    sizes = {}
    for extra in about.get_all("Provides-Extra") or ():
        brought = [name for name, marker in optional if marker.evaluate({"extra": extra})]
        if wanted in brought:
            sizes[extra] = len(brought)
    return f"pip install '{distribution}[{min(sizes, key=sizes.__getitem__)}]'" if sizes else None
