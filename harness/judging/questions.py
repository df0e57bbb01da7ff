"""The two kinds of question a judge answers: which of these, and which class."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec


class Select(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the options go with the subject? `prompt` names the benchmark's own template.

    `labels` are how the options are called in prompt and answer; 1, 2, 3 … unless given.
    """

    prompt: str
    subject: str
    options: tuple[str, ...]
    labels: tuple[str, ...] = ()
    at_most: int | None = None
    variables: dict[str, Any] = {}


class Classify(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the labels does each text belong to?"""

    prompt: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    variables: dict[str, Any] = {}


Question: TypeAlias = Select | Classify


class Selected(msgspec.Struct, frozen=True, kw_only=True, tag="selected"):
    """The positions (from 0, in the order named) that were chosen, and what had to be ignored."""

    chosen: tuple[int, ...]
    rung: str
    unknown: int = 0
    repeated: int = 0
    surplus: int = 0


class Classified(msgspec.Struct, frozen=True, kw_only=True, tag="classified"):
    """One label a text, None where the judge gave none that exists."""

    labels: tuple[str | None, ...]
    rung: str


Verdict: TypeAlias = Selected | Classified
