"""Scores as pure functions of stored records.

A unit is a group of users, or a single behaviour with `ask: rating`. A group without a known true
ranking is no unit of the metrics of agreement, and is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from harness import Done, Failure, Metric, Score, Unreadable
from harness_perrecbench.baselines import BASELINES, GUESSES, baseline_ranks, guesses
from harness_perrecbench.ranking import (
    intransitive,
    ptc,
    ptc_published,
    published_order,
    ranks_of,
    ranks_of_order,
    relative,
    tau_b,
)
from harness_perrecbench.records import Compared, Group, GroupResult, Member, Options

if TYPE_CHECKING:
    from harness import Record, Records

T = TypeVar("T")
Ratings: TypeAlias = tuple[float, ...]
NO_PROFILE = "no_profile"
AGREEMENT = ("ptc", "ptc_published", "tau_b", "exact")
ERRORS = ("mae", "squared_error")
UNREAD = "unreadable_comparisons"
READ_OF_PAIRS = (*AGREEMENT, "like_higher_average", "first_position", "inconsistent")
"""The columns that lose a part with each comparison that could not be read."""
COMPARISONS = ("first_position", "inconsistent", "undecided", UNREAD)

TAU, STARS = (-1.0, 1.0), (0.0, 4.0)
"""The ranges of a rank correlation, and of an error between ratings from 1 to 5."""


def root_of_mean(squares: Any) -> float:
    """The square root of the mean."""
    return float(squares.mean() ** 0.5)


def _error_metrics(of: str, whose: str, **changes: Any) -> dict[str, Metric]:
    """MAE and RMSE of the columns whose names end in `of`; the worst case is a 5 for a 1."""
    changes["higher_is_better"] = False
    return {
        f"mae{of}": Metric(
            description=f"mean absolute error of {whose}", worst=4.0, range=STARS, **changes
        ),
        f"rmse{of}": Metric(
            description=f"root mean squared error of {whose}",
            of=f"squared_error{of}",
            worst=16.0,
            range=STARS,
            statistic=root_of_mean,
            **changes,
        ),
    }


METRICS: dict[str, Metric] = {
    "ptc": Metric(
        description="Kendall's tau of the predicted and the true ranking; a tied pair counts 0",
        range=TAU,
        missing="counted",
        counts_as="0",
    ),
    "ptc_published": Metric(
        description="tau as in the published script",
        range=TAU,
        missing="counted",
        counts_as="0",
        note="Kendall's tau of the two lists of user numbers, position by position, as in the "
        "published script: equal to ptc for two users without a tie, a different and mostly "
        "smaller number for more users",
    ),
    "tau_b": Metric(
        description="Kendall's tau-b of the predicted and the true ranking",
        range=TAU,
        missing="counted",
        counts_as="0",
        note="divides by the pairs that are not tied, which rewards ties; ptc does not",
    ),
    "exact": Metric(description="share of groups with the exact ranking", missing="counted"),
    "like_higher_average": Metric(
        description="tau of the predicted ranking and the ranking by higher average",
        worst=None,
        range=TAU,
    ),
    **_error_metrics("", "predicted ratings"),
    "first_position": Metric(
        description="share of answers that name the first user; 0.5 means no position bias",
        worst=None,
    ),
    "inconsistent": Metric(
        description="share of comparisons whose two answers name different users",
        worst=1.0,
        higher_is_better=False,
    ),
    "undecided": Metric(
        description="share of comparisons without a preference, including unreadable ones",
        worst=1.0,
        higher_is_better=False,
    ),
    UNREAD: Metric(
        description="share of comparisons that could not be read in both orders",
        worst=None,
        higher_is_better=False,
        note="such a comparison is no preference in a group's order, and a part of the group that "
        "is missing: ptc counts the pair as 0 unless the order has it wrong, and shows no value if "
        "too much is missing",
    ),
    "labelled": Metric(
        description="share of groups with a complete true order in the data",
        worst=None,
        note="ptc and all other metrics that need the true order cover the labelled groups only; "
        "below 1, the data are partial and the results are not comparable to published numbers",
    ),
    **{
        name: Metric(description=f"ptc of a ranking by {by}", baseline="ptc", range=TAU)
        for name, by in BASELINES.items()
    },
    **{
        metric: made
        for name in GUESSES
        for metric, made in _error_metrics(
            f"_{name}", f"predictions by {BASELINES[name]}", baseline=True
        ).items()
    },
}


@dataclass(frozen=True, kw_only=True)
class PredictedRanking:
    """The candidate's ranking of a group.

    `columns` are the columns of scores that only this way of asking has. `unread` are the pairs
    whose comparison could not be read, of so many `pairs`.
    """

    ranks: tuple[int, ...]
    order: tuple[int, ...]
    predicted: Ratings | None = None
    columns: Mapping[str, float] = field(default_factory=dict)
    unread: frozenset[tuple[int, int]] = frozenset()
    pairs: int = 0


def score(
    records: Mapping[str, Records[Any, Any]], options: Options
) -> Iterator[Score[GroupResult]]:
    """One score per group or behaviour, with its domain and the number of users as slices."""
    domain = {} if options.domain == "all" else {"domain": options.domain}
    for one in _scores(records):
        users = len(one.details.averages) if one.details else 1
        size = {"users": str(users)} if users > 1 else {}
        slices = {**domain, **size} or msgspec.UNSET
        yield msgspec.structs.replace(one, slices=slices)


def _scores(records: Mapping[str, Records[Any, Any]]) -> Iterator[Score[GroupResult]]:
    for record in records.get("compare", ()):
        yield _compared_score(record.item, record.outcome)
    for record in records.get("rank", ()):
        ranking = record.outcome
        if isinstance(ranking, Done):
            order = ranking.value.order
            ranking = PredictedRanking(ranks=ranks_of_order(order), order=order)
        yield _group_score(record.item, ranking, "rank")
    if "rate" in records:
        for user, rated in records["rate"].by_user():
            if rated[0].item.of == 1:
                yield from map(_behaviour_score, rated)
            else:
                yield _rated_score(user, sorted(rated, key=lambda record: record.item.place))


def counts(records: Mapping[str, Records[Any, Any]], options: Options) -> dict[str, int]:
    """The counts of notable events in the run, without those that are 0."""
    found: Counter[str] = Counter()
    for record in records.get("profile", ()):
        found["profiles that could not be made"] += not isinstance(record.outcome, Done)
    for group, compared in records["compare"].values() if "compare" in records else ():
        made = compared.comparisons
        found["comparisons of two users"] += len(made)
        unread = sum(2 - len(one.sides) for one in made)
        found["answers to comparisons that could not be read"] += unread
        found["triples of users preferred in a circle"] += intransitive(made, len(group.members))
    return {words: number for words, number in found.items() if number}


def _compared_score(group: Group, outcome: Done[Compared] | Failure) -> Score[GroupResult]:
    """The score of a group whose users were compared.

    An unreadable group has only unreadable comparisons. After a failed call or without a profile,
    their share is unknown.
    """
    if isinstance(outcome, Done):
        return _group_score(group, _compared(outcome.value), "compare")
    score = _group_score(group, outcome, "compare", COMPARISONS)
    if not isinstance(outcome, Unreadable) or outcome.cause == NO_PROFILE:
        return score
    missing = {name: cause for name, cause in score.missing.items() if name != UNREAD}
    return msgspec.structs.replace(score, values={**score.values, UNREAD: 1.0}, missing=missing)


def _compared(value: Compared) -> PredictedRanking:
    made = value.comparisons
    sides = [side for one in made for side in one.sides]
    both = [one for one in made if len(one.sides) == 2]
    shares = {
        "first_position": [side == "A" for side in sides],
        "inconsistent": [one.forth == one.back for one in both],
        "undecided": [one.preferred is None for one in made],
        UNREAD: [one not in both for one in made],
    }
    columns = {name: sum(cases) / len(cases) for name, cases in shares.items() if cases}
    return PredictedRanking(
        ranks=value.ranks,
        order=value.order,
        columns=columns,
        unread=frozenset((one.first, one.second) for one in made if one not in both),
        pairs=len(made),
    )


def _rated(predicted: Ratings, members: Sequence[Member]) -> PredictedRanking:
    above = relative(predicted, [member.average for member in members])
    return PredictedRanking(
        ranks=ranks_of(above),
        order=published_order(above),
        predicted=predicted,
        columns=_errors(predicted, _ratings(members)),
    )


def _rated_score(item: str, rated: Sequence[Record[Any, Any]]) -> Score[GroupResult]:
    """The score of a group whose users were rated one by one; missing if a rating is missing."""
    first = rated[0].item
    members = tuple(record.item.member for record in rated)
    group = Group(
        id=item,
        user=item,
        query=first.query,
        members=members,
        overall_average=first.overall_average,
    )
    outcomes = [record.outcome for record in rated]
    predicted = tuple(float(done.value.rating) for done in outcomes if isinstance(done, Done))
    failure = next((one for one in outcomes if not isinstance(one, Done)), None)
    own = ERRORS if _ratings(members) else ()
    return _group_score(group, failure or _rated(predicted, members), "rate", own)


def _group_score(
    group: Group, ranking: PredictedRanking | Failure, stage: str, own: Sequence[str] = ()
) -> Score[GroupResult]:
    """The score of a group; a failure is the cause why it lacks the columns `own` and others."""
    result = _known(group.id, group.members, group.overall_average)
    values = _guess_errors(result)
    values["labelled"] = float(result.truth is not None)
    if result.truth:
        values |= {name: ptc(ranks, result.truth) for name, ranks in result.baselines.items()}
    agreement = AGREEMENT if result.truth else ()
    unknown = {
        "groups without a whole true order": not result.truth,
        "groups without true ratings": stage == "rate" and not result.ratings,
    }
    parts: dict[str, tuple[int, int]] = {}
    worst: dict[str, float] = {}
    if isinstance(ranking, PredictedRanking):
        result = msgspec.structs.replace(
            result, ranks=ranking.ranks, order=ranking.order, predicted=ranking.predicted
        )
        values |= {**_agreement(ranking, result), **ranking.columns}
        missing = {name: "all_tied" for name in agreement if name not in values}
        read = [name for name in READ_OF_PAIRS if name in values and ranking.pairs]
        parts = dict.fromkeys(read, (len(ranking.unread), ranking.pairs))
        if ranking.unread and result.truth:
            worst = {"ptc": ptc(ranking.ranks, result.truth, unread=ranking.unread)}
    else:
        columns = ("like_higher_average", *agreement, *own)
        missing = dict.fromkeys(columns, cause_of(ranking, stage))
    return Score(
        id=group.id,
        user=group.user,
        values=values,
        missing=missing,
        parts=parts or msgspec.UNSET,
        worst=worst,
        counts={what: 1 for what, is_unknown in unknown.items() if is_unknown},
        details=result,
    )


def cause_of(failure: Failure, stage: str) -> str:
    """The stage that failed, with the cause: without a profile nothing was asked."""
    return f"{'profile' if failure.cause == NO_PROFILE else stage}/{failure.cause}"


def _behaviour_score(record: Record[Any, Any]) -> Score[GroupResult]:
    """The score of one predicted rating that belongs to no group."""
    item = record.item
    result = _known(record.id.rpartition("/")[0], [item.member], item.overall_average)
    values = _guess_errors(result)
    missing: dict[str, str] = {}
    if isinstance(done := record.outcome, Done):
        result = msgspec.structs.replace(result, predicted=(float(done.value.rating),))
        values |= _errors(result.predicted, result.ratings)
    elif result.ratings:
        missing = dict.fromkeys(ERRORS, cause_of(done, "rate"))
    return Score(id=record.id, user=record.user, values=values, missing=missing, details=result)


def _known(item: str, members: Sequence[Member], overall: float | None) -> GroupResult:
    """The result of users before any prediction; a single user has no ranks."""
    alone = len(members) == 1
    return GroupResult(
        item=item,
        averages=tuple(member.average for member in members),
        truth=None if alone else _all(member.rank for member in members),
        ratings=_ratings(members),
        baselines={} if alone else baseline_ranks(item, members, overall),
        guesses=guesses(members, overall),
    )


def _agreement(ranking: PredictedRanking, result: GroupResult) -> dict[str, float]:
    """The agreement with the true ranking, if it is known, and with higher average first."""
    plain = result.baselines["higher_average_first"]
    found: dict[str, float | None] = {"like_higher_average": ptc(ranking.ranks, plain)}
    if result.truth:
        true_order = published_order([-rank for rank in result.truth])
        found |= {
            "ptc": ptc(ranking.ranks, result.truth),
            "ptc_published": ptc_published(ranking.order, true_order),
            "tau_b": tau_b(ranking.ranks, result.truth),
            "exact": float(ranking.ranks == result.truth),
        }
    return {name: value for name, value in found.items() if value is not None}


def _guess_errors(result: GroupResult) -> dict[str, float]:
    """The errors of all predictions without a model."""
    return {
        f"{column}_{name}": error
        for name, guessed in result.guesses.items()
        for column, error in _errors(guessed, result.ratings).items()
    }


def _errors(predicted: Ratings | None, ratings: Ratings | None) -> dict[str, float]:
    """The mean absolute and the mean squared error; empty if ratings are unknown."""
    if predicted is None or ratings is None:
        return {}
    apart = [abs(one - other) for one, other in zip(predicted, ratings, strict=True)]
    squares = [difference**2 for difference in apart]
    return {"mae": fsum(apart) / len(apart), "squared_error": fsum(squares) / len(apart)}


def _ratings(members: Sequence[Member]) -> Ratings | None:
    return _all(member.rating for member in members)


def _all(values: Iterable[T | None]) -> tuple[T, ...] | None:
    """The values; None if one is unknown."""
    every = tuple(values)
    known = tuple(value for value in every if value is not None)
    return known if len(known) == len(every) else None
