"""Training data for language models: lines of chat JSONL, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import DataError, UsageError
from harness.contracts.report import Sheet
from harness.runs.atomic_files import atomic_writer, make_folder

if TYPE_CHECKING:
    from harness.contracts.model import Message

OUT = "--out"

NAMED = 3
"""The parts of a trace by name, as (user, title, author); a trace by number has two."""


def chat_line(asked: Iterable[Message], answer: str) -> bytes:
    """One line: the messages of a question, and the answer as the assistant's message."""
    turns = [*((one.role, one.content) for one in asked), ("assistant", answer)]
    messages = [{"role": role, "content": content} for role, content in turns]
    return json.dumps({"messages": messages}).encode("ascii") + b"\n"


def audit(
    tested: Set[tuple[object, ...]], traces: Set[tuple[object, ...]], what: str, *notes: str
) -> Sheet:
    """How many traces of things in texts training data and tests have; DataError if they share any.

    `what` names one of the things that tests ask for: rating.
    """
    shared = tested & traces
    named = [sum(len(one) == NAMED for one in each) for each in (tested, traces)]
    if shared:
        raise DataError(
            f"the training data contains test {what}s, so nothing was written",
            found=f"{len(shared)}, such as {min(map(str, shared))}",
            expected=f"training data without any {what} of the tests",
        )
    return Sheet(
        title="Audit of users and things",
        columns=("in tests", "in training data", "shared"),
        rows=((*named, len(shared)),),
        notes=notes,
    )


def check_new(files: Iterable[Path], folder: Path) -> None:
    """Raise UsageError if one of the files is there already."""
    there = [file.name for file in files if file.exists()]
    if there:
        raise UsageError(
            "the folder already contains training data",
            where=str(folder),
            found=", ".join(there),
            expected=f"{OUT}: a folder without training data, or one that does not exist yet",
        )


def write_lines(files: Mapping[Path, Iterable[bytes]], folder: Path) -> str:
    """Write the lines of each file; the note that says so."""
    make_folder(folder, option=OUT)
    for place, lines in files.items():
        with atomic_writer(place, option=OUT) as file:
            file.writelines(lines)
    return f"written: {', '.join(map(str, files))}"
