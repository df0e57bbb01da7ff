"""Sends the result of each run to Weights & Biases, if `WANDB_PROJECT` is set."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import harness
from harness import hookimpl
from harness_trackers import config_of, numbers_of

if TYPE_CHECKING:
    from harness.registry.hookspecs import RunEnded

NUMBERS_ONLY = {
    "console": "off",
    "disable_code": True,
    "disable_git": True,
    "x_disable_meta": True,
    "x_disable_machine_info": True,
    "x_disable_stats": True,
    "x_save_requirements": False,
    "quiet": True,
}
"""Nothing but what is logged here leaves: no output, command line, code or machine."""


@hookimpl
def on_run_end(event: RunEnded) -> None:
    """Send the result. A run that is continued updates its result there."""
    if not os.environ.get("WANDB_PROJECT"):
        return
    import wandb

    result = harness.load(event.folder)
    manifest = result.manifest
    with wandb.init(
        id=manifest.run_id,
        name=manifest.label,
        tags=[f"{name}={value}" for name, value in manifest.tags.items()],
        config=config_of(result),
        resume="allow",
        reinit="create_new",  # a run of the caller's own goes on
        allow_val_change=True,
        settings=wandb.Settings(**NUMBERS_ONLY),
    ) as run:
        run.log(numbers_of(result))
        run.summary["status"] = event.status
        run.finish(exit_code=event.exit_code)
