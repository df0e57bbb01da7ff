"""What only `make soak` runs can be imported, so that nobody finds out after an hour."""

import importlib
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).resolve().parents[1] / "soak"
FILES = sorted(one.stem for one in SOAK.glob("*.py") if one.stem != "conftest")


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_soak_imports_what_there_is(name, monkeypatch):
    monkeypatch.syspath_prepend(str(SOAK))
    importlib.import_module(name)
    del sys.modules[name]
