"""The prompts that are built of a domain's data."""

from harness_behaviour.data import build
from harness_behaviour.records import Recipe
from samples.behaviour import MIN_PLAYS

from .conftest import opened


def built(domain, data="sample", **options):
    """The prompts of all cells, and the counts of each cell."""
    return build(opened(domain, data), Recipe(domain=domain, min_interactions=MIN_PLAYS, **options))
