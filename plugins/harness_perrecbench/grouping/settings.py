"""The options of `harness data perrec-groups`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from harness.base.errors import UsageError

ALL = "all"
"""The folder of the groups of all domains."""

_DOMAIN = re.compile(r"([a-z0-9][a-z0-9_-]*)=(.+)", re.IGNORECASE | re.DOTALL)

Least = Annotated[int, Meta(ge=2)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The log, the folder of the groups, and the rules for them."""

    reviews: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="a file of reviews (parent_asin, user_id, rating, timestamp), or "
            "DOMAIN=FILE to write the domain's own groups too: JSONL, JSON, CSV, TSV or Parquet",
        ),
    ]
    meta: Annotated[
        tuple[Path, ...],
        Meta(min_length=1, description="a file of items (parent_asin, title, author)"),
    ]
    out: Annotated[Path, Meta(description="the folder that the groups are written to")]
    window_days: Annotated[
        float, Meta(ge=0, description="the length of a window, including both ends")
    ] = 30.0
    min_history: Annotated[
        int, Meta(ge=0, description="a user has more ratings than this before the purchase")
    ] = 20
    min_difference: Annotated[
        float, Meta(ge=0, description="relative ratings in a group differ by more than this")
    ] = 0.6
    members: Annotated[Least, Meta(description="the largest number of users of an item")] = 5
    least_members: Annotated[
        Least,
        Meta(
            description="items with fewer users are left out; below 4, levels have different items"
        ),
    ] = 4
    test_items: Annotated[int, Meta(ge=1, description="test items; the others are held out")] = 200
    domain_items: Annotated[int, Meta(ge=1, description="test items of each domain")] = 50
    behaviours: Annotated[
        int, Meta(ge=0, description="behaviours drawn for tasks with ask: rating")
    ] = 1000
    strict: Annotated[
        bool, Meta(description="take averages over earlier ratings, not over whole histories")
    ] = False
    bad_rows: Annotated[
        Literal["refused", "left_out"],
        Meta(description="the treatment of ratings outside 1 to 5, and rows without id or time"),
    ] = "refused"
    seed: Annotated[int, Meta(description="another seed draws other items and users")] = 0

    def __post_init__(self) -> None:
        if self.least_members > self.members:
            raise ValueError(
                f"least_members={self.least_members} is more than members={self.members}"
            )


def review_files(settings: Settings) -> Iterator[tuple[str | None, Path]]:
    """Each file of reviews with its domain, None without one."""
    for given in settings.reviews:
        named = _DOMAIN.fullmatch(given)
        domain = named[1] if named else None
        if domain == ALL:
            raise UsageError(
                f"the name {ALL!r} is reserved for the folder of all domains",
                where="--reviews",
                found=given,
                expected="DOMAIN=FILE with the domain's own name",
                hint=f"if this is a file's name, give it as ./{given}",
            )
        yield domain, Path(named[2] if named else given).expanduser()
