"""Describes groups: the statistics of the paper's Table 4 and the histograms of Figure 5."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from harness.base.errors import DataError
from harness.contracts.report import Axis, Bars, Cell, Figure, Report, Sheet
from harness.data.token_counts import TokenCounter, token_counter
from harness_perrecbench.data import layout
from harness_perrecbench.data.table_cell import TableCell
from harness_perrecbench.grouping.reading import ALL, LARGEST_SECONDS, MILLISECONDS_A_SECOND
from harness_perrecbench.records import MEMBERS, Level

if TYPE_CHECKING:
    from harness import Dataset

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


@dataclass(frozen=True, kw_only=True)
class Review:
    """One user of one group, with the earlier ratings, and that of the item if it is known."""

    level: Level
    item: str
    user: layout.GroupUser
    before: list[Rating]
    rating: Rating | None

    @property
    def day(self) -> date | None:
        """The day of the purchase, if it is known; larger times are in milliseconds."""
        time = self.rating.timestamp if self.rating else None
        if time is None:
            return None
        seconds = time / MILLISECONDS_A_SECOND if abs(time) > LARGEST_SECONDS else time
        return datetime.fromtimestamp(seconds, tz=UTC).date()


Splits: TypeAlias = dict[str, list[Review]]
"""The reviews in the first group of each item, for test items and held-out items."""


def read_groups(data: Path, domain: str) -> tuple[Splits, dict[str, str]]:
    """The groups in a folder of data, or of one domain in it, and the text of each item."""
    from harness.registry import load_plugins

    place = data
    if domain != ALL and data.name not in (domain, f"{domain}-processed"):
        place = data / domain
        if not place.is_dir():
            raise DataError(
                f"the folder has no groups of the domain {domain!r}",
                where=str(data),
                found=f"folders of the domains {', '.join(layout.domains(data)) or 'none'}",
                expected=f"{domain}/{domain}-processed",
            )
    datasets = layout.open_levels(place, load_plugins())
    layout.check_not_recorded(place, datasets, "the description")
    if not any(
        split in one.tables for one in datasets.values() for split in layout.GROUPS.values()
    ):
        raise DataError(
            "the folder has no groups",
            where=str(place),
            expected=f"files such as {layout.PUBLISHED['test'].format(level='easy')}",
            hint=f"choose a domain: --domain {found[0]}"
            if (found := layout.domains(place))
            else None,
        )
    first = datasets["easy"]
    lacking = [file for table, file in layout.ALWAYS.items() if table not in first.tables]
    if lacking:
        raise DataError(
            "the folder has groups, but lacks their histories or items",
            where=str(place),
            found=f"no {', no '.join(lacking)}",
            expected=" and ".join(layout.ALWAYS.values()),
        )
    table = first.table("histories")
    histories = {
        values["user"]: TableCell(table=table, row=row, column="history").read(
            values["history"], Rating
        )
        for row, values in table.rows()
    }
    splits = {
        split: [
            review
            for level, dataset in datasets.items()
            if table in dataset.tables
            for review in _reviews(dataset, table, level, histories)
        ]
        for split, table in zip(PAPER, layout.GROUPS.values(), strict=True)
    }
    items = {values["item"]: _text(values["about"]) for _, values in first.table("items").rows()}
    return splits, items


def _text(about: dict[str, Any]) -> str:
    """Title and author of an item, as in prompts."""
    author = about.get("author")
    name = author.get("name") if isinstance(author, dict) else author
    return "\n".join(str(part) for part in (about.get("title"), name) if part)


def _reviews(
    dataset: Dataset, name: str, level: Level, histories: dict[str, list[Rating]]
) -> Iterator[Review]:
    table = dataset.table(name)
    for row, values in table.rows():
        spot, item = TableCell(table=table, row=row, column="groups"), values["item"]
        for user in spot.read(values["groups"][0], layout.GroupUser) if values["groups"] else ():
            if user.user_id not in histories:
                raise DataError(
                    "a user of a group has no history",
                    where=f"{dataset.path(name)}, item {item}",
                    found=user.user_id,
                    expected=f"a user of {layout.ALWAYS['histories']}",
                )
            history, before = histories[user.user_id], user.history_len
            # The first rating after the history of the group, else the first of all.
            later = (one for one in (*history[before:], *history) if one.parent_asin == item)
            yield Review(
                level=level, item=item, user=user, before=history[:before], rating=next(later, None)
            )


def run(options: Options) -> Report:
    """Statistics and histograms of the groups in a folder."""
    tokens = token_counter(options.tokenizer)
    splits, texts = read_groups(options.data, options.domain)
    absent = sum(one.rating is None for reviews in splits.values() for one in reviews)
    note = f"{absent} reviews without rating and time: their users' histories lack them"
    return Report(
        sheets=(statistics(splits, texts, tokens),),
        figures=tuple(histograms({split: _once(reviews) for split, reviews in splits.items()})),
        notes=(note,) if absent else (),
    )


def statistics(splits: Splits, texts: dict[str, str], tokens: TokenCounter) -> Sheet:
    """A sheet as Table 4, for each level and for all levels, with the paper's figures."""
    every = [one for reviews in splits.values() for one in reviews]
    shown = {item for one in every for item in _shown(one)}
    found = tokens.lengths(texts.get(item, "") for item in shown)
    lengths = {item: found[texts.get(item, "")] for item in shown}
    rows: list[tuple[Cell, ...]] = []
    for split, reviews in splits.items():
        for level in MEMBERS:
            own = [one for one in reviews if one.level == level]
            rows.append((f"{level}, {split}", *_counts(own, lengths)))
        rows.append((f"all levels, {split}", *_counts(_once(reviews), lengths)))
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


