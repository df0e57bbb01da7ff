"""What a comparison of runs is made of: give what the test is about, the rest is as usual."""

from collections.abc import Iterable, Mapping
from typing import Any

from harness.comparison.document import ComparedRun, Comparison, Difference
from harness.scoring.summary import MetricResult


def make_compared(label: str, metrics: Mapping[str, MetricResult], **fields: Any) -> ComparedRun:
    """A run of 40 units with this label, `run-LABEL`, that has nothing in common with others."""
    usual: dict[str, Any] = {"marks": (), "units": 40, "counts": {}, "common": {}}
    return ComparedRun(
        run=f"run-{label}", path=f"runs/run-{label}", label=label, model=label, metrics=metrics,
        **{**usual, **fields},
    )  # fmt: skip


def make_comparison(
    task: str, runs: Iterable[ComparedRun], *differences: Difference, **fields: Any
) -> Comparison:
    """A comparison of these runs in the metric `ptc`, all of which agree."""
    usual: dict[str, Any] = {
        "version": 1, "benchmark": "b", "roles": {}, "data": {}, "not_comparable_because": (),
        "chosen": "all agree", "main": ("ptc",), "refused": (), "oracle": None,
    }  # fmt: skip
    return Comparison(task=task, runs=tuple(runs), differences=differences, **{**usual, **fields})


def make_difference(
    value: float, interval: tuple[float, float] | None, holm: float | None, **fields: Any
) -> Difference:
    """The difference of the run `new` and the run `old` on 38 units, one a user."""
    usual: dict[str, Any] = {
        "metric": "ptc", "first": "run-new", "second": "run-old", "n": 38, "users": 38,
        "confidence": 0.95, "p": holm,
    }  # fmt: skip
    return Difference(value=value, interval=interval, p_holm=holm, **{**usual, **fields})
