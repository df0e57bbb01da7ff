"""Counts the words of a summary, for every number that needs it."""

from __future__ import annotations


def count_words(text: str) -> int:
    """The words between white space in a whole answer, its headings included."""
    return len(text.split())
