"""Amazon Reviews 2023, one category: stars for products, and what the shop says of these."""

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


def open_log(dataset: Dataset, _options: Options) -> Log:
    """The log of ratings; texts are the products', never the reviews'."""
    reviews, products = dataset.table("reviews"), dataset.table("products")
    return Log(
        engagements=partial(
            rated, reviews, user="user_id", thing="parent_asin", rating="rating", time="timestamp"
        ),
        texts=lambda: _texts(products),
        joined=True,
        signals=SIGNALS_OF_RATINGS,
    )


def _texts(table: Table) -> Iterator[Texts]:
    for batch in table.batches("parent_asin", "title", "store", "description"):
        columns = batch.columns
        rows = zip(columns["title"], columns["store"], columns["description"], strict=True)
        texts = [
            described((title, store, *(part for part in pieces or () if isinstance(part, str))))
            for title, store, pieces in rows
        ]
        yield Texts(objects=columns["parent_asin"], texts=texts)
