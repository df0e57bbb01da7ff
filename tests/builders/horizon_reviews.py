"""Real reviews of Amazon in the official layout, for tests that need them."""

from pathlib import Path

import pytest


def amazon_in(real_data: Path) -> Path:
    """The folder of the reviews; the test is skipped, and says so, without them."""
    folder = real_data / "amazon-2023"
    if not folder.is_dir():
        pytest.skip(f"no reviews in {folder}")
    return folder
