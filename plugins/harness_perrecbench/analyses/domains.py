"""ptc by domain, against the frequency of the domain's items in other texts, as in Figure 4."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from harness.analysis.result_grid import row_name
from harness.analysis.task_setting import changed_options
from harness.analysis.user_tables import table as read_table
from harness.base.errors import UsageError
from harness.contracts.report import Axis, Figure, Points, Report, Sheet
from harness_perrecbench.analyses.grid import GRID, Row, no_task, ranked, rows_of, setting_of
from harness_perrecbench.paper import COLUMN, OURS, TAU_NOTES, Cell
from harness_perrecbench.records import Thing
from harness_perrecbench.stages import STAGE_OF

if TYPE_CHECKING:
    from harness import FinishedTask

OPTION = "domain"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `perrec-domains`."""

    counts: Annotated[
        str, msgspec.Meta(description="table with the columns count and item, or count and title")
    ]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The frequency of items, by id and by title in lower case."""

    by_item: Mapping[str, float]
    by_title: Mapping[str, float]

    def of(self, item: str, title: str | None) -> float | None:
        """The count of an item; None if the table has neither its id nor its title."""
        if item in self.by_item or title is None:
            return self.by_item.get(item)
        return self.by_title.get(_folded(title))


class Titled(msgspec.Struct, frozen=True):
    """The part of a question that is read: its user and its thing."""

    user: str
    query: Thing


class Domain(NamedTuple):
    """One model in one domain: its items, the mean of the known counts, and the averages."""

    model: str
    domain: str
    items: int
    counted: int
    frequency: float | None
    average: float | None
    low: float | None
    high: float | None
    published: float | None
    why: str


def run(tasks: Sequence[FinishedTask], options: Options) -> Report:
    """The report of `perrec-domains`: a row and a dot for each model and domain."""
    by_domain: dict[str, list[FinishedTask]] = defaultdict(list)
    for task in ranked(tasks):
        if OPTION in (changed := changed_options(task)):
            by_domain[changed[OPTION]].append(task)
    if not by_domain:
        raise no_task(
            tasks, "no task covers a single domain", expected=f"tasks with the option {OPTION}"
        )
    counts = read_counts(options.counts)
    found = {domain: rows_of(of, (OURS, COLUMN)) for domain, of in by_domain.items()}
    cells = GRID.filled([row for of in found.values() for row in of], OURS)
    domains = [_domain(row, domain, cells, counts) for domain, of in found.items() for row in of]
    if not any(one.counted for one in domains):
        raise UsageError(
            "no item of the runs has a count",
            where=options.counts,
            expected="items by id, as in the groups, or by title",
        )
    return Report(
        sheets=(sheet(domains, len(cells)),), figures=tuple(figures(domains)), notes=TAU_NOTES
    )


def read_counts(path: str) -> Counts:
    """The counts in a table; the id of an item, or else its title, may be empty."""
    from harness.contracts.task import Column

    columns = {
        "item": Column(required=False),
        "title": Column(required=False),
        "count": Column(type="number"),
    }
    rows = read_table(path, "counts", columns)
    by_item: dict[str, float] = {}
    by_title: dict[str, float] = {}
    for number, row in rows.rows():
        if row["count"] < 0:
            raise rows.bad(number, "count", row["count"], "0 or more")
        if not (row["item"] or row["title"]):
            raise rows.bad(number, "item", None, "an item by id or by title")
        title = row["title"] and _folded(row["title"])
        for known, name, key in ((by_item, "an item", row["item"]), (by_title, "a title", title)):
            if key and known.setdefault(key, row["count"]) != row["count"]:
                expected = f"the same count in all rows of {name}"
                raise rows.bad(number, "count", row["count"], expected)
    return Counts(by_item=by_item, by_title=by_title)


def sheet(domains: Sequence[Domain], cells: int) -> Sheet:
    """A sheet with a row per model and domain."""
    return Sheet(
        title="ptc by domain, unreadable groups counted 0",
        columns=(
            "model",
            "domain",
            "items",
            "with a count",
            "mean count",
            "average",
            "low",
            "high",
            COLUMN,
        ),
        rows=tuple(one[:-1] for one in domains),
        notes=(
            f"averages are over {cells} of the nine cells, mean counts over the items with a count",
            *(f"{one.model}, {one.domain}: {one.why}" for one in domains if one.why),
        ),
        digits=(0, 0, 0, 0, 1, 2, 2, 2, 2),
    )


def figures(domains: Sequence[Domain]) -> Iterator[Figure]:
    """One figure with a dot per domain, in its model's colour; none without any dot."""
    dots: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for one in domains:
        if one.frequency is not None and one.average is not None:
            dots[one.model].append((one.frequency, one.average, one.domain))
    marks = []
    for model, known in dots.items():
        x, y, names = zip(*known, strict=True)
        marks.append(Points(label=model, x=x, y=y, names=names))
    if marks:
        yield Figure(
            title="ptc by domain",
            x=Axis(label="mean count of items", log=all(min(mark.x) > 0 for mark in marks)),
            y=Axis(label="average ptc"),
            marks=tuple(marks),
        )


def _domain(row: Row, domain: str, cells: Collection[Cell], counts: Counts) -> Domain:
    items = dict.fromkeys(item for column in row.of(OURS).values() for item in column.clusters)
    titles: dict[str, str] = {}
    if counts.by_title:
        titles = {
            record.item.user: record.item.query.title
            for task in row.tasks.values()
            for stage in task.entry.stages
            if stage.name in STAGE_OF.values()
            for record in task.records(stage.name).with_items(Titled)
        }
    found = [counts.of(item, titles.get(item)) for item in items]
    known = [count for count in found if count is not None]
    average = GRID.average(row.of(OURS), cells, row=row, metric=OURS)
    return Domain(
        model=row_name(row.model, row.apart, setting_of(row.first, but=(OPTION,))),
        domain=domain,
        items=len(items),
        counted=len(known),
        frequency=fsum(known) / len(known) if known else None,
        average=average.value,
        low=average.low,
        high=average.high,
        published=GRID.line(row, COLUMN, cells).average.value,
        why=average.why,
    )


def _folded(title: str) -> str:
    return " ".join(title.split()).casefold()
