"""Tools for tests of plugins and of the harness: scripted models, servers that misbehave on
purpose, and the checks that every plugin has to pass.

Modules are imported at first use: `python -m harness.testing.server` warns if its package has
imported it before.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.testing.checks import CHECKS as CHECKS
    from harness.testing.checks import NotConforming as NotConforming
    from harness.testing.checks import check_plugin as check_plugin
    from harness.testing.faults import Asked as Asked
    from harness.testing.faults import Fault as Fault
    from harness.testing.scripted import ScriptedModel as ScriptedModel
    from harness.testing.scripted import run_tasks as run_tasks
    from harness.testing.server import FaultyServer as FaultyServer
    from harness.testing.trial import Finding as Finding

_HOME = {
    "CHECKS": "harness.testing.checks",
    "Finding": "harness.testing.trial",
    "NotConforming": "harness.testing.checks",
    "check_plugin": "harness.testing.checks",
    "Asked": "harness.testing.faults",
    "Fault": "harness.testing.faults",
    "run_tasks": "harness.testing.scripted",
    "ScriptedModel": "harness.testing.scripted",
    "FaultyServer": "harness.testing.server",
}

__all__ = sorted(_HOME)  # noqa: PLE0605 - computed, so that no name is written a third time


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
