"""`--print_server_command`: how the servers of a run would be started; starts and asks nothing."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.pipeline.settings import RunSettings


def print_server_commands(settings: RunSettings) -> int:
    """Print a command line for each server that a run of these settings would start."""
    from harness.pipeline.preparation import prepare
    from harness.plugin_manager import load_plugins

    prepared = prepare(settings, load_plugins())
    models = dict.fromkeys(
        model
        for task in prepared.tasks
        for binding in task.bindings.values()
        for model in binding.models
    )
    commands = [command for model in models if (command := model.server_command()) is not None]
    if not commands:
        raise UsageError(
            "no chosen model starts a server",
            found=settings.model,
            expected="one that does, such as --model vllm",
        )
    for command in commands:
        print(shlex.join(command))
    return 0
