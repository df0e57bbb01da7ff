"""Our own benchmarks keep what `check_plugin` asks of cut runs, failed calls and odd answers."""

import pytest
from builders.conformance import BENCHMARKS, OF_BREAKS, OF_DAMAGES, checked  # noqa: F401 - a fixture


@pytest.mark.parametrize("check", (*OF_BREAKS, *OF_DAMAGES))
@pytest.mark.parametrize("plugin", BENCHMARKS)
def test_a_benchmark_in_trouble(plugin, check, checked):  # noqa: F811
    checked(plugin, check)
