"""`--prompts DIR`: a folder of prompts that stand in for those of the same name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.errors import PromptError, did_you_mean
from harness.prompting.templates import ENDING, Templates

ASIDE = (".", "_")
"""What the names of files begin with that are no prompts: hidden ones, and parts of prompts."""

NOTES = (".md", ".yaml")
"""The endings of files that tell people about prompts."""


def overrides_in(folder: Path, templates: Templates) -> dict[str, dict[str, str]]:
    """The files that replace prompts, by benchmark and `<prompt>.<role>`.

    PromptError for a file that replaces nothing, with the nearest prompt, and where there is none.
    """
    known = templates.everything()
    found: dict[str, dict[str, str]] = {}
    for file in _files(folder):
        name = file.relative_to(folder).as_posix()
        if not name.endswith(ENDING) or name.removesuffix(ENDING) not in known:
            near = did_you_mean(name, [f"{one}{ENDING}" for one in known])
            raise PromptError(
                "a file of --prompts replaces no prompt",
                where=str(file),
                found=name,
                expected=f"BENCHMARK/PROMPT.ROLE{ENDING} of a prompt that there is; names of parts "
                "to include begin with _",
                hint=near or "`harness prompts` lists them",
            )
        found.setdefault(file.parent.name, {})[file.name.removesuffix(ENDING)] = str(file)
    if not found:
        raise PromptError(
            "--prompts names no folder of prompts",
            found=str(folder),
            expected=f"a folder with files BENCHMARK/PROMPT.ROLE{ENDING}",
            hint="`harness prompts` lists those that there are to replace",
        )
    return found


def _files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        aside = any(part.startswith(".") for part in parts) or file.name.startswith(ASIDE)
        if file.is_file() and not aside and file.suffix not in NOTES:
            yield file
