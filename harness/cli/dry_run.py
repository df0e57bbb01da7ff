"""`--dry_run`: the first prompt of every stage and role and the calls to expect; asks nothing."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from harness.pipeline.settings import RunSettings


def dry_run(settings: RunSettings, *, json: bool) -> int:
    """Print what a run of these settings would do; the exit code."""
    from harness.pipeline.rehearsal import rehearse
    from harness.plugin_manager import load_plugins
    from harness.reporting.forecasts import print_forecast

    forecast = asyncio.run(rehearse(settings, load_plugins()))
    if json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(forecast)).decode() + "\n")
    else:
        print_forecast(forecast)
    return 0
