"""The hooks of the plugin; its factories import the other modules at first use."""

from __future__ import annotations

from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.analysis.analysis import DataTool
    from harness.registry import hookspecs

PACKAGE = "harness_horizon"

TOOLS = {
    "horizon": ("build", "make histories, splits and cases from raw reviews and metadata"),
    "horizon-describe": ("describe", "describe histories, with the paper's figures"),
}
"""Each data tool: its module in `curation`, and what it does."""


@hookimpl
def register_data_tools(register: hookspecs.RegisterDataTool) -> None:
    for name, (module, description) in TOOLS.items():
        make = partial(_tool, f"{PACKAGE}.curation.{module}", name, description)
        register(name, make, description=description)


def _tool(module: str, name: str, description: str) -> DataTool:
    from harness.analysis.analysis import DataTool

    return DataTool(
        name=name,
        description=description,
        run=resolve_name(f"{module}:run"),
        options=resolve_name(f"{module}:Settings"),
    )
