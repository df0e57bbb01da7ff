"""The benchmark, put together."""

from __future__ import annotations

from harness import Benchmark
from harness_behaviour.data import load
from harness_behaviour.metrics import METRICS, score
from harness_behaviour.records import Fit, Options
from harness_behaviour.stages import STAGES

BEHAVIOUR = Benchmark(
    name="behaviour",
    version=1,
    description="Which ten of fifty movies or tracks does a group of users choose?",
    paper="https://arxiv.org/abs/2507.05266",
    licence="MovieLens: research only, not to be passed on; last.fm 1K: non-commercial use",
    stages=STAGES,
    options=Options,
    scored_with=("fills", "window"),
    load=load,
    score=score,
    metrics=METRICS,
    main=("gap",),
    details=Fit,
)
