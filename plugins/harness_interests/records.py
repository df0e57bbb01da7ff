"""The options of the benchmark and the typed values that pass between its stages."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from harness import Item

AtLeastOne = Annotated[int, Meta(ge=1)]


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a task file."""

    window: Annotated[
        AtLeastOne, Meta(description="a person's latest engagements in the prompt")
    ] = 20
    max_interests: Annotated[AtLeastOne, Meta(description="interests that count in an answer")] = 5
    min_support: Annotated[
        AtLeastOne, Meta(description="kept items that make an interest grounded")
    ] = 3


class Engagement(msgspec.Struct, frozen=True):
    """The title of an object that a person saw, and whether they liked it."""

    title: str
    liked: bool


class Person(msgspec.Struct, frozen=True):
    """One person's history, oldest first."""

    id: str
    history: tuple[Engagement, ...]


class History(Item, frozen=True, kw_only=True):
    """Item of the stage "name": one person's engagements, which the prompt numbers from 1."""

    engagements: tuple[Engagement, ...]

    def liked(self) -> tuple[int, ...]:
        """The numbers of the engagements that the person liked."""
        return tuple(n for n, one in enumerate(self.engagements, start=1) if one.liked)


class Interest(msgspec.Struct, frozen=True):
    """An interest that the candidate named, with the distinct numbers that it cites."""

    name: str
    cited: tuple[int, ...]


class Claim(Item, frozen=True, kw_only=True):
    """Item of the stage "support": one interest, and the cited items that may support it."""

    interest: str
    numbers: tuple[int, ...]
    titles: tuple[str, ...]


class Support(msgspec.Struct, frozen=True):
    """Value of the stage "support": the numbers of the cited items that the judge kept."""

    kept: tuple[int, ...]


def claim_id(user: str, position: int) -> str:
    """The id of the claim about a person's interest at a position, counted from 1."""
    return f"{user}/{position}"


def evidence(history: History, interest: Interest) -> tuple[int, ...]:
    """The cited numbers that can support an interest: those of liked engagements."""
    liked = set(history.liked())
    return tuple(number for number in interest.cited if number in liked)
