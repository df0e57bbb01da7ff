"""The data of a domain as its tasks open it."""

from pathlib import Path

import harness_behaviour
import msgspec
import yaml
from harness_behaviour.data import build
from harness_behaviour.records import Recipe
from samples.behaviour import MIN_PLAYS

from harness.contracts.task import DataSpec
from harness.data import open_dataset

TASKS = Path(__file__).parents[3] / "task_configs/behaviour"


def opened(domain, data="sample"):
    """The opened data of a domain: its sample, or those of a folder."""
    written = yaml.safe_load((TASKS / f"behaviourbench_{domain}.yaml").read_text(encoding="utf-8"))
    return open_dataset(
        msgspec.convert(written["data"], DataSpec),
        data=str(data),
        limit=None,
        seed=0,
        package=Path(harness_behaviour.__file__).parent,
        task=f"behaviour_{domain}_a",
    )


def built(domain, data="sample", **options):
    """The prompts of all cells that are built of a domain's data, and the counts of each cell."""
    return build(opened(domain, data), Recipe(domain=domain, min_interactions=MIN_PLAYS, **options))
