"""The two kinds of question a judge answers: which of these, and which class."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from harness.outcomes import NoVerdict


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
    """The positions (from 0, in the order named) that were chosen, and what had to be ignored.

    Of a judge that is several, `tied` options were chosen by just half of those who answered.
    """

    chosen: tuple[int, ...]
    rung: str
    unknown: int = 0
    repeated: int = 0
    surplus: int = 0
    tied: int = 0


class Classified(msgspec.Struct, frozen=True, kw_only=True, tag="classified"):
    """One label a text, None where the judge gave none that exists.

    Of a judge that is several, `tied` texts have no label since several were given as often.
    """

    labels: tuple[str | None, ...]
    rung: str
    tied: int = 0


class Vote(msgspec.Struct, frozen=True):
    """What one of several judges decided, or why it did not."""

    member: str
    verdict: Selected | Classified | NoVerdict


Verdict: TypeAlias = Selected | Classified
