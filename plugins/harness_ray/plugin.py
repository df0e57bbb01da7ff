"""The hooks of the plugin; Ray is imported by the runs that ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.contracts.executor import Executor, ExecutorSettings
    from harness.registry.hookspecs import RegisterExecutor


@hookimpl
def register_executors(register: RegisterExecutor) -> None:
    register("ray", make_executor, description="workers on the machines of a Ray cluster")


def make_executor(settings: ExecutorSettings) -> Executor:
    """The executor of one run."""
    from harness_ray.executor import RayExecutor

    return RayExecutor(settings)
