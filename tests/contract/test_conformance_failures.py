"""Our own benchmarks keep what `check_plugin` asks where runs are cut off and all calls fail."""

import pytest
from builders.conformance import BENCHMARKS, OF_BREAKS, checked  # noqa: F401 - a fixture


@pytest.mark.parametrize("check", OF_BREAKS)
@pytest.mark.parametrize("plugin", BENCHMARKS)
def test_a_benchmark_in_trouble(plugin, check, checked):  # noqa: F811
    checked(plugin, check)
