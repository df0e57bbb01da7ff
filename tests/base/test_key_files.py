"""Key files of this machine, and those that another one handed over."""

import pytest

from harness.base import key_files
from harness.base.key_files import hand_over, key_text
from harness.base.redaction import safe_text


@pytest.fixture(autouse=True)
def nothing_handed(monkeypatch):
    monkeypatch.setattr(key_files, "_handed", {})


def test_a_text_that_was_handed_over_stands_in_for_a_missing_file_and_is_redacted(tmp_path):
    named = str(tmp_path / "key")
    with pytest.raises(FileNotFoundError):
        key_text(named)
    hand_over({named: "key-of-the-driver\n"})
    assert key_text(named) == "key-of-the-driver\n"
    (tmp_path / "key").write_text("own")
    assert key_text(named) == "own"
    hand_over({"key": "handed-3f2a9c71b8\n"})
    assert safe_text("Bearer of handed-3f2a9c71b8.") == "Bearer of [redacted]."
