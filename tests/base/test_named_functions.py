"""Functions that users name: where they are found, errors, and digests."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from harness.base.errors import UsageError
from harness.base.named_functions import function_digest, named_function

KEEP = "def keep(row):\n    return row\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_error_of_a_module_that_cannot_be_imported_names_the_option() -> None:
    Path("broken_module_of_a_test.py").write_text("1 / 0\n")
    with pytest.raises(UsageError, match="--filter") as error:
        named_function("broken_module_of_a_test:keep", option="--filter")
    assert error.value.found == "broken_module_of_a_test:keep: ZeroDivisionError: division by zero"


def test_a_function_is_found_in_the_current_folder() -> None:
    Path("own_module_of_a_test.py").write_text(KEEP)
    before = list(sys.path)
    assert named_function("own_module_of_a_test:keep", option="--filter")(1) == 1
    assert sys.path == before
    for wrong in ("own_module_of_a_test", "own_module_of_a_test:drop", "no_such_module_here:f"):
        with pytest.raises(UsageError, match="--filter"):
            named_function(wrong, option="--filter")


def test_the_digest_is_that_of_the_module_s_file() -> None:
    Path("digested_module_of_a_test.py").write_text(KEEP)
    expected = hashlib.sha256(KEEP.encode()).hexdigest()
    assert function_digest("digested_module_of_a_test:keep", option="extractor") == expected
    assert function_digest("builtins:len", option="extractor") == ""