def histograms(splits: Splits) -> Iterator[Figure]:
    """The four histograms of Figure 5."""
    every = [one for reviews in splits.values() for one in reviews]
    ratings = {1.0, 2.0, 3.0, 4.0, 5.0}.union(one.rating.rating for one in every if one.rating)
    yield _bars(
        splits,
        "Actual ratings",
        "rating",
        lambda one: one.rating.rating if one.rating else None,
        {rating: f"{rating:g}" for rating in sorted(ratings)},
    )
    steps = sorted(int(one.user.relative_rating // RELATIVE_STEP) for one in every)
    yield _bars(
        splits,
        "Relative ratings",
        "relative rating, from",
        lambda one: one.user.relative_rating // RELATIVE_STEP,
        {step: f"{step * RELATIVE_STEP:g}" for step in range(steps[0], steps[-1] + 1)},
    )
    firsts = (0, *(end + 1 for end in HISTORY_ENDS[:-1]))
    lengths = [f"{first}-{end}" for first, end in zip(firsts, HISTORY_ENDS, strict=True)]
    shortest = min(one.user.history_len for one in every)
    yield _bars(
        splits,
        "Lengths of histories",
        "ratings before the review",
        lambda one: sum(one.user.history_len > end for end in HISTORY_ENDS),
        dict(list(enumerate([*lengths, f"over {HISTORY_ENDS[-1]}"]))[shortest > HISTORY_ENDS[0] :]),
    )
    years = sorted(one.day.year for one in every if one.day)
    yield _bars(
        splits,
        "Dates of purchase",
        "year",
        lambda one: one.day.year if one.day else None,
        {year: str(year) for year in range(years[0], years[-1] + 1)} if years else {},
    )


def _bars(
    splits: Splits,
    title: str,
    label: str,
    bin_of: Callable[[Review], float | None],
    names: Mapping[float, str],
) -> Figure:
    """A histogram with the shares of each split; reviews without a bin are left out."""
    found = {
        split: [place for one in own if (place := bin_of(one)) is not None]
        for split, own in splits.items()
    }
    marks = tuple(
        Bars(
            label=split,
            names=tuple(names.values()),
            values=tuple(100 * bins.count(name) / len(bins) for name in names),
        )
        for split, bins in found.items()
        if bins
    )
    return Figure(
        title=title, x=Axis(label=label), y=Axis(label="share of reviews, %", low=0.0), marks=marks
    )


def _once(reviews: Iterable[Review]) -> list[Review]:
    """The reviews of all levels, each once."""
    return list({(one.user.user_id, one.item): one for one in reviews}.values())


def _shown(review: Review) -> list[str]:
    """The items whose texts a question about a review shows."""
    return [review.item, *(one.parent_asin for one in review.before)]


def _counts(reviews: Sequence[Review], lengths: Mapping[str, int]) -> tuple[Cell, ...]:
    days = [one.day for one in reviews if one.day]
    return (
        len(reviews),
        len({one.user.user_id for one in reviews}),
        len({one.item for one in reviews}),
        sum(len(one.before) for one in reviews),
        sum(lengths[item] for one in reviews for item in _shown(one)),
        min(days).isoformat() if days else None,
        max(days).isoformat() if days else None,
    )
