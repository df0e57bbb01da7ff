"""The scores of cases, and the benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness import FAILURES, Benchmark, Metric, Score
from harness.contracts.published import PublishedResult, PublishedTables
from harness_horizon.next_item.asking import NEXT_ITEM, suits
from harness_horizon.next_item.cases import Case, Options, load
from harness_horizon.ranking import CUTS, NAMES, metrics_of

if TYPE_CHECKING:
    from harness import Record, Records

TABLES = PublishedTables("harness_horizon")

KNOWN = "known"
UNTRAINED = "target_not_trained"
"""The cause of a missing value of a case whose target has no training interaction."""

TOO_FEW = "ranked_among_too_few"
"""The cause of a missing value at a cut that random negatives reach by themselves."""

MOST_OF_SAMPLED = 20
"""Where a target is ranked among random items, cuts above this say nothing: Recall@100 of a random
order of 101 items is 99%."""

ABOUT = {"ndcg": "NDCG", "mrr": "MRR", "recall": "share of targets"}

METRICS = {
    f"{name}_{cut}{end}": Metric(description=f"{ABOUT[name]} in the first {cut} {of}")
    for end, of in {
        "": "places",
        f"_{KNOWN}": "places, of targets with a training interaction",
    }.items()
    for cut in CUTS
    for name in NAMES
}

LENGTHS = ((5, "1-5"), (20, "6-20"), (50, "21-50"))


def score(records: Mapping[str, Records[Any, Any]], options: Options) -> Iterator[Score[Any]]:
    """One score a case; what has no training interaction is a miss, and left out of `known`."""
    for record in records["next_item"]:
        yield score_of(record, options)


def score_of(record: Record[Any, Any], options: Options) -> Score[Any]:
    """The score of a case at all cuts that say something."""
    case: Case = record.item
    slices = {
        "history": length_of(len(case.history)),
        "target": "trained" if case.known else "not trained",
    }
    if isinstance(record.outcome, FAILURES):
        missing = dict.fromkeys(METRICS, f"next_item/{record.outcome.cause}")
        return Score(id=record.id, user=record.user, missing=missing, slices=slices)
    rank = record.outcome.value.rank
    found = metrics_of([float("nan") if rank is None or not case.known else rank])
    values, missing = {}, {}
    for name, value in found.items():
        kind, _, cut = name.partition("@")
        column = f"{kind}_{cut}"
        if options.negatives and int(cut) > MOST_OF_SAMPLED:
            missing |= dict.fromkeys((column, f"{column}_{KNOWN}"), TOO_FEW)
            continue
        values[column] = float(value[0])
        if case.known:
            values[f"{column}_{KNOWN}"] = values[column]
        else:
            missing[f"{column}_{KNOWN}"] = UNTRAINED
    counts = {"without an answer": int(not record.outcome.value.listed)}
    return Score(
        id=record.id, user=record.user, values=values, missing=missing, slices=slices, counts=counts
    )


def length_of(size: int) -> str:
    """The length of a history, as a slice."""
    return next((name for most, name in LENGTHS if size <= most), "51 or more")


PUBLISHED = {"1a": "table1", "1b": "table2"}
"""The settings whose results the paper prints in full, and the tables."""

COMPARABLE_IF = (
    "all 33 categories of Amazon Reviews 2023 curated with --published, 150,000 users trained on "
    "with the preset `published`, 25,000 tested, and full ranking of all items; the "
    "README names what the authors' scripts do otherwise"
)


def results_of(
    tables: Mapping[str, str], column_of: Callable[[str, str], str], comparable_if: str
) -> tuple[PublishedResult, ...]:
    """The results of printed tables by task, as shares, with the column that each one is of."""
    return tuple(
        PublishedResult(
            task=task,
            metric=column_of(task, column),
            model=row["model"],
            value=row[column] / 100,
            source=table.source,
            comparable_if=comparable_if,
        )
        for task, name in tables.items()
        for table in (TABLES.read(name),)
        for row in table.dicts()
        for column in table.columns[1:]
    )


def published() -> tuple[PublishedResult, ...]:
    """The results of Tables 1 and 2, as shares."""
    tables = {f"horizon_next_item_{setting}": name for setting, name in PUBLISHED.items()}
    return results_of(tables, lambda _, column: column, COMPARABLE_IF)


HORIZON_ITEMS = Benchmark(
    name="horizon_items",
    version=1,
    description="The next thing that somebody buys, by full ranking of all things.",
    licence="Amazon Reviews 2023: no licence is stated",
    words={"target_not_trained": "the recommender was not trained with the item that was bought"},
    stages=(NEXT_ITEM,), options=Options, load=load, suits=suits,
    score=score, metrics=METRICS, main=("ndcg_10", "recall_10"), published=published,
    scored_by_user=("next_item",),
)  # fmt: skip
