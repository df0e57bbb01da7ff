"""Our own benchmarks keep what `check_plugin` asks of damaged answers, and of batches."""

import pytest
from builders.conformance import BENCHMARKS, OF_DAMAGES, checked  # noqa: F401 - a fixture


@pytest.mark.parametrize("check", OF_DAMAGES)
@pytest.mark.parametrize("plugin", BENCHMARKS)
def test_a_benchmark_with_other_answers(plugin, check, checked):  # noqa: F811
    checked(plugin, check)
