"""The scores of cases and of users, the published results, and the benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log2
from statistics import fmean
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from harness import FAILURES, Benchmark, Metric, Score
from harness_horizon.catalogue.merging import RELEVANT, at
from harness_horizon.next_item.scores import length_of, results_of
from harness_horizon.ranking import CUTS
from harness_horizon.text.histories import Asked, Options, load
from harness_horizon.text.searching import GENERATE, RETRIEVE, Hits, Search, suits

if TYPE_CHECKING:
    from harness import Record, Records

COSINE, WHOLE, USER, PUBLISHED_RECALL = "_cosine", "_whole", "_user", "published_recall"
WAYS = {"": "", COSINE: f", or one with a cosine of at least {RELEVANT} to it"}
ABOUT = {
    "recall": "share of the true titles that are among the first {}",
    "precision": "share of the first {} places with a true title",
    "ndcg": "NDCG of the true titles in the first {}",
}
UNITS = {"": ("", (*ABOUT, PUBLISHED_RECALL)),
         WHOLE: ("; users with all queries", ("recall", "precision", PUBLISHED_RECALL)),
         USER: ("; mean over users", ("recall", "ndcg"))}  # fmt: skip
"""What a unit's columns end with, what is said of them, and which it has."""

ABOVE = "places of the first {} near a true title, by true titles; can pass 1"
BOUND = "for the next item the exact precision is at most 1 / K: one title can be right"
COLUMNS = tuple(f"{name}_{cut}{way}" for way in WAYS for name in ABOUT for cut in CUTS)

METRICS = {
    f"{name}_{cut}{way}{unit}": Metric(
        description={**ABOUT, PUBLISHED_RECALL: ABOVE}[name].format(cut) + WAYS[way] + words,
        missing="left_out" if unit == WHOLE else "counted",
        range=(0.0, None if name == PUBLISHED_RECALL else 1.0),
        note=BOUND if name == "precision" and not way else "",
    )
    for unit, (words, names) in UNITS.items()
    for way in WAYS
    for name in names
    for cut in CUTS
    if name != PUBLISHED_RECALL or not way
} | {
    "cosine_mean": Metric(
        description="mean cosine of queries and true titles", worst=None, range=(-1.0, 1.0)
    ),
    "cosine_best": Metric(
        description="mean cosine of true titles and nearest query", worst=None, range=(-1.0, 1.0)
    ),
}

FEWER, CUT_REPLIES = "fewer queries than asked for", "cut replies"
FEWER_CAUSE = "fewer_queries"
"""The cause of a missing value over users with all queries."""


def score(records: Mapping[str, Records[Any, Any]], options: Options) -> Iterator[Score[Any]]:
    """One score a case; and one a user where users have several cases."""
    searches = records["retrieve"].by_user()
    ahead = next(searches, None)
    for user, asked in records["generate"].with_items(Asked).by_user():
        found: dict[str, Any] = {}
        if ahead is not None and ahead[0] == user:
            found = {record.id: record for record in ahead[1]}
            ahead = next(searches, None)
        cases = [found.get(one.id, one) for one in asked]
        whole = all(one.id in found and not fewer(one, options) for one in cases)
        scores = [score_of(one, one.id in found, whole, options) for one in cases]
        yield from scores
        if options.ask == "next":
            yield user_score(user, scores)


def fewer(record: Record[Any, Any], options: Options) -> bool:
    """Whether a case that was searched has fewer queries than were asked for."""
    return len(record.item.queries.texts) < options.wanted


def score_of(record: Record[Any, Any], searched: bool, whole: bool, options: Options) -> Score[Any]:
    """The score of a case at all cuts, from its record in the last stage that it reached.

    `whole` is whether each reply of the user has all queries.
    """
    slices = {"history": length_of(record.item.shown)}
    if isinstance(record.outcome, FAILURES):
        others = (PUBLISHED_RECALL,) if options.ask == "next" else ()
        columns = [one for one in METRICS if not one.endswith(USER) and not one.startswith(others)]
        cause = f"{(RETRIEVE if searched else GENERATE).name}/{record.outcome.cause}"
        missing = dict.fromkeys(columns, cause)
        return Score(id=record.id, user=record.user, missing=missing, slices=slices)
    search: Search = record.item
    queries, short = len(search.queries.texts), fewer(record, options)
    values = values_of(record.outcome.value, len(search.truths), queries, options)
    missing = {} if whole else dict.fromkeys(_whole(values), FEWER_CAUSE)
    values |= {name: values[one] for name, one in _whole(values).items()} if whole else {}
    slices["queries"] = "fewer" if short else "all"
    return Score(
        id=record.id, user=record.user, values=values, missing=missing, slices=slices,
        counts={FEWER: int(short), CUT_REPLIES: int(search.queries.cut)},
    )  # fmt: skip


