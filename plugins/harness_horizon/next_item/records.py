"""The options of the benchmark, its questions, and what is recorded about an answer."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from harness import Item

Setting = Literal["1a", "1b", "1c", "1d"]
SETTINGS: tuple[Setting, ...] = ("1a", "1b", "1c", "1d")

MEANING: dict[Setting, str] = {
    "1a": "trained users, last item before 2020",
    "1b": "users held out, last item before 2020",
    "1c": "trained users, every item from 2020",
    "1d": "users held out, every item from 2020",
}


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a task file."""

    setting: Annotated[Setting, Meta(description="which users, and which of their items")] = "1a"
    prefix: Annotated[
        Literal["rolling", "frozen"],
        Meta(
            description="the history before each target, with the true items, or only what is "
            "before the first target"
        ),
    ] = "rolling"
    length: Annotated[
        Annotated[int, Meta(ge=1)], Meta(description="the latest items of a history in a question")
    ] = 100
    negatives: Annotated[
        Annotated[int, Meta(ge=0)],
        Meta(
            description="rank the target among so many random items; 0 ranks all items, as the "
            "published tables do"
        ),
    ] = 0


class Case(Item, frozen=True, kw_only=True):
    """Item of the stage `next_item`: a history of item numbers, and the item that follows."""

    history: tuple[int, ...]
    target: int
    known: bool
    """Whether the target has a training interaction, so that it can be recommended."""

    among: tuple[int, ...] = ()
    """The items to rank, if not all."""


class Ranked(msgspec.Struct, frozen=True, omit_defaults=True):
    """Value of the stage `next_item`: the target's expected rank, None if it was not listed."""

    rank: float | None
    listed: int
    """The number of items in the answer."""
