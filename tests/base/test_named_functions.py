"""Functions that an option names, and the digest of the file that holds one."""

import sys

import pytest

from harness.base.errors import UsageError
from harness.base.named_functions import function_digest, named_function


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """Writes a module into the current folder, which Python does not look into by itself."""
    monkeypatch.chdir(tmp_path)

    def write(name, source):
        (tmp_path / f"{name}.py").write_text(source)

    return write


def test_a_function_is_found_in_the_current_folder_and_a_broken_module_named(in_folder):
    in_folder("own_filter_of_a_test", "def keep(row):\n    return row\n")
    before = list(sys.path)
    assert named_function("own_filter_of_a_test:keep", option="--filter")(1) == 1
    assert sys.path == before
    for wrong in ("own_filter_of_a_test", "own_filter_of_a_test:drop", "no_such_module_here:f"):
        with pytest.raises(UsageError, match="--filter"):
            named_function(wrong, option="--filter")
    in_folder("broken_filter_of_a_test", "1 / 0\n")
    with pytest.raises(UsageError, match="--filter") as error:
        named_function("broken_filter_of_a_test:keep", option="--filter")
    assert error.value.found == "broken_filter_of_a_test:keep: ZeroDivisionError: division by zero"


def test_the_digest_changes_with_the_file_and_runs_nothing_of_it(in_folder):
    in_folder("own_linker_of_a_test", "raise RuntimeError\n")
    first = function_digest("own_linker_of_a_test:find", option="extractor")
    in_folder("own_linker_of_a_test", "raise RuntimeError  # changed\n")
    assert function_digest("own_linker_of_a_test:find", option="extractor") != first


@pytest.mark.parametrize(
    "wrong",
    ["os:system", "shutil:rmtree", "sys:exit", "no_such_module_here:f", "no.such.module:f", "json"],
)
def test_a_module_of_python_or_without_a_file_is_refused(wrong):
    with pytest.raises(UsageError, match="that extractor names cannot be used"):
        function_digest(wrong, option="extractor")
