"""What the tests of plugins and of the harness share: a real server that misbehaves on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.testing.faults import Asked, Fault
    from harness.testing.server import FaultyServer

__all__ = ["Asked", "Fault", "FaultyServer"]


def __getattr__(name: str) -> Any:
    # On demand: `python -m harness.testing.server` warns when its package has imported it already.
    if name == "FaultyServer":
        from harness.testing.server import FaultyServer

        return FaultyServer
    if name in ("Asked", "Fault"):
        from harness.testing import faults

        return getattr(faults, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
