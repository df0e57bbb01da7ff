"""The scores of cases and of users, the published results, and the benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import log2
from statistics import fmean
from typing import TYPE_CHECKING, Any

from harness import FAILURES, Benchmark, Metric, Score
from harness.contracts.published import PublishedResult, PublishedTables
from harness_horizon.catalogue.merging import at
from harness_horizon.ranking import CUTS
from harness_horizon.text.histories import Asked, Options, load
from harness_horizon.text.searching import GENERATE, RELEVANT, RETRIEVE, Hits, Search, suits

if TYPE_CHECKING:
    from harness import Record, Records

TABLES = PublishedTables("harness_horizon")

COSINE = "_cosine"
WHOLE = "_whole"
USER = "_user"

ABOUT = {
    "recall": "share of the true titles that are among the first {}",
    "precision": "share of the first {} places with a true title",
    "ndcg": "NDCG of the true titles in the first {}",
}
WAYS = {"": "", COSINE: f", or one with a cosine of at least {RELEVANT} to it"}
UNITS = {"": "", WHOLE: "; cases with all queries", USER: "; mean over users"}
PUBLISHED_RECALL = "published_recall"
BOUNDED = "next item: at most 1 / K, since one title can be right"

COLUMNS = tuple(f"{name}_{cut}{way}" for way in WAYS for name in ABOUT for cut in CUTS)


def _metric(text: str, unit: str, note: str = "") -> Metric:
    counted = "left_out" if unit == WHOLE else "counted"
    return Metric(description=text + UNITS[unit], missing=counted, note=note)  # type: ignore[arg-type]


METRICS = {
    **{
        f"{name}_{cut}{way}{unit}": _metric(
            f"{ABOUT[name].format(cut)}{WAYS[way]}",
            unit,
            BOUNDED if name == "precision" and not way else "",
        )
        for unit in UNITS
        for way in WAYS
        for name in ABOUT
        for cut in CUTS
    },
    **{
        f"{PUBLISHED_RECALL}_{cut}{unit}": _metric(
            f"places of the first {cut} near a true title, by true titles; can pass 1", unit
        )
        for unit in ("", WHOLE)
        for cut in CUTS
    },
    "cosine_mean": Metric(description="mean cosine of queries and true titles", worst=None),
    "cosine_best": Metric(
        description="mean cosine of each true title and its nearest query", worst=None
    ),
}

LENGTHS = ((5, "1-5"), (20, "6-20"), (50, "21-50"))


def score(records: Mapping[str, Records[Any, Any]], options: Options) -> Iterator[Score[Any]]:
    """One score a case; and one a user where users have several cases."""
    for user, cases in joined(records):
        scores = [score_of(asked, searched, options) for asked, searched in cases]
        yield from scores
        if options.ask == "next":
            yield user_score(user, scores)


def joined(
    records: Mapping[str, Records[Any, Any]],
) -> Iterator[tuple[str, list[tuple[Record[Any, Any], Record[Any, Any] | None]]]]:
    """Each user's cases with their searches; None where nothing was searched."""
    searches = records["retrieve"].by_user()
    ahead = next(searches, None)
    for user, asked in records["generate"].with_items(Asked).by_user():
        found: dict[str, Record[Any, Any]] = {}
        if ahead is not None and ahead[0] == user:
            found = {record.id: record for record in ahead[1]}
            ahead = next(searches, None)
        yield user, [(record, found.get(record.id)) for record in asked]


def score_of(
    asked: Record[Any, Any], searched: Record[Any, Any] | None, options: Options
) -> Score[Any]:
    """The score of a case at all cuts."""
    columns = [*COLUMNS, "cosine_mean", "cosine_best"]
    if options.ask == "long":
        columns += [f"{PUBLISHED_RECALL}_{cut}" for cut in CUTS]
    slices = {"history": length_of(asked.item.shown)}
    last = searched or asked
    if isinstance(last.outcome, FAILURES):
        missing = dict.fromkeys(columns, f"{last.stage}/{last.outcome.cause}")
        return Score(id=asked.id, user=asked.user, missing=missing, slices=slices)
    search: Search = last.item
    values = values_of(last.outcome.value, len(search.truths), len(search.queries), options)
    whole = len(search.queries) == options.wanted
    if whole:
        values |= {f"{name}{WHOLE}": values[name] for name in values if f"{name}{WHOLE}" in METRICS}
    slices["queries"] = "all" if whole else "fewer"
    counts = {"fewer queries than asked for": int(not whole), "cut replies": int(search.cut)}
    return Score(id=asked.id, user=asked.user, values=values, slices=slices, counts=counts)


