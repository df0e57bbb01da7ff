"""Stars for things: Amazon Reviews 2023, the UCSD Book Graph and the Yelp Open Dataset.

Texts are the descriptions of the things, never the reviews.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from harness.data.sampling import ranks
from harness_gistbench.log_index import CODES, NO_SIGNAL, Engagements, Log, Texts
from harness_gistbench.records import Signal
from harness_gistbench.sources.cells import described, engagements_of, texts_of
from harness_gistbench.sources.times import Clock

if TYPE_CHECKING:
    import numpy as np

    from harness.contracts.dataset import Dataset, Table
    from harness_gistbench.records import Options

SIGNALS_OF_RATINGS: tuple[Signal, ...] = (
    "explicit_positive",
    "implicit_positive",
    "explicit_negative",
)
MOST = 5.0
_LEAST_POSITIVE = 3.0
_BUSINESS = ("business_id", "name", "categories", "city", "state")


def open_amazon(dataset: Dataset, _options: Options) -> Log:
    """One category of Amazon Reviews 2023: ratings of products."""
    columns = ("user_id", "parent_asin", "rating", "timestamp")
    ratings = partial(rated, dataset.table("reviews"), columns)
    return _log(ratings, partial(_products, dataset.table("products")))


def open_goodreads(dataset: Dataset, _options: Options) -> Log:
    """The Book Graph: ratings without times; a book has its number in the interactions."""
    ratings = partial(rated, dataset.table("interactions"), ("user_id", "book_id", "rating"))
    return _log(ratings, partial(_books, dataset.table("book_ids"), dataset.table("books")))


def open_yelp(dataset: Dataset, _options: Options) -> Log:
    """Yelp: stars for businesses."""
    ratings = partial(rated, dataset.table("reviews"), ("user_id", "business_id", "stars", "date"))
    return _log(ratings, partial(texts_of, dataset.table("businesses"), *_BUSINESS))


def _log(ratings: Callable[[], Iterator[Engagements]], texts: Callable[[], Iterator[Texts]]) -> Log:
    return Log(engagements=ratings, texts=texts, joined=True, signals=SIGNALS_OF_RATINGS)


def signal_code(rating: float) -> int | None:
    """The code of the signal that a rating is; None for what is no rating of at most five stars.

    Five stars are explicit and three to four and a half implicit praise, less is explicit blame; 0
    stands for no rating.
    """
    if rating == 0:
        return NO_SIGNAL
    if not 0 < rating <= MOST:
        return None
    if rating == MOST:
        return CODES["explicit_positive"]
    return CODES["implicit_positive" if rating >= _LEAST_POSITIVE else "explicit_negative"]


def rated(table: Table, columns: tuple[str, ...]) -> Iterator[Engagements]:
    """The engagements of a table with columns for user, thing, rating and perhaps time."""
    user, thing, rating, *times = columns
    clock = Clock(table=table, column=times[0]) if times else None
    codes: dict[float, int | None] = {}
    for batch in table.batches(*columns):
        for stars in set(batch.columns[rating]):
            codes[stars] = signal_code(stars)
        signals = [codes[stars] for stars in batch.columns[rating]]
        if None in signals:
            place = signals.index(None)
            value = batch.columns[rating][place]
            raise table.bad(batch.first + place, rating, value, "1 to 5 stars, or 0 for no rating")
        yield engagements_of(table, batch, user=user, thing=thing, signals=signals, clock=clock)


def _products(table: Table) -> Iterator[Texts]:
    for batch in table.batches("parent_asin", "title", "store", "description"):
        columns = batch.columns
        rows = zip(columns["title"], columns["store"], columns["description"], strict=True)
        texts = [
            described((title, store, *(part for part in pieces or () if isinstance(part, str))))
            for title, store, pieces in rows
        ]
        yield Texts(objects=columns["parent_asin"], texts=texts)


def _books(numbers: Table, books: Table) -> Iterator[Texts]:
    """Books under their numbers in the interactions; those without one are never engaged with."""
    import numpy as np

    known, short = _numbers(numbers)
    for batch in books.batches("book_id", "title", "description"):
        columns = batch.columns
        titles, descriptions = columns["title"], columns["description"]
        wanted = ranks(columns["book_id"], seed=0)
        places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        there = np.flatnonzero(known[places] == wanted).tolist()
        yield Texts(
            objects=[str(short[places[row]]) for row in there],
            texts=[described((titles[row], descriptions[row])) for row in there],
        )


def _numbers(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """The hashes of the books' own numbers, sorted; beside each its number in the interactions."""
    import numpy as np

    own, short = [], []
    for batch in table.batches("book_id", "book_id_csv"):
        own.append(ranks(batch.columns["book_id"], seed=0))
        short.append(np.array(batch.columns["book_id_csv"], dtype=np.int64))
    known = np.concatenate(own)
    order = np.argsort(known, kind="stable")
    return known[order], np.concatenate(short)[order]
