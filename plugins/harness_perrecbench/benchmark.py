"""The benchmark, put together."""

from __future__ import annotations

from harness import Benchmark
from harness_perrecbench.data import load
from harness_perrecbench.metrics import METRICS, counts, score
from harness_perrecbench.paper import results
from harness_perrecbench.ranking import notes
from harness_perrecbench.records import GroupResult, Options
from harness_perrecbench.stages import STAGES

WORDS = {
    "_pointwise": "the model rates each user's liking, and the ratings give the ranking",
    "_pairwise": "the model names the user who likes the item more, pair by pair",
    "_listwise": "the model ranks all users of a group at once",
    "none_named": "the reply names neither of the two users",
    "both_named": "the reply names both users",
    "out_of_range": "the rating of the reply is outside the scale",
    "not_a_permutation": "the reply does not order all users of the group once",
    "no_profile": "the profile of the user could not be made",
    "not_asked": "a step before it failed, so that the model was not asked",
}

PERRECBENCH = Benchmark(
    name="perrecbench",
    version=1,
    description="Rank users by preference for an item, free of rating bias and item quality.",
    paper="https://arxiv.org/abs/2501.13391",
    stages=STAGES,
    options=Options,
    load=load,
    score=score,
    scored_by_user=("rate", "compare", "rank"),
    metrics=METRICS,
    main=("ptc",),
    words=WORDS,
    details=GroupResult,
    counts=counts,
    notes=notes,
    published=results,
)
