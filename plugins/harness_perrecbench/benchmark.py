"""The benchmark, put together."""

from __future__ import annotations

from harness import Benchmark
from harness_perrecbench.data import load
from harness_perrecbench.metrics import METRICS, counts, score
from harness_perrecbench.paper import results
from harness_perrecbench.ranking import notes
from harness_perrecbench.records import GroupResult, Options
from harness_perrecbench.stages import STAGES

PERRECBENCH = Benchmark(
    name="perrecbench",
    version=1,
    description="Rank users by preference for an item, free of rating bias and item quality.",
    paper="https://arxiv.org/abs/2501.13391",
    stages=STAGES,
    options=Options,
    load=load,
    score=score,
    metrics=METRICS,
    main=("ptc",),
    details=GroupResult,
    counts=counts,
    notes=notes,
    published=results,
)
