"""MIND: which news people were shown, and which of it they opened."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness_gistbench.log_index import CODES, Log
from harness_gistbench.sources.cells import described
from harness_gistbench.sources.rules import SPACES, WORD, Rule, check, not_blank, value_at

if TYPE_CHECKING:
    from harness.contracts.dataset import Database, Table
    from harness_gistbench.records import Options

_TIME = (
    "[0-9]{1,2}/[0-9]{1,2}/[0-9]{4}"
    f"{SPACES}+[0-9]{{1,2}}:[0-9]{{1,2}}:[0-9]{{1,2}}{SPACES}+(?i:[AP]M)"
)
_MOMENT = (
    f"CASE WHEN regexp_full_match(time, '{_TIME}') THEN epoch_us(try_strptime("
    f"regexp_replace(time, '{SPACES}+', ' ', 'g'), '%m/%d/%Y %I:%M:%S %p')) END"
)
_ARTICLE = "(?s).+-[01]"
_SHOWN_AT_MOST = 1 << 20
"""Articles of one impression, which stand in their order behind the number of its row."""


def open_log(database: Database, tables: Mapping[str, Table], options: Options) -> Log:
    """The log of impressions and, where the option says so, of the clicks before them."""
    table = tables["behaviors"]
    time = Rule(f"{_MOMENT} IS NULL", "time", "a time such as 11/12/2019 2:14:46 PM")
    check(database, "behaviors", table, time, not_blank("user_id"))
    _check_articles(database, table)
    articles = (
        f"SELECT row * {_SHOWN_AT_MOST} + generate_subscripts(articles, 1) AS row, "
        "user_id AS user, unnest(articles) AS article, moment AS time FROM (SELECT row, user_id, "
        f"regexp_extract_all(impressions, '{WORD}') AS articles, {_MOMENT} AS moment "
        "FROM behaviors)"
    )
    shown = (
        "SELECT row, user, article[:-3] AS object, time, NULL AS text, CASE article[-1] "
        f"WHEN '1' THEN {CODES['explicit_positive']} ELSE {CODES['implicit_negative']} END "
        f"AS signal FROM ({articles})"
    )
    return Log(
        engagements=f"{shown} UNION ALL {_clicks_before(shown)}"
        if options.untimed_history
        else shown,
        texts=described("news", "news_id", "[title, abstract]"),
        joined=True,
        signals=("explicit_positive", "implicit_negative"),
    )


def _check_articles(database: Database, table: Table) -> None:
    [(row,)] = database.sql(
        f"SELECT min(row) FROM behaviors WHERE len(list_filter(regexp_extract_all(impressions, "
        f"'{WORD}'), lambda article: NOT regexp_full_match(article, '{_ARTICLE}'))) > 0"
    ).fetchall()
    if row is not None:
        articles = value_at(table, row, "impressions").split()
        wrong = next(one for one in articles if not re.fullmatch(_ARTICLE, one))
        expected = "articles such as N1-1 (opened) and N2-0 (not), with spaces between"
        raise table.bad(row, "impressions", wrong, expected)


def _clicks_before(shown: str) -> str:
    """What people opened before all impressions and not in one of these as well, latest first.

    The history of a person's earliest impression holds it: a later file repeats in its histories
    what an earlier one has as impressions.
    """
    opened = f"SELECT user, object FROM ({shown}) WHERE signal = {CODES['explicit_positive']}"
    return (
        "SELECT -place AS row, user, object, NULL AS time, NULL AS text, "
        f"{CODES['explicit_positive']} AS signal FROM (SELECT user_id AS user, "
        "unnest(opened) AS object, generate_subscripts(opened, 1) AS place FROM (SELECT user_id, "
        f"regexp_extract_all(coalesce(history, ''), '{WORD}') AS opened FROM behaviors QUALIFY "
        f"row_number() OVER (PARTITION BY user_id ORDER BY {_MOMENT}, row) = 1)) "
        f"ANTI JOIN ({opened}) USING (user, object)"
    )
