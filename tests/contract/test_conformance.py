import pytest
from builders.conformance import (
    BENCHMARKS,
    OF_BREAKS,
    OF_DAMAGES,
    OF_RUNS,
    OF_TEXTS,
    PLUGINS,
    checked,  # noqa: F401 - a fixture
)

from harness.testing import CHECKS
from harness.testing.trial import plugin_under_test


def test_every_benchmark_is_held_to_every_check():
    assert {one for one in PLUGINS if plugin_under_test(one).benchmarks} == BENCHMARKS.keys()
    assert {*OF_TEXTS, *OF_RUNS, *OF_BREAKS, *OF_DAMAGES} == CHECKS.keys()


@pytest.mark.parametrize("check", OF_RUNS)
@pytest.mark.parametrize("plugin", BENCHMARKS)
def test_runs_of_a_benchmark(plugin, check, checked):  # noqa: F811
    checked(plugin, check)