def values_of(hits: Hits, truths: int, queries: int, options: Options) -> dict[str, float]:
    """Every column of a case, by what its list holds at each cut.

    Of several places relevant to one truth, the first counts in recall and NDCG.
    """
    values = {"cosine_mean": hits.mean, "cosine_best": hits.best}
    marked = {"": dict(hits.exact), COSINE: dict(hits.near)}
    for cut in CUTS:
        listed = at(range(hits.listed), cut, options.merge, queries)
        ideal = sum(map(_gain, range(1, min(cut, truths) + 1)))
        for way, marks in marked.items():
            relevant = [(rank, marks[one]) for rank, one in enumerate(listed, 1) if one in marks]
            first: dict[int, int] = {}
            for rank, truth in relevant:
                first.setdefault(truth, rank)
            values[f"recall_{cut}{way}"] = len(first) / truths
            values[f"precision_{cut}{way}"] = len(relevant) / cut
            values[f"ndcg_{cut}{way}"] = sum(map(_gain, first.values())) / ideal
        if options.ask == "long":
            values[f"{PUBLISHED_RECALL}_{cut}"] = len(relevant) / truths
    return values


def _gain(rank: int) -> float:
    return 1 / log2(1 + rank)


def user_score(user: str, scores: Iterable[Score[Any]]) -> Score[Any]:
    """The means of a user's cases; one that the candidate failed counts 0."""
    scores = [one for one in scores if not _of_others(one)]
    if not scores:
        missing = dict.fromkeys((f"{name}{USER}" for name in COLUMNS), "retrieve/every_case")
        return Score(id=f"user {user}", user=user, missing=missing)
    means = {
        f"{name}{USER}": fmean(one.values.get(name, 0.0) for one in scores) for name in COLUMNS
    }
    return Score(id=f"user {user}", user=user, values=means)


def _of_others(score: Score[Any]) -> bool:
    return next(iter(score.missing.values()), "").startswith("retrieve/")


def length_of(shown: int) -> str:
    """The length of a history, as a slice."""
    return next((name for most, name in LENGTHS if shown <= most), "51 or more")


PUBLISHED = {"horizon_query": "table5", "horizon_long": "table6"}
"""The tasks whose results the paper prints, and the tables."""

COMPARABLE_IF = (
    "all 33 categories of Amazon Reviews 2023, 1,000,000 held-out users, titles by "
    "hyp1231/blair-roberta-base, merge: published"
)


def column_of(task: str, printed: str) -> str:
    """The column that a printed one stands beside: relevance is by cosine there.

    >>> column_of("horizon_long", "recall_10")
    'published_recall_10'
    """
    if task == "horizon_long" and printed.startswith("recall"):
        return f"published_{printed}"
    return printed + COSINE


def published() -> tuple[PublishedResult, ...]:
    """The results of Tables 5 and 6, as shares."""
    return tuple(
        PublishedResult(
            task=task,
            metric=column_of(task, column),
            model=row["model"],
            value=row[column] / 100,
            source=table.source,
            comparable_if=COMPARABLE_IF,
        )
        for task, name in PUBLISHED.items()
        for table in (TABLES.read(name),)
        for row in table.dicts()
        for column in table.columns[1:]
    )


HORIZON_TEXT = Benchmark(
    name="horizon_text",
    version=1,
    description="What somebody buys next and over the years, in words that find it.",
    licence="Amazon Reviews 2023: no licence is stated",
    stages=(GENERATE, RETRIEVE),
    options=Options,
    load=load,
    score=score,
    metrics=METRICS,
    main=("recall_10", "recall_10_cosine"),
    suits=suits,
    published=published,
)
