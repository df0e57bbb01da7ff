"""Tells what groups hold: the statistics of the paper's Table 4 and the histograms of Figure 5."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from harness.results.report import Axis, Bars, Cell, Figure, Report, Sheet
from harness_perrecbench.grouping.folder import Groups, Review, read
from harness_perrecbench.grouping.reading import LARGEST_SECONDS, MILLISECONDS_A_SECOND
from harness_perrecbench.grouping.settings import ALL
from harness_perrecbench.grouping.tokens import Counter, counter
from harness_perrecbench.records import MEMBERS

COLUMNS = ("", "reviews", "users", "items", "history ratings", "tokens", "first", "last")
PAPER: dict[str, tuple[Cell, ...]] = {
    "to test": (1007, 986, 200, 61_412, 111_017, "2005-07-25", "2023-04-14"),
    "held out": (2438, 2140, 466, 157_480, 289_164, "2022-07-16", "2023-05-16"),
}
"""Table 4, whose tokenizer the paper does not name."""

RELATIVE_STEP = 0.5
HISTORY_ENDS = (20, 40, 60, 80, 100, 150, 200, 300, 500)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Which groups are described, and how tokens are counted."""

    data: Annotated[Path, Meta(description="the folder of groups, as --data takes it")]
    domain: Annotated[str, Meta(description="the domain whose folder is read")] = ALL
    tokenizer: Annotated[
        str | None,
        Meta(
            description="a tokenizer.json or a model on the hub, for the package tokenizers or "
            "transformers; without it words between white space are counted"
        ),
    ] = None


def run(options: Options) -> Report:
    """Statistics and histograms of the groups in a folder."""
    tokens = counter(options.tokenizer)
    groups = read(options.data, options.domain)
    splits = {"to test": _once(groups.test), "held out": _once(groups.held_out)}
    return Report(
        sheets=(statistics(groups, tokens),),
        figures=histograms(splits),
        notes=notes(groups),
    )


def statistics(groups: Groups, tokens: Counter) -> Sheet:
    """Table 4 for each level and for all, beside the paper's."""
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
        title="What the groups hold",
        columns=COLUMNS,
        rows=tuple(rows),
        notes=(
            f"tokens: {tokens.name}, in title and author of each item of the history before a "
            "review and of its own item; the paper names no tokenizer and does not say what it "
            "counts",
            "history ratings: those before each review; all levels: each review once",
        ),
    )


def notes(groups: Groups) -> tuple[str, ...]:
    """What a reader must know before the numbers."""
    absent = sum(one.rating is None for one in (*groups.test, *groups.held_out))
    if not absent:
        return ()
    return (f"{absent} reviews are not in the history of their user: no rating or time is told",)


def histograms(splits: dict[str, list[Review]]) -> tuple[Figure, ...]:
    """The four histograms of Figure 5, each review of any level once."""

    def figure(title: str, label: str, bins: Callable[[list[Review]], list[str]], names: list[str]
    ) -> Figure:  # fmt: skip
        return _bars(title, label, {split: bins(own) for split, own in splits.items()}, names)

    every = [one for own in splits.values() for one in own]
    years = sorted(one.isoformat()[:4] for review in every if (one := _day(review)))
    span = range(int(years[0]), int(years[-1]) + 1) if years else range(0)
    ratings = sorted({"1", "2", "3", "4", "5", *_rating_bins(every)}, key=float)
    relative = sorted({review.user.relative_rating // RELATIVE_STEP for review in every})
    steps = range(int(relative[0]), int(relative[-1]) + 1)
    lengths = [_length_bin(end) for end in range(len(HISTORY_ENDS) + 1)]
    if not any(review.user.history_len <= HISTORY_ENDS[0] for review in every):
        lengths = lengths[1:]
    return (
        figure("Actual ratings", "rating", _rating_bins, ratings),
        figure(
            "Relative ratings",
            "relative rating, from",
            _relative_bins,
            [_step(one) for one in steps],
        ),
        figure("Lengths of histories", "ratings before the review", _length_bins, lengths),
        figure("Dates of purchase", "year", _year_bins, [str(year) for year in span]),
    )


def _once(reviews: Iterable[Review]) -> list[Review]:
    """Each review of whatever level once."""
    return list({one.pair: one for one in reviews}.values())


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


def _bars(title: str, label: str, found: dict[str, list[str]], names: list[str]) -> Figure:
    """A histogram of each split, in shares of its own."""
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


def _rating_bins(reviews: Iterable[Review]) -> list[str]:
    return [f"{one.rating.rating:g}" for one in reviews if one.rating is not None]


def _relative_bins(reviews: Iterable[Review]) -> list[str]:
    return [_step(one.user.relative_rating // RELATIVE_STEP) for one in reviews]


def _length_bins(reviews: Iterable[Review]) -> list[str]:
    return [_length_bin(sum(one.user.history_len > end for end in HISTORY_ENDS)) for one in reviews]


def _year_bins(reviews: Iterable[Review]) -> list[str]:
    return [str(day.year) for one in reviews if (day := _day(one))]


def _step(place: float) -> str:
    return f"{place * RELATIVE_STEP:g}"


def _length_bin(place: int) -> str:
    """The lengths above so many of the ends, in words."""
    if place == len(HISTORY_ENDS):
        return f"over {HISTORY_ENDS[-1]}"
    first = HISTORY_ENDS[place - 1] + 1 if place else 0
    return f"{first}-{HISTORY_ENDS[place]}"


def _day(review: Review) -> date | None:
    """The day of the purchase, where it is told; larger times count milliseconds."""
    time = review.rating.timestamp if review.rating else None
    if time is None:
        return None
    seconds = time / MILLISECONDS_A_SECOND if abs(time) > LARGEST_SECONDS else time
    return datetime.fromtimestamp(seconds, tz=UTC).date()
