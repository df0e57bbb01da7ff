"""What tests of every room use."""

import os
from pathlib import Path

import pytest

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
