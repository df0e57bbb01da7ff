"""Stars for things: Amazon Reviews 2023, the UCSD Book Graph and the Yelp Open Dataset.

Texts are the descriptions of the things, never the reviews.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness_gistbench.log_index import CODES, Log
from harness_gistbench.sources.cells import described
from harness_gistbench.sources.rules import Rule, check, not_blank
from harness_gistbench.sources.times import with_times

if TYPE_CHECKING:
    from harness.contracts.dataset import Database, Table
    from harness_gistbench.records import Options

_MOST = 5
_LEAST_POSITIVE = 3
_PIECES = (
    "list_transform(list_filter(description::JSON[], lambda one: json_type(one) = 'VARCHAR'), "
    "lambda one: one ->> '$')"
)
_BOOKS = """(
    SELECT books.row, book_id_csv::VARCHAR AS book, title, description
    FROM books JOIN (
        SELECT book_id, arg_min(book_id_csv, row) AS book_id_csv FROM book_ids GROUP BY book_id
    ) USING (book_id)
)"""
"""Books under their numbers in the interactions; those without one are never engaged with."""


def open_amazon(database: Database, tables: Mapping[str, Table], _: Options) -> Log:
    """One category of Amazon Reviews 2023: ratings of products."""
    ratings = _rated(database, tables, "reviews", ("user_id", "parent_asin", "rating", "timestamp"))
    parts = f"[title, store] || coalesce({_PIECES}, [])"
    return _log(ratings, described("products", "parent_asin", parts))


def open_goodreads(database: Database, tables: Mapping[str, Table], _: Options) -> Log:
    """The Book Graph: ratings without times; a book has its number in the interactions."""
    ratings = _rated(database, tables, "interactions", ("user_id", "book_id", "rating"))
    return _log(ratings, described(_BOOKS, "book", "[title, description]"))


def open_yelp(database: Database, tables: Mapping[str, Table], _: Options) -> Log:
    """Yelp: stars for businesses."""
    ratings = _rated(database, tables, "reviews", ("user_id", "business_id", "stars", "date"))
    return _log(ratings, described("businesses", "business_id", "[name, categories, city, state]"))


def _log(ratings: str, texts: str) -> Log:
    return Log(
        engagements=ratings,
        texts=texts,
        joined=True,
        signals=("explicit_positive", "implicit_positive", "explicit_negative"),
    )


def _rated(
    database: Database, tables: Mapping[str, Table], name: str, columns: tuple[str, ...]
) -> str:
    """The engagements of a table with columns for user, thing, rating and perhaps time.

    Five stars are explicit and three to four and a half implicit praise, less is explicit blame; 0
    stands for no rating.
    """
    user, thing, rating, *times = columns
    timed = f"SELECT *, NULL::BIGINT AS moment FROM {name}"
    if times:
        timed = with_times(database, name, tables[name], times[0])
    stars = Rule(f"{rating} NOT BETWEEN 0 AND {_MOST}", rating, "1 to 5 stars, or 0 for no rating")
    check(database, name, tables[name], stars, not_blank(user), not_blank(thing))
    return (
        f"SELECT row, {user} AS user, {thing} AS object, moment AS time, NULL AS text, CASE "
        f"WHEN {rating} = {_MOST} THEN {CODES['explicit_positive']} "
        f"WHEN {rating} >= {_LEAST_POSITIVE} THEN {CODES['implicit_positive']} "
        f"WHEN {rating} > 0 THEN {CODES['explicit_negative']} END AS signal FROM ({timed})"
    )
