"""Reads the meanings of the prompts' variables from `prompts/<benchmark>/variables.yaml`.

The file maps each variable to its meaning. Where a variable means something else in one prompt, the
prompt's name `<prompt>.<role>` maps to the variables with other meanings. The file is for people:
it affects no digest or key.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.base.errors import PromptError

VARIABLES = "variables.yaml"


def meanings(file: Path, variables: Iterable[str]) -> dict[str, str | None]:
    """The meaning of each of these variables of a prompt's file; None where none is given."""
    source = file.parent / VARIABLES
    content = _read(source)
    own = content.get(file.stem, {})
    if not isinstance(own, dict):
        raise _invalid(source, file.stem, own, "a mapping of variables to meanings")
    found = {name: own.get(name, content.get(name)) for name in sorted(variables)}
    for name, text in found.items():
        if text is not None and not isinstance(text, str):
            raise _invalid(source, name, text, "its meaning as text")
    return found


def _read(file: Path) -> dict[Any, Any]:
    if not file.is_file():
        return {}
    import yaml

    try:
        content = yaml.safe_load(file.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise PromptError(
            "the file of variables cannot be read", where=str(file), found=str(error)
        ) from error
    if content is not None and not isinstance(content, dict):
        raise _invalid(file, "the file", content, "a mapping of variables to meanings")
    return content or {}


def _invalid(file: Path, name: str, found: Any, expected: str) -> PromptError:
    return PromptError(
        f"{name!r} cannot be used", where=str(file), found=repr(found)[:100], expected=expected
    )
