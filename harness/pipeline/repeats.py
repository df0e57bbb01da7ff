"""What is to be known of a run that asks everything several times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.pipeline.context import StageContext
from harness.pipeline.roles import CANDIDATE
from harness.pipeline.settings import RunSettings


def alike(settings: RunSettings, contexts: Iterable[Sequence[StageContext]]) -> str | None:
    """Why the repeats of a run would be the same answers again; None where nothing says so."""
    asking = [
        context
        for each in contexts
        for context in each
        if settings.num_repeats > 1 and CANDIDATE in context.stage.roles
    ]
    # Who answers by rule draws from the seed, whatever the temperature.
    drawn = [each for each in asking if each.model(CANDIDATE).identity.scope != "call"]
    if not drawn or any(each.sampling(CANDIDATE).temperature > 0 for each in drawn):
        return None
    return (
        f"--num_repeats {settings.num_repeats}: the candidate is asked at temperature 0, so that "
        "its repeats differ only as far as the server is not deterministic; "
        "--gen_kwargs temperature=… draws samples"
    )
