"""What tests of every room use."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# No test looks at a clock, and hypothesis would.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real third-party files; the test is skipped, and says so, where it is absent.

    Their owners' terms keep them out of the project: HARNESS_REAL_DATA names another place.
    """
    folder = ROOT / os.environ.get("HARNESS_REAL_DATA", "../shared/data")
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}: set HARNESS_REAL_DATA")
    return folder


@pytest.fixture(scope="session", autouse=True)
def no_settings_of_the_developer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whoever runs the tests may have settings of their own, which are none of the tests'."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield
