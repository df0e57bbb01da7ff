"""The errors of downloads, each with what a person can do."""

from __future__ import annotations

from harness.base.errors import Unavailable
from harness.base.redaction import without_query

FOLDER = "give the folder that holds the file, unpacked, with --data DIR"


def refused(address: str, status: int) -> Unavailable:
    """The error for a server that refuses a file."""
    return Unavailable(
        f"the server refuses the file with status {status}",
        where=address,
        hint="open the address in a browser: the owner may want you to log in or to agree to "
        f"terms first, or the file may have moved; then {FOLDER}",
    )


def unsized(address: str, length: str | None) -> Unavailable:
    """The error for a server that does not say how long a file is, so that its end may be cut."""
    return Unavailable(
        "the server does not say how long the file is: a cut file would look whole",
        where=address,
        found="no Content-Length" if length is None else f"Content-Length: {length}",
        hint="give the file's `digest` in the task's `data.sources`; or fetch it yourself, and "
        + FOLDER,
    )


def not_given(address: str, says: str) -> Unavailable:
    """The error for a page of Google Drive in place of the file; `says` is what it says."""
    if "quota" in says.lower() or "too many" in says.lower():
        return Unavailable(
            "Google Drive gives the file to nobody for now: too many people fetched it",
            where=address,
            found=says,
            hint="repeat the command after a day; or open the address in a browser, copy the file "
            f"into a Drive of your own, download it there, and {FOLDER}",
        )
    return Unavailable(
        "Google Drive does not give the file to everybody",
        where=address,
        found=says,
        hint="open the address in a browser: its owner may have to share it with you, or may have "
        f"moved it; download it there and {FOLDER}",
    )


def unreachable(address: str, error: Exception) -> Unavailable:
    """The error for a server that does not answer, or breaks off without end."""
    return Unavailable(
        "the file could not be fetched",
        where=address,
        found=without_query(str(error)),
        hint="repeat the command when the server can be reached: it continues where it stopped; or "
        + FOLDER,
    )
