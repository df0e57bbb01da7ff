"""Functions of the user's own, named on the command line as `module:function`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import UsageError


def named_function(reference: str, *, option: str) -> Callable[[Any], Any]:
    """The function that an option names; its module may lie in the current folder."""
    module, _, name = reference.partition(":")
    if not module or not name:
        raise _unusable(option, found=reference)
    with _current_folder():
        try:
            function: Callable[[Any], Any] | None = getattr(
                importlib.import_module(module), name, None
            )
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            raise _unusable(option, found=f"{reference}: {told}") from error
    if function is None or not callable(function):
        raise _unusable(option, found=f"{reference}: {module} has no function of that name")
    return function


@contextmanager
def _current_folder() -> Iterator[None]:
    before = sys.path.copy()
    sys.path.insert(0, str(Path.cwd()))
    try:
        yield
    finally:
        sys.path[:] = before


def _unusable(option: str, *, found: str) -> UsageError:
    return UsageError(
        f"the function that --{option} names cannot be used",
        found=found,
        expected="module:function, of a module that is installed or lies in the current folder",
    )
