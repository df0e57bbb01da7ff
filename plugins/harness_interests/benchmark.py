"""The benchmark, put together."""

from __future__ import annotations

from harness import Benchmark
from harness_interests.data import load
from harness_interests.metrics import METRICS, score
from harness_interests.records import Options
from harness_interests.stages import NAME, SUPPORT

INTERESTS = Benchmark(
    name="interests",
    version=1,
    description="Name a person's interests from a short history, and cite the evidence.",
    stages=(NAME, SUPPORT),
    options=Options,
    scored_with=("min_support",),
    scored_by_user=("name", "support"),
    load=load,
    score=score,
    metrics=METRICS,
    main=("support",),
)
