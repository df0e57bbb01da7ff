"""Connects to a Ray cluster."""

from __future__ import annotations


def connect(address: str | None) -> None:
    """Connect."""
    import ray

    ray.init(address=address or "local", log_to_driver=False, include_dashboard=False)


def disconnect() -> None:
    """Leave."""
    import ray

    ray.shutdown()
