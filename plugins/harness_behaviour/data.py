"""From tables of data to the prompts of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset
    from harness_behaviour.records import Options, Prompt


def load(dataset: Dataset, options: Options) -> tuple[Prompt, ...]:
    """The prompts of the task's setting, built ones or those that this run builds.

    Setting c has the prompt without any context too, whose own setting is `none`.
    """
    raise NotImplementedError
