"""The benchmark, put together."""

from __future__ import annotations

from harness import Benchmark
from harness.base.named_functions import function_digest
from harness_usersumbench.data import load
from harness_usersumbench.loop import EXTRACTOR
from harness_usersumbench.metrics import METRICS, counts, notes, score
from harness_usersumbench.paper import results
from harness_usersumbench.records import Options, UserResult
from harness_usersumbench.stages import STAGES


def contents(options: Options) -> dict[str, str]:
    """The digest of the file that holds the extractor of entities, if there is one."""
    if options.extractor is None:
        return {}
    return {EXTRACTOR: function_digest(options.extractor, option=EXTRACTOR)}


WORDS = {
    "Q_s": "1 if enough questions of a user are answered right from the summary, else 0",
    "single_step": "each past is summarised at once",
    "hierarchy_critique": "each past is summarised by segments, which a verifier checks",
    "raw_timeline": "the activities themselves in place of a summary",
    "none": "nothing in place of a summary",
    "other": "the summary of another user, a control",
    "_hc": "each past is summarised by segments, which a verifier checks",
    "_raw": "the activities themselves in place of a summary",
    "_none": "nothing in place of a summary",
    "_other": "the summary of another user, a control",
    "no_plain_answer": "the reply is no letter, no option and no plain statement of one",
    "several_named": "the reply names several options",
    "no_pairs": "the reply holds no questions with their answers",
    "no_judgements": "the reply judges none of the pairs",
    "no_single_verdict": "the reply is no plain consistent or inconsistent",
    "unread_check": "a check of the verifier could not be read in full",
    "not_in_summary": "the reply names nothing that the summary holds",
}

USERSUMBENCH = Benchmark(
    name="usersumbench",
    version=3,
    description="Summarise what a user did, and predict from the summary what the user does next.",
    paper="https://arxiv.org/abs/2408.16966",
    licence="MovieLens: research only, not to be passed on; Yelp and Amazon: see their owners",
    stages=STAGES,
    options=Options,
    scored_with=("threshold", "max_words"),
    adding=("autoeval",),
    load=load,
    score=score,
    metrics=METRICS,
    main=("qm",),
    words=WORDS,
    details=UserResult,
    counts=counts,
    notes=notes,
    contents=contents,
    published=results,
)
