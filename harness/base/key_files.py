"""The texts of key files: this machine's own, or those that another machine handed over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.base.redaction import keep_out

_handed: dict[str, str] = {}
"""The texts of files that this machine may lack, by their names as the user gave them."""


def hand_over(files: Mapping[str, str]) -> None:
    """Keep the texts of key files for this process; from now on they are redacted from all output.

    `hand_over({"key.txt": text})` lets `key_text("key.txt")` succeed on a machine without the file.
    """
    for text in files.values():
        keep_out(text.strip())
    _handed.update(files)


def key_text(named: str) -> str:
    """The text of a key file; OSError or UnicodeDecodeError if nobody has it in readable form.

    `key = key_text(settings.args["key_file"]).strip()`
    """
    file = Path(named).expanduser()
    if named in _handed and not file.exists():
        return _handed[named]
    return file.read_text("utf-8")
