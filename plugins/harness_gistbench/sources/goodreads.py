"""UCSD Book Graph: stars for books, the list of their two numbers, and the books."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from harness.data.sampling import ranks
from harness_gistbench.log import Log, Texts
from harness_gistbench.sources.ratings import SIGNALS_OF_RATINGS, rated
from harness_gistbench.sources.wording import described

if TYPE_CHECKING:
    import numpy as np

    from harness.data import Dataset, Table
    from harness_gistbench.records import Options


def open_log(dataset: Dataset, _options: Options) -> Log:
    """The log of ratings, which have no times; a book has its number in the interactions."""
    interactions = dataset.table("interactions")
    numbers, books = dataset.table("book_ids"), dataset.table("books")
    return Log(
        engagements=partial(
            rated, interactions, user="user_id", thing="book_id", rating="rating", time=None
        ),
        texts=lambda: _texts(numbers, books),
        joined=True,
        signals=SIGNALS_OF_RATINGS,
    )


def _texts(numbers: Table, books: Table) -> Iterator[Texts]:
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
