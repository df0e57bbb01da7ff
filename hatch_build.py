"""Adds the task files and prompts to standard wheels, as data of the `harness` package."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BundledFolders(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Leaves editable installs alone: there the folders are read from the checkout."""
        if version == "standard":
            for folder in ("task_configs", "prompts"):
                build_data["force_include"][folder] = f"harness/_bundled/{folder}"
