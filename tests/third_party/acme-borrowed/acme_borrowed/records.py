"""The options of the benchmark and the values that pass between its stages."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from harness import Item


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    window: Annotated[int, Meta(ge=1, description="the latest loans in the prompt")] = 10
    most: Annotated[int, Meta(ge=1, description="tastes that count in an answer")] = 3
    least: Annotated[int, Meta(ge=1, description="kept books that ground a taste")] = 1
    next: Annotated[bool, Meta(description="ask for the next book, if there are offers")] = True


class Loan(msgspec.Struct, frozen=True):
    title: str
    finished: bool


class Offer(msgspec.Struct, frozen=True):
    """Two books that a reader could have borrowed next; the first is the one they did borrow."""

    borrowed: str
    other: str


class Reader(msgspec.Struct, frozen=True):
    id: str
    loans: tuple[Loan, ...]
    offer: Offer | None


class Card(Item, frozen=True, kw_only=True):
    """Item of the stage "tastes": the latest loans of a reader."""

    loans: tuple[Loan, ...]


class Taste(msgspec.Struct, frozen=True):
    """A taste that the candidate named, and the numbers of the books that it cites."""

    taste: Annotated[str, Meta(min_length=1)]
    books: tuple[int, ...]


class Claim(Item, frozen=True, kw_only=True):
    """Item of the stage "support": a taste, and the finished books that may support it."""

    taste: str
    titles: tuple[str, ...]


class Choice(Item, frozen=True, kw_only=True):
    """Item of the stage "next": the supported tastes of a reader, and two books."""

    tastes: tuple[str, ...]
    offer: Offer


class Found(msgspec.Struct, frozen=True):
    """Details of a score: how many books were kept for each taste."""

    kept: dict[str, int]


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
