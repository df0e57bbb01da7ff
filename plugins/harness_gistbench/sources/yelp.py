"""The Yelp Open Dataset: stars for businesses, and what these are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from harness_gistbench.log import Log, Texts
from harness_gistbench.sources.ratings import SIGNALS_OF_RATINGS, rated
from harness_gistbench.sources.wording import described

if TYPE_CHECKING:
    from harness.data import Dataset, Table
    from harness_gistbench.records import Options

_PARTS = ("name", "categories", "city", "state")


def open_log(dataset: Dataset, _options: Options) -> Log:
    """The log of stars; texts are the businesses', never the reviews'."""
    reviews, businesses = dataset.table("reviews"), dataset.table("businesses")
    return Log(
        engagements=partial(
            rated, reviews, user="user_id", thing="business_id", rating="stars", time="date"
        ),
        texts=lambda: _texts(businesses),
        joined=True,
        signals=SIGNALS_OF_RATINGS,
    )


def _texts(table: Table) -> Iterator[Texts]:
    for batch in table.batches("business_id", *_PARTS):
        parts = zip(*(batch.columns[name] for name in _PARTS), strict=True)
        yield Texts(objects=batch.columns["business_id"], texts=[described(one) for one in parts])
