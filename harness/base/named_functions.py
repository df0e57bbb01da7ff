"""Functions that users name as `module:function` in an option."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.base.errors import UsageError


def named_function(reference: str, *, option: str) -> Callable[..., Any]:
    """The function that an option names; its module may lie in the current folder.

    filter = named_function("mine:without_ads", option="--filter")
    """
    module, _, name = reference.partition(":")
    if not module or not name:
        raise _unusable(option, found=reference)
    with _current_folder():
        try:
            function: Callable[..., Any] | None = getattr(
                importlib.import_module(module), name, None
            )
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise _unusable(option, found=f"{reference}: {problem}") from error
    if function is None or not callable(function):
        raise _unusable(option, found=f"{reference}: {module} has no function of that name")
    return function


def function_digest(reference: str, *, option: str) -> str:
    """The SHA-256 of the module with the function, for `Benchmark.contents`; "" if it has no file.

    Two runs with the same digest used the same function, as far as its own module is concerned.
    """
    try:
        file = inspect.getsourcefile(named_function(reference, option=option))
    except TypeError:  # a builtin function
        file = None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""


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
        f"the function that {option} names cannot be used",
        found=found,
        expected="module:function, of a module that is installed or lies in the current folder",
    )
