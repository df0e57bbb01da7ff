"""The scores and the benchmark, put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from acme_borrowed.data import load
from acme_borrowed.records import Found, Options
from acme_borrowed.stages import NEXT, SUPPORT, TASTES, finished
from harness import FAILURES, Benchmark, Done, Metric, Records, Score
from harness.contracts.published import PublishedResult, PublishedTables

TABLES = PublishedTables("acme_borrowed")

METRICS = {
    "kept": Metric(description="share of the cited books that the judge kept"),
    "grounded": Metric(
        description="share of the tastes with enough kept books", note="least books are enough"
    ),
    "foresaw": Metric(description="share of next books that were foreseen", missing="counted"),
    "median_kept": Metric(description="the same in the median", of="kept", statistic="median"),
    "chance": Metric(description="a coin in place of a model", baseline="foresaw"),
}


def score(records: Mapping[str, Records[Any, Any]], options: Options) -> Iterator[Score[Found]]:
    verdicts = {record.id: record.outcome for record in records["support"]}
    chosen = {record.id: record for record in records["next"]} if "next" in records else {}
    for record in records["tastes"]:
        values: dict[str, float] = {}
        missing: dict[str, str] = {}
        counts: dict[str, int] = {}
        kept: dict[str, int] = {}
        if isinstance(record.outcome, FAILURES):
            missing = dict.fromkeys(("kept", "grounded"), f"tastes/{record.outcome.cause}")
        else:
            for place, taste in enumerate(record.outcome.value):
                verdict = verdicts.get(f"{record.user}/{place}")
                if isinstance(verdict, FAILURES):
                    missing = dict.fromkeys(("kept", "grounded"), f"support/{verdict.cause}")
                kept[taste.taste] = len(verdict.value) if isinstance(verdict, Done) else 0
            cited = sum(len(taste.books) for taste in record.outcome.value)
            idle = sum(not finished(record.item, taste) for taste in record.outcome.value)
            counts = {"tastes without a finished book": idle}
            if not kept or not cited:
                missing = dict.fromkeys(("kept", "grounded"), "nothing_cited")
            if not missing:
                values["kept"] = sum(kept.values()) / cited
                enough = [many >= options.least for many in kept.values()]
                values["grounded"] = sum(enough) / len(enough)
        if record.id in chosen:
            choice = chosen[record.id]
            values["chance"] = 0.5
            if isinstance(choice.outcome, FAILURES):
                missing["foresaw"] = f"next/{choice.outcome.cause}"
            else:
                values["foresaw"] = float(choice.outcome.value == choice.item.offer.borrowed)
        else:
            missing |= dict.fromkeys(("foresaw", "chance"), "no_offer")
        yield Score(
            id=record.id,
            user=record.user,
            values=values,
            missing=missing,
            counts=counts,
            details=Found(kept),
            slices={"loans": "few" if len(record.item.loans) < 4 else "many"},
        )


def notes(records: Mapping[str, Records[Any, Any]], options: Options) -> Iterator[str]:
    yield f"{len(records['support'])} claims were judged"


def published() -> list[PublishedResult]:
    return [
        PublishedResult(
            task="acme_borrowed",
            metric="kept",
            model=row["model"],
            value=row["kept"],
            n=row["readers"],
            source="Table 1",
            comparable_if="all readers of the library",
        )
        for row in TABLES.read("table1").dicts()
    ]


BENCHMARK = Benchmark(
    name="acme_borrowed",
    version=1,
    description="What borrowed books say about tastes, and about the next book.",
    stages=(TASTES, SUPPORT, NEXT),
    options=Options,
    scored_with=("least",),
    scored_by_user=("tastes", "support", "next"),
    load=load,
    score=score,
    metrics=METRICS,
    main=("kept", "foresaw"),
    details=Found,
    notes=notes,
    published=published,
    words={"nothing_cited": "no book was cited", "no_offer": "no two books were offered"},
    paper="https://example.org/borrowed",
    licence="CC0-1.0",
)
