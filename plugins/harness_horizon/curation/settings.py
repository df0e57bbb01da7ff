"""The options of `harness data horizon`, and the dates that divide histories."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harness.base.errors import UsageError

TAU = 1_577_836_800_000
"""2020-01-01 UTC in milliseconds: what is dated before may be trained on."""

VALIDATION_YEAR = 1_546_300_800_000
"""2019-01-01 UTC, where training ends if the year 2019 is for validation."""

AFTER_2020 = 1_609_459_200_000
"""2021-01-01 UTC."""

LEAST_MEMORY = 500_000_000
"""The least memory with which the work can be done."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The files, the memory, and the rules of the splits."""

    reviews: Annotated[
        tuple[Path, ...],
        Meta(
            min_length=1,
            description="a folder of reviews or ratings (user_id, parent_asin, timestamp), one "
            "file for each category: JSONL, CSV or Parquet, also as .gz",
        ),
    ]
    meta: Annotated[
        tuple[Path, ...],
        Meta(
            min_length=1,
            description="a folder of metadata (parent_asin, title, main_category), one file for "
            "each category, named like the reviews or with meta_ before",
        ),
    ]
    out: Annotated[Path, Meta(description="the folder that everything is written to")]
    memory: Annotated[str, Meta(description="what the whole process may hold in memory")] = "8GB"
    validation: Annotated[
        Literal["last", "2019"],
        Meta(
            description="validate with the item before the last one before 2020, or with the year "
            "2019, so that training ends before it"
        ),
    ] = "last"
    published: Annotated[
        bool,
        Meta(
            description="as the authors' scripts: hold out users of the year 2020, train on years "
            "before 2019, and validate with items of 2019; the README says how"
        ),
    ] = False
    held_out: Annotated[
        int, Meta(ge=1, description="users held out, at most a tenth of those it may be")
    ] = 1_000_000
    trained: Annotated[
        int, Meta(ge=1, description="users trained on, with --published besides those tested")
    ] = 100_000
    tested: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="users of these who are tested; by default 25,000 or --trained if less"),
    ] = None
    least_interactions: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="the fewest of a user of Task 1; by default 5 with --published, else 1"),
    ] = None
    least_items: Annotated[int, Meta(ge=1, description="fewer items than this are an error")] = 100
    partitions: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(description="parts of users; by default one for 4 million rows"),
    ] = None
    seed: Annotated[int, Meta(description="another seed draws other users")] = 0

    def __post_init__(self) -> None:
        if not self.published and self.most_tested > self.trained:
            raise ValueError(f"tested={self.tested} is more than trained={self.trained}")

    @property
    def most_tested(self) -> int:
        """How many users are tested."""
        return self.tested or min(25_000, self.trained)

    @property
    def least(self) -> int:
        """How many interactions a user has who is trained on or asked for the next item."""
        return self.least_interactions or (5 if self.published else 1)

    @property
    def by_year(self) -> bool:
        """Whether the year 2019 is for validation."""
        return self.published or self.validation == "2019"

    @property
    def end_of_training(self) -> int:
        """What is trained on is dated before this moment."""
        return VALIDATION_YEAR if self.by_year else TAU

    def rules(self) -> dict[str, Any]:
        """The options that decide what is written."""
        others = ("reviews", "meta", "out", "memory")
        every = msgspec.structs.asdict(self) | {"tested": self.most_tested}
        # A build without a least number of interactions has the rules of one that knows of none.
        every["least_interactions"] = self.least if self.least > 1 else None
        return {name: one for name, one in every.items() if name not in others}


def memory_bytes(memory: str) -> int:
    """The bytes that the process may hold; UsageError if that is no size or too small."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]i?|)b?", memory.strip(), re.IGNORECASE)
    if found is None:
        raise UsageError(
            "the value of --memory is not valid", found=memory, expected="8GB, 500MB …"
        )
    given = round(float(found[1]) * _UNITS[found[2].lower()])
    if given < LEAST_MEMORY:
        raise UsageError(
            "the memory is too small for this work",
            where="--memory",
            found=memory,
            expected=f"{LEAST_MEMORY // 10**6}MB or more",
        )
    return given
