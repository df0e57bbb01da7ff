"""The benchmark, put together."""

from __future__ import annotations

from harness import Benchmark
from harness_gistbench.categories import contents
from harness_gistbench.metrics import METRICS, SCORED_WITH, run_counts, score
from harness_gistbench.oracle import ORACLE
from harness_gistbench.paper import results
from harness_gistbench.records import Options, Profile
from harness_gistbench.sources import load
from harness_gistbench.stages.overlap import OVERLAP
from harness_gistbench.stages.predict import PREDICT
from harness_gistbench.stages.specificity import SPECIFICITY
from harness_gistbench.stages.taxonomy import TAXONOMY
from harness_gistbench.stages.verify import VERIFY

GISTBENCH = Benchmark(
    name="gistbench",
    version=2,
    description="Name a user's interests from long histories, and ground them in evidence.",
    paper="https://arxiv.org/abs/2603.29112",
    stages=(PREDICT, VERIFY, TAXONOMY, OVERLAP, SPECIFICITY),
    options=Options,
    load=load,
    score=score,
    metrics=METRICS,
    main=("ig_p", "is"),
    words={"imp+": "implicit positive signals", "exp+": "explicit positive signals"},
    scored_with=SCORED_WITH,
    scored_by_user=("predict", "verify", "specificity"),
    details=Profile,
    oracle=ORACLE,
    counts=run_counts,
    contents=contents,
    published=results,
)
