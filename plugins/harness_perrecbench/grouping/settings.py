"""What may be set when groups are built; each field is an option of the command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from harness.base.errors import UsageError

ALL = "all"
"""The folder of the groups of every domain."""

_DOMAIN = re.compile(r"([a-z0-9][a-z0-9_-]*)=(.+)", re.IGNORECASE | re.DOTALL)

Least = Annotated[int, Meta(ge=2)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The log, where its groups go, and the rules they keep."""

    reviews: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="a file of reviews (parent_asin, user_id, rating, timestamp), or "
            "DOMAIN=FILE for a folder of the domain's groups too: JSONL, JSON, CSV, TSV or Parquet",
        ),
    ]
    meta: Annotated[
        tuple[Path, ...],
        Meta(min_length=1, description="a file of items (parent_asin, title, author)"),
    ]
    out: Annotated[Path, Meta(description="the folder that the groups are written to")]
    window_days: Annotated[
        float, Meta(ge=0, description="how long a window is, both of its ends within it")
    ] = 30.0
    min_history: Annotated[
        int, Meta(ge=0, description="a user has more than so many ratings before the purchase")
    ] = 20
    min_difference: Annotated[
        float, Meta(ge=0, description="relative ratings in a group are more than this apart")
    ] = 0.6
    members: Annotated[Least, Meta(description="how many users an item keeps at most")] = 5
    least_members: Annotated[
        Least,
        Meta(
            description="an item with fewer is left out; with fewer than 4, levels have different "
            "items"
        ),
    ] = 4
    test_items: Annotated[int, Meta(ge=1, description="items to test; the rest is held out")] = 200
    domain_items: Annotated[int, Meta(ge=1, description="items to test of each domain")] = 50
    behaviours: Annotated[
        int, Meta(ge=0, description="ratings drawn for the prediction of ratings alone")
    ] = 1000
    strict: Annotated[
        bool, Meta(description="averages of what a user rated before, not of the whole history")
    ] = False
    bad_rows: Annotated[
        Literal["refused", "left_out"],
        Meta(description="what happens to ratings outside 1 to 5 and rows without an id or a time"),
    ] = "refused"
    seed: Annotated[int, Meta(description="another seed draws other items and users")] = 0

    def __post_init__(self) -> None:
        if self.least_members > self.members:
            raise ValueError(
                f"at least {self.least_members} users an item, and at most {self.members}"
            )


def review_files(settings: Settings) -> Iterator[tuple[str | None, Path]]:
    """Each file of reviews with its domain, None where none was given."""
    for given in settings.reviews:
        named = _DOMAIN.fullmatch(given)
        domain = named[1] if named else None
        if domain == ALL:
            raise UsageError(
                "a domain has the name of the folder of all groups",
                where="--reviews",
                found=given,
                expected=f"another name than {ALL!r}",
                hint=f"a file of that name is given as ./{given}",
            )
        yield domain, Path(named[2] if named else given).expanduser()