def _whole(columns: Iterable[str]) -> dict[str, str]:
    """The columns over users with all queries, each with the column that it is of."""
    return {f"{one}{WHOLE}": one for one in columns if f"{one}{WHOLE}" in METRICS}


def values_of(hits: Hits, truths: int, queries: int, options: Options) -> dict[str, float]:
    """Every column of a case, by what its list holds at each cut.

    Of several places relevant to one truth, the first counts in NDCG, where a title near to several
    truths counts for the nearest alone; in recall it counts for all of them.
    """
    values = {"cosine_mean": hits.mean, "cosine_best": hits.best}
    for cut in CUTS:
        listed = at(range(hits.listed), cut, options.merge, queries)
        ideal = sum(map(_gain, range(1, min(cut, truths) + 1)))
        there = set(listed)
        for way, pairs, others in (("", hits.exact, ()), (COSINE, hits.near, hits.also)):
            marks = dict(pairs)
            relevant = [(rank, marks[one]) for rank, one in enumerate(listed, 1) if one in marks]
            first = {truth: rank for rank, truth in reversed(relevant)}
            matched = first.keys() | {truth for place, truth in others if place in there}
            values[f"recall_{cut}{way}"] = len(matched) / truths
            values[f"precision_{cut}{way}"] = len(relevant) / cut
            values[f"ndcg_{cut}{way}"] = sum(map(_gain, first.values())) / ideal
        if options.ask == "long":
            values[f"{PUBLISHED_RECALL}_{cut}"] = len(relevant) / truths
    return values


def _gain(rank: int) -> float:
    return 1 / log2(1 + rank)


def user_score(user: str, scores: Sequence[Score[Any]]) -> Score[Any]:
    """The means of a user's cases; those without queries are lost, those not searched left out."""
    names = [name for name in COLUMNS if f"{name}{USER}" in METRICS]
    causes = [one.missing[names[0]] for one in scores if names[0] in one.missing]
    found = [one.values for one in scores if names[0] in one.values]
    if not found:
        missing = dict.fromkeys((f"{name}{USER}" for name in names), causes[0])
        return Score(id=f"user {user}", user=user, missing=missing)
    failed = sum(not cause.startswith(f"{RETRIEVE.name}/") for cause in causes)
    means = {f"{name}{USER}": fmean(one[name] for one in found) for name in names}
    lost = dict.fromkeys(means, failed / (failed + len(found)))
    return Score(id=f"user {user}", user=user, values=means, lost=lost if failed else UNSET)


PUBLISHED = {"horizon_query_1m": "table5", "horizon_long_1m": "table6"}
"""The tasks whose results the paper prints, and the tables."""

COMPARABLE_IF = (
    "all 33 categories of Amazon Reviews 2023 curated with --published, 1,000,000 held-out users, "
    "titles by hyp1231/blair-roberta-base, merge: published as in the tasks `_1m`, no tokens for "
    "reasoning; the README names what the authors' scripts do otherwise"
)


def column_of(task: str, printed: str) -> str:
    """The column that a printed one stands beside: relevance is by cosine there.

    >>> column_of("horizon_long_1m", "recall_10")
    'published_recall_10'
    """
    if "long" in task and printed.startswith("recall"):
        return f"published_{printed}"
    return printed + COSINE


HORIZON_TEXT = Benchmark(
    name="horizon_text",
    version=2,
    description="What somebody buys next and over the years, in words that find it.",
    licence="Amazon Reviews 2023: no licence is stated",
    stages=(GENERATE, RETRIEVE), options=Options, load=load, suits=suits,
    score=score, metrics=METRICS, main=("recall_10", "recall_10_cosine"),
    scored_by_user=("generate", "retrieve"), tokens_as_published=True,
    words={"no_list": "the reply holds no list of queries", FEWER_CAUSE: "a reply of the user "
           "holds fewer queries than were asked for", "_query": "ten queries for the next "
           "purchase", "_long": "ten descriptions of the purchases of the years to come"},
    published=lambda: results_of(
        PUBLISHED, lambda *of: column_of(*of) + WHOLE, COMPARABLE_IF
    ),
)  # fmt: skip
