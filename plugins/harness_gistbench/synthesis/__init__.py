"""Tools for logs of engagements: to make synthetic users of one, and to tell what one holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness import DataTool
    from harness.hookspecs import RegisterDataTool

SYNTHESIZE = "build synthetic users from a log of real ones, and compare the two"
DESCRIBE = "tell what a log holds: users, engagements by type, lengths, texts"


def register(add: RegisterDataTool) -> None:
    """Tell the harness of both tools, without importing any."""
    add("synthesize", make_synthesize, description=SYNTHESIZE)
    add("describe", make_describe, description=DESCRIBE)


def make_synthesize() -> DataTool:
    """The tool that builds synthetic users."""
    from harness import DataTool
    from harness_gistbench.synthesis.settings import Settings
    from harness_gistbench.synthesis.synthesize import run

    return DataTool(name="synthesize", description=SYNTHESIZE, run=run, options=Settings)


def make_describe() -> DataTool:
    """The tool that tells what a log holds."""
    from harness import DataTool
    from harness_gistbench.synthesis.describe import Options, run

    return DataTool(name="describe", description=DESCRIBE, run=run, options=Options)
