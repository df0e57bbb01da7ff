"""How texts of the data are shown in a prompt."""

from __future__ import annotations


def one_line(text: str) -> str:
    """The text on one line: a line of a prompt must not be able to look like two."""
    return text if text.isprintable() else " ".join(text.split())


def cut(text: str, limit: int | None) -> str:
    """The text on one line, of at most `limit` characters."""
    plain = one_line(text)
    return plain if limit is None else plain[:limit].rstrip()
