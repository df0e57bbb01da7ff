"""What the variables of prompts mean, from the file beside the prompts that says it.

`prompts/<benchmark>/variables.yaml` maps each variable to its meaning. Where one means something
else in a prompt, the prompt's name `<prompt>.<role>` maps to the variables that it has otherwise.
The file is for people: nothing of it enters a digest or a key.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.base.errors import PromptError

VARIABLES = "variables.yaml"


def meanings(file: Path, variables: Iterable[str]) -> dict[str, str | None]:
    """The meaning of each of these variables of a prompt's file; None where nothing is said."""
    said = _said(file.parent / VARIABLES)
    own = said.get(file.stem, {})
    if not isinstance(own, dict):
        raise _bad(file.parent / VARIABLES, file.stem, own, "variables with their meanings")
    return {name: _meaning(file, name, own.get(name, said.get(name))) for name in sorted(variables)}


def _meaning(file: Path, name: str, said: Any) -> str | None:
    if said is not None and not isinstance(said, str):
        raise _bad(file.parent / VARIABLES, name, said, "its meaning as text")
    return said


def _said(file: Path) -> dict[Any, Any]:
    if not file.is_file():
        return {}
    import yaml

    try:
        said = yaml.safe_load(file.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PromptError(
            "the file of variables cannot be read", where=str(file), found=str(error)
        ) from error
    if said is not None and not isinstance(said, dict):
        raise _bad(file, "all of it", said, "variables with their meanings")
    return said or {}


def _bad(file: Path, name: str, found: Any, expected: str) -> PromptError:
    return PromptError(
        f"{name!r} cannot be used", where=str(file), found=repr(found)[:100], expected=expected
    )
