"""docs/metrics.md holds what the plugins declare, and what the baseline scores on the samples."""

import pytest
from golden.metric_pages import PAGE, TASKS, baselines_of, page_text, run_baselines

from harness.registry import load_plugins


def test_the_page_of_metrics_is_as_the_plugins_declare_them():
    page = PAGE.read_text("utf-8")
    assert page == page_text(baselines_of(page)), "run `make metrics`"


@pytest.mark.slow
def test_the_baseline_scores_on_the_samples_what_the_page_says():
    page = baselines_of(PAGE.read_text("utf-8"))
    found = run_baselines()
    assert page == {of: found[of] for of in page}, "run `make metrics`"
    assert {task for task, _ in page} == {*TASKS}


@pytest.mark.parametrize("name", load_plugins().benchmarks)
def test_a_range_holds_what_the_worst_value_of_its_column_is(name):
    for metric in load_plugins().benchmark(name).metrics.values():
        low, high = metric.range
        if metric.worst is not None and not metric.of:
            assert (low is None or low <= metric.worst) and (high is None or metric.worst <= high)
