"""Describes groups: the statistics of the paper's Table 4 and the histograms of Figure 5."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from harness.base.errors import DataError
from harness.contracts.report import Axis, Bars, Cell, Figure, Report, Sheet
from harness.data.table_cell import TableCell
from harness.data.token_counts import TokenCounter, token_counter
from harness_perrecbench.data.layout import (
    ALWAYS,
    GROUPS,
    PUBLISHED,
    check_not_recorded,
    domains,
    open_levels,
)
from harness_perrecbench.grouping.reading import ALL, LARGEST_SECONDS, MILLISECONDS_A_SECOND
from harness_perrecbench.records import MEMBERS, Level

if TYPE_CHECKING:
    from harness import Dataset
    from harness.contracts.dataset import Table

COLUMNS = ("", "reviews", "users", "items", "history ratings", "tokens", "first", "last")
PAPER: dict[str, tuple[Cell, ...]] = {
    "to test": (1007, 986, 200, 61_412, 111_017, "2005-07-25", "2023-04-14"),
    "held out": (2438, 2140, 466, 157_480, 289_164, "2022-07-16", "2023-05-16"),
}
"""Table 4; the paper does not name its tokenizer."""

RELATIVE_STEP = 0.5
HISTORY_ENDS = (20, 40, 60, 80, 100, 150, 200, 300, 500)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `harness data perrec-describe`."""

    data: Annotated[Path, Meta(description="the folder of groups, as in --data")]
    domain: Annotated[str, Meta(description="the domain to describe")] = ALL
    tokenizer: Annotated[
        str | None,
        Meta(
            description="a tokenizer.json or a model on the hub, for the package tokenizers or "
            "transformers; without it, words between white space are counted"
        ),
    ] = None


class Rating(msgspec.Struct, frozen=True):
    parent_asin: str
    rating: float
    timestamp: int | float | None = None


class User(msgspec.Struct, frozen=True):
    user_id: str
    history_len: int
    relative_rating: float
    avg_rating: float


@dataclass(frozen=True, kw_only=True)
class Review:
    """One user of one group, with the user's rating of the item, None if the history lacks it."""

    level: Level
    item: str
    user: User
    rating: Rating | None


@dataclass(frozen=True, kw_only=True)
class Groups:
    """The reviews in the first group of each item, for test items and held-out items."""

    histories: dict[str, list[Rating]]
    items: dict[str, dict[str, Any]]
    test: list[Review]
    held_out: list[Review]

    def text(self, item: str) -> str:
        """Title and author of an item, as in prompts."""
        about = self.items.get(item, {})
        author = about.get("author")
        name = author.get("name") if isinstance(author, dict) else author
        return "\n".join(str(part) for part in (about.get("title"), name) if part)


def read_groups(data: Path, domain: str) -> Groups:
    """The groups in a folder of data, or of one domain in it."""
    from harness.registry import load_plugins

    place = _place(data, domain)
    datasets = open_levels(place, load_plugins())
    check_not_recorded(place, datasets, "the description")
    if not any(split in one.tables for one in datasets.values() for split in GROUPS.values()):
        raise DataError(
            "the folder has no groups",
            where=str(place),
            expected=f"files such as {PUBLISHED['test'].format(level='easy')}",
            hint=f"choose a domain: --domain {found[0]}" if (found := domains(place)) else None,
        )
    first = datasets["easy"]
    lacking = [file for table, file in ALWAYS.items() if table not in first.tables]
    if lacking:
        raise DataError(
            "the folder has groups, but lacks their histories or items",
            where=str(place),
            found=f"no {', no '.join(lacking)}",
            expected=" and ".join(ALWAYS.values()),
        )
    histories = _histories(first.table("histories"))
    test, held_out = (
        [
            review
            for level, dataset in datasets.items()
            if table in dataset.tables
            for review in _reviews(dataset, table, level, histories)
        ]
        for table in GROUPS.values()
    )
    items = {values["item"]: values["about"] for _, values in first.table("items").rows()}
    return Groups(histories=histories, items=items, test=test, held_out=held_out)


def _place(data: Path, domain: str) -> Path:
    """The folder of a domain: the given one if it is the domain's, else a folder in it."""
    if domain == ALL or data.name in (domain, f"{domain}-processed"):
        return data
    if not (data / domain).is_dir():
        raise DataError(
            f"the folder has no groups of the domain {domain!r}",
            where=str(data),
            found=f"folders of the domains {', '.join(domains(data)) or 'none'}",
            expected=f"{domain}/{domain}-processed",
        )
    return data / domain


def _histories(table: Table) -> dict[str, list[Rating]]:
    return {
        values["user"]: TableCell(table=table, row=row, column="history").read(
            values["history"], Rating
        )
        for row, values in table.rows()
    }


def _reviews(
    dataset: Dataset, name: str, level: Level, histories: dict[str, list[Rating]]
) -> Iterator[Review]:
    table = dataset.table(name)
    for row, values in table.rows():
        spot = TableCell(table=table, row=row, column="groups")
        for user in spot.read(values["groups"][0], User) if values["groups"] else ():
            if user.user_id not in histories:
                raise DataError(
                    "a user of a group has no history",
                    where=f"{dataset.path(name)}, item {values['item']}",
                    found=user.user_id,
                    expected=f"a user of {ALWAYS['histories']}",
                )
            rating = _rated(histories[user.user_id], values["item"], user.history_len)
            yield Review(level=level, item=values["item"], user=user, rating=rating)


def _rated(history: list[Rating], item: str, before: int) -> Rating | None:
    """The rating of the item: the first after the history of the group, else the first of all."""
    later = (one for one in history[before:] if one.parent_asin == item)
    return next(later, next((one for one in history if one.parent_asin == item), None))


