"""A key that is kept in a file."""

from __future__ import annotations

from pathlib import Path

from harness.errors import UsageError
from harness.redaction import keep_out


def read_key(named: str) -> str:
    """The key that a file holds, kept out of all that is written from now on."""
    file = Path(named).expanduser()
    try:
        key = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise _unusable(named, f"{reason}") from error
    if not key:
        raise _unusable(named, "an empty file")
    # A header is one line of ASCII; what else a file holds is told without being repeated.
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise _unusable(named, "more than one word, or characters that no key has")
    keep_out(key)
    return key


def _unusable(named: str, found: str) -> UsageError:
    return UsageError(
        "the file of the key cannot be used",
        where=f"--model_args, api_key_file={named}",
        found=found,
        expected="a file that holds the key and nothing else",
    )
