"""Functions that an option names as `module:function`; the module may lie in the current folder."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.base.errors import UsageError
from harness.base.hashing import digest_bytes


def named_function(reference: str, *, option: str) -> Callable[..., Any]:
    """The function that an option names; UsageError if there is none of that name."""
    module, name = _parts(reference, option)
    with _current_folder(reference, option):
        function: Callable[..., Any] | None = getattr(importlib.import_module(module), name, None)
    if function is None or not callable(function):
        raise _unusable(option, found=f"{reference}: {module} has no function of that name")
    return function


def function_digest(reference: str, *, option: str) -> str:
    """The digest of the file that holds the function, found without running it.

    Refuses the modules of Python itself: a setting from elsewhere must not name `os:system`.
    """
    module, _ = _parts(reference, option)
    if module.partition(".")[0] in sys.stdlib_module_names:
        raise _unusable(option, found=f"{reference}: {module} is a part of Python")
    with _current_folder(reference, option):
        spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise _unusable(option, found=f"{reference}: there is no file of {module}")
    return digest_bytes(Path(spec.origin).read_bytes())


def _parts(reference: str, option: str) -> tuple[str, str]:
    module, _, name = reference.partition(":")
    if not module or not name:
        raise _unusable(option, found=reference)
    return module, name


@contextmanager
def _current_folder(reference: str, option: str) -> Iterator[None]:
    """Modules are found in the current folder too; any error of theirs is a UsageError."""
    before = sys.path.copy()
    sys.path.insert(0, str(Path.cwd()))
    try:
        yield
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise _unusable(option, found=f"{reference}: {problem}") from error
    finally:
        sys.path[:] = before


def _unusable(option: str, *, found: str) -> UsageError:
    return UsageError(
        f"the function that {option} names cannot be used",
        found=found,
        expected="module:function, of a module that is installed or lies in the current folder",
    )