def run(options: Options) -> Report:
    """Statistics and histograms of the groups in a folder."""
    tokens = token_counter(options.tokenizer)
    groups = read_groups(options.data, options.domain)
    splits = {"to test": _once(groups.test), "held out": _once(groups.held_out)}
    absent = sum(one.rating is None for one in (*groups.test, *groups.held_out))
    note = f"{absent} reviews without rating and time: their users' histories lack them"
    return Report(
        sheets=(statistics(groups, tokens),),
        figures=histograms(splits),
        notes=(note,) if absent else (),
    )


def statistics(groups: Groups, tokens: TokenCounter) -> Sheet:
    """A sheet as Table 4, for each level and for all levels, with the paper's figures."""
    lengths = tokens.lengths(
        groups.text(item)
        for item in {one.parent_asin for every in groups.histories.values() for one in every}
        | {one.item for one in (*groups.test, *groups.held_out)}
    )
    rows: list[tuple[Cell, ...]] = []
    for split, reviews in (("to test", groups.test), ("held out", groups.held_out)):
        for level in MEMBERS:
            own = [one for one in reviews if one.level == level]
            rows.append((f"{level}, {split}", *_counts(own, groups, lengths)))
        rows.append((f"all levels, {split}", *_counts(_once(reviews), groups, lengths)))
        rows.append((f"the paper, {split}", *PAPER[split]))
    return Sheet(
        title="Groups",
        columns=COLUMNS,
        rows=tuple(rows),
        notes=(
            f"tokens: {tokens.name}, in title and author of the review's item and of each item in "
            "the history before it; the paper names neither its tokenizer nor the texts",
            "history ratings: the ratings before each review; all levels: each review once",
        ),
    )


def histograms(splits: dict[str, list[Review]]) -> tuple[Figure, ...]:
    """The four histograms of Figure 5; each review counts once for all levels."""
    every = [one for own in splits.values() for one in own]
    years = sorted(int(year) for year in map(_year, every) if year)
    span = range(years[0], years[-1] + 1) if years else range(0)
    ratings = {"1", "2", "3", "4", "5"}.union(filter(None, map(_rating, every)))
    steps = sorted(one.user.relative_rating // RELATIVE_STEP for one in every)
    lengths = [_length_bin(end) for end in range(len(HISTORY_ENDS) + 1)]
    if not any(one.user.history_len <= HISTORY_ENDS[0] for one in every):
        lengths = lengths[1:]
    found = (
        ("Actual ratings", "rating", _rating, sorted(ratings, key=float)),
        (
            "Relative ratings",
            "relative rating, from",
            _relative,
            [_step(one) for one in range(int(steps[0]), int(steps[-1]) + 1)],
        ),
        ("Lengths of histories", "ratings before the review", _length, lengths),
        ("Dates of purchase", "year", _year, [str(year) for year in span]),
    )
    return tuple(_bars(splits, *histogram) for histogram in found)


def _once(reviews: Iterable[Review]) -> list[Review]:
    """The reviews of all levels, each once."""
    return list({(one.user.user_id, one.item): one for one in reviews}.values())


def _counts(reviews: Sequence[Review], groups: Groups, lengths: dict[str, int]) -> tuple[Cell, ...]:
    shown = [(one, groups.histories[one.user.user_id][: one.user.history_len]) for one in reviews]
    days = [day for one in reviews if (day := _day(one))]
    tokens = sum(
        lengths[groups.text(item)]
        for one, history in shown
        for item in (one.item, *(rating.parent_asin for rating in history))
    )
    return (
        len(reviews),
        len({one.user.user_id for one in reviews}),
        len({one.item for one in reviews}),
        sum(len(history) for _, history in shown),
        tokens,
        min(days).isoformat() if days else None,
        max(days).isoformat() if days else None,
    )


def _bars(
    splits: dict[str, list[Review]],
    title: str,
    label: str,
    bin_of: Callable[[Review], str | None],
    names: list[str],
) -> Figure:
    """A histogram with the shares of each split; reviews without a bin are left out."""
    found = {split: [name for one in own if (name := bin_of(one))] for split, own in splits.items()}
    marks = tuple(
        Bars(
            label=split,
            names=tuple(names),
            values=tuple(100 * bins.count(name) / len(bins) for name in names),
        )
        for split, bins in found.items()
        if bins
    )
    return Figure(
        title=title, x=Axis(label=label), y=Axis(label="share of reviews, %", low=0.0), marks=marks
    )


def _rating(review: Review) -> str | None:
    return f"{review.rating.rating:g}" if review.rating else None


def _relative(review: Review) -> str:
    return _step(review.user.relative_rating // RELATIVE_STEP)


def _length(review: Review) -> str:
    return _length_bin(sum(review.user.history_len > end for end in HISTORY_ENDS))


def _step(place: float) -> str:
    return f"{place * RELATIVE_STEP:g}"


def _length_bin(place: int) -> str:
    """The label of the bin at a place in HISTORY_ENDS."""
    if place == len(HISTORY_ENDS):
        return f"over {HISTORY_ENDS[-1]}"
    first = HISTORY_ENDS[place - 1] + 1 if place else 0
    return f"{first}-{HISTORY_ENDS[place]}"


def _day(review: Review) -> date | None:
    """The day of the purchase, if it is known; larger times are in milliseconds."""
    time = review.rating.timestamp if review.rating else None
    if time is None:
        return None
    seconds = time / MILLISECONDS_A_SECOND if abs(time) > LARGEST_SECONDS else time
    return datetime.fromtimestamp(seconds, tz=UTC).date()


def _year(review: Review) -> str | None:
    day = _day(review)
    return str(day.year) if day else None
