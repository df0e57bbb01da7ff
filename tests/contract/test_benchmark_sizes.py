"""A benchmark stays small enough for somebody else to read it; its sample data do not count."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "plugins"
NOT_BENCHMARKS = {"harness_models", "harness_judges", "harness_trackers"}

MOST_FILES, MOST_LINES = 35, 4_500
LIMITS = {
    "harness_gistbench": (48, 6_296),
    "harness_perrecbench": (33, 5_600),
    "harness_horizon": (46, 6_203),
}
"""Files and lines of the packages that are larger; both fall with each change that allows it.

HORIZON is two benchmarks, the curation of their data, four networks and an index of titles.
"""


def size(package):
    """How many Python files a package has, and how many lines these have together."""
    files = list(package.rglob("*.py"))
    return len(files), sum(len(file.read_text("utf-8").splitlines()) for file in files)


PACKAGES = sorted(
    path.name
    for path in ROOT.glob("harness_*")
    if path.is_dir() and path.name not in NOT_BENCHMARKS
)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_benchmark_is_no_larger_than_it_may_be(name, capsys):
    files, lines = size(ROOT / name)
    most_files, most_lines = LIMITS.get(name, (MOST_FILES, MOST_LINES))
    with capsys.disabled():
        print(f"\n{name}: {files} files of {most_files}, {lines:,} lines of {most_lines:,}")
    assert files <= most_files
    assert lines <= most_lines


def test_the_limits_are_of_benchmarks_that_exist():
    assert set(LIMITS) <= set(PACKAGES)
