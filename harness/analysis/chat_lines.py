"""Training data for language models: lines of chat JSONL, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.base.errors import UsageError
from harness.runs.atomic_files import atomic_writer, make_folder

if TYPE_CHECKING:
    from harness.contracts.model import Message

OUT = "--out"


def chat_line(asked: Iterable[Message], answer: str) -> bytes:
    """One line: the messages of a question, and the answer as the assistant's message."""
    turns = [*((one.role, one.content) for one in asked), ("assistant", answer)]
    messages = [{"role": role, "content": content} for role, content in turns]
    return json.dumps({"messages": messages}).encode("ascii") + b"\n"


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
