"""The Python interface: the same runs as the command's, with typed results."""

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
    """Run tasks like `harness --model … --tasks …`; the run's result.

        result = await aevaluate("interests", model="openai:base_url=…,model=…", limit=10)

    Further settings are the fields of RunSettings: limit, seed, data, changes, concurrency …
    A failed run raises its error. A run that was interrupted or had too many failures returns its
    result with that status.
    """
    bound = dict(roles or {})
    if judge is not None:
        bound["judge"] = judge
    run_settings = make_settings(
        {
            "tasks": tasks,
            "model": model,
            "model_args": model_args,
            "roles": bound,
            "output_path": output_path,
            **settings,
        }
    )
    result = await arun(run_settings, display=display or make_display(quiet=True, json=False))
    if result.status == "failed":
        raise result.errors[0]
    return result


def evaluate(tasks: str | Sequence[str], *, model: str, **settings: Any) -> RunResult:
    """Run tasks like `aevaluate`, without `await`.

        result = evaluate("interests", model="baseline", limit=10)

    In a notebook, or wherever an event loop is running, await `aevaluate` instead.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(aevaluate(tasks, model=model, **settings))
    raise UsageError(
        "evaluate cannot be used where an event loop is running, such as in a notebook",
        hint="use `await harness.aevaluate(…)`",
    )
