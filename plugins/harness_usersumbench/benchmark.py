"""The benchmark, put together."""

from __future__ import annotations

from harness import Benchmark
from harness.base.named_functions import function_digest
from harness_usersumbench.data import load
from harness_usersumbench.loop import EXTRACTOR
from harness_usersumbench.metrics import METRICS, counts, score
from harness_usersumbench.paper import results
from harness_usersumbench.records import Options, UserResult
from harness_usersumbench.stages import STAGES


def contents(options: Options) -> dict[str, str]:
    """The digest of the file that holds the extractor of entities, if there is one."""
    if options.extractor is None:
        return {}
    return {EXTRACTOR: function_digest(options.extractor, option=EXTRACTOR)}


USERSUMBENCH = Benchmark(
    name="usersumbench",
    version=2,
    description="Summarise what a user did, and predict from the summary what the user does next.",
    paper="https://arxiv.org/abs/2408.16966",
    licence="MovieLens: research only, not to be passed on; Yelp and Amazon: see their owners",
    stages=STAGES,
    options=Options,
    scored_with=("threshold", "max_words"),
    load=load,
    score=score,
    metrics=METRICS,
    main=("qm",),
    details=UserResult,
    counts=counts,
    contents=contents,
    published=results,
)
