"""The harness from Python: the same run as the command makes, its result as typed values."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.base.errors import UsageError
from harness.pipeline.progress import Display
from harness.pipeline.run import RunResult, arun
from harness.pipeline.settings import make_settings
from harness.reporting.display import make_display

__all__ = ["RunResult", "aevaluate", "evaluate"]


async def aevaluate(
    tasks: str | Sequence[str],
    *,
    model: str,
    model_args: Mapping[str, Any] | str = "",
    judge: str | None = None,
    roles: Mapping[str, str] | None = None,
    output_path: str | Path = "runs",
    display: Display | None = None,
    **settings: Any,
) -> RunResult:
    """The result of running tasks, as `harness --model … --tasks …` would; see RunSettings.

    Further settings are the fields of RunSettings: limit, seed, data, changes, concurrency, …
    A run that could not go on raises its error; one with too many failures, or interrupted, comes
    back with that status and everything it has.
    """
    bound = dict(roles or {})
    if judge is not None:
        bound["judge"] = judge
    asked = make_settings(
        {
            "tasks": tasks,
            "model": model,
            "model_args": model_args,
            "roles": bound,
            "output_path": output_path,
            **settings,
        }
    )
    result = await arun(asked, display=display or make_display(quiet=True, json=False))
    if result.status == "failed":
        raise result.errors[0]
    return result


def evaluate(tasks: str | Sequence[str], *, model: str, **settings: Any) -> RunResult:
    """The result of running tasks; in a notebook, or any running event loop, await `aevaluate`."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(aevaluate(tasks, model=model, **settings))
    raise UsageError(
        "an event loop is already running here, as in a notebook",
        hint="await harness.aevaluate(…) instead of harness.evaluate(…)",
    )
