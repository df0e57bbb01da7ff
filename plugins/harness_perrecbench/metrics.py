"""The scores: pure functions of stored records, so that no model is asked again.

A unit is a group of users, whichever way its ranking was asked for, or with `ask: rating` a single
behaviour. A group whose true ranking is unknown has no agreement with it: it is no unit of those
metrics, and is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec

from harness import Done, Failure, Metric, Score, Unreadable
from harness_perrecbench.predictions import BASELINES, GUESSES, baseline_ranks, guesses
from harness_perrecbench.ranking import intransitive
from harness_perrecbench.records import Compared, Group, Member, Options, Ranked, Told
from harness_perrecbench.taus import (
    ptc,
    ptc_published,
    published_order,
    ranks_of,
    ranks_of_order,
    relative,
    tau_b,
)

if TYPE_CHECKING:
    from harness import Record, Records

T = TypeVar("T")
Ratings: TypeAlias = tuple[float, ...]

NO_LABEL = "groups without a whole true order"
NO_RATINGS = "groups without true ratings"
NO_PROFILE = "no_profile"
ALL_TIED = "all_tied"

AGREEMENT = ("ptc", "ptc_published", "tau_b", "exact")
ERRORS = ("mae", "squared_error")
UNREAD = "unreadable_comparisons"
COMPARISONS = ("first_position", "inconsistent", "undecided", UNREAD)

PUBLISHED = (
    "Kendall's tau of the two lists of user numbers, place by place, as in the published script: "
    "equal to ptc for two users who do not tie, another and mostly smaller number for more"
)


NO_PREFERENCE = (
    "such a comparison counts as no preference, and a group with any that was read counts as read: "
    "where this is high, ptc tells little though it is shown"
)
LABELLED = (
    "ptc and all else that needs the true order is of the labelled groups alone; below 1 the data "
    "are partial, and no published numbers stand beside such results"
)


def root_mean(squares: Any) -> float:
    """The root of the mean of squared errors."""
    return float(squares.mean() ** 0.5)


def _error_metrics(of: str, whose: str, **changes: Any) -> dict[str, Metric]:
    """MAE and RMSE, of columns whose names end in `of`; the worst is a 5 for a 1."""
    return {
        f"mae{of}": Metric(
            description=f"mean absolute error of {whose}",
            worst=4.0,
            higher_is_better=False,
            **changes,
        ),
        f"rmse{of}": Metric(
            description=f"root mean squared error of {whose}",
            of=f"squared_error{of}",
            worst=16.0,
            statistic=root_mean,
            higher_is_better=False,
            **changes,
        ),
    }


METRICS: dict[str, Metric] = {
    "ptc": Metric(
        description="Kendall's tau of the predicted and the true ranking, a tied pair counting 0",
        missing="counted",
    ),
    "ptc_published": Metric(
        description="tau as the published script takes it", missing="counted", note=PUBLISHED
    ),
    "tau_b": Metric(
        description="Kendall's tau-b of the predicted and the true ranking",
        missing="counted",
        note="divides by the pairs that are not tied, which rewards whoever ties; ptc does not",
    ),
    "exact": Metric(description="share of groups with the exact ranking", missing="counted"),
    "like_higher_average": Metric(
        description="tau of the predicted ranking to higher average first", worst=None
    ),
    **_error_metrics("", "predicted ratings"),
    "first_position": Metric(
        description="share of answers that name the user shown first; 0.5 is free of bias",
        worst=None,
    ),
    "inconsistent": Metric(
        description="share of comparisons whose two answers name different users",
        worst=1.0,
        higher_is_better=False,
    ),
    "undecided": Metric(
        description="share of comparisons without a preference, unreadable ones with them",
        worst=1.0,
        higher_is_better=False,
    ),
    UNREAD: Metric(
        description="share of comparisons that could not be read in both orders",
        worst=None,
        higher_is_better=False,
        note=NO_PREFERENCE,
    ),
    "labelled": Metric(
        description="share of groups whose whole true order the data tell",
        worst=None,
        note=LABELLED,
    ),
    **{
        name: Metric(description=f"ptc of {name.replace('_', ' ')}", baseline=True)
        for name in BASELINES
    },
    **{
        metric: made
        for name in GUESSES
        for metric, made in _error_metrics(
            f"_{name}", f"{name.replace('_', ' ')} as a prediction", baseline=True
        ).items()
    },
}


@dataclass(frozen=True, kw_only=True)
class Said:
    """A ranking that was told, in whichever way it was asked for; `columns` are the way's own."""

    ranks: tuple[int, ...]
    order: tuple[int, ...]
    predicted: Ratings | None = None
    columns: Mapping[str, float] = field(default_factory=dict)


def score(records: Mapping[str, Records[Any, Any]], options: Options) -> Iterator[Score[Told]]:
    """One score a group or behaviour, with its domain and the number of users as slices."""
    domain = {} if options.domain == "all" else {"domain": options.domain}
    for one in _scores(records):
        users = len(one.details.averages) if one.details else 1
        size = {"users": str(users)} if users > 1 else {}
        slices = {**domain, **size} or msgspec.UNSET
        yield msgspec.structs.replace(one, slices=slices)


def _scores(records: Mapping[str, Records[Any, Any]]) -> Iterator[Score[Told]]:
    """The scores; which stage has records says how a ranking was asked for."""
    for record in records.get("compare", ()):
        yield _compared_score(record.item, record.outcome)
    for record in records.get("rank", ()):
        said = _ranked(done.value) if isinstance(done := record.outcome, Done) else done
        yield _group_score(record.item, said, "rank")
    if "rate" in records:
        for user, rated in records["rate"].by_user():
            if rated[0].item.of == 1:
                yield from map(_behaviour_score, rated)
            else:
                yield _rated_score(user, sorted(rated, key=lambda record: record.item.place))


def counts(records: Mapping[str, Records[Any, Any]], options: Options) -> dict[str, int]:
    """What happened in the run beside its scores; what did not happen is not told."""
    found: Counter[str] = Counter()
    for record in records.get("profile", ()):
        found["profiles that could not be made"] += not isinstance(record.outcome, Done)
    for group, compared in records["compare"].values() if "compare" in records else ():
        made = compared.comparisons
        found["comparisons of two users"] += len(made)
        found["answers to comparisons that could not be read"] += sum(
            side is None for one in made for side in (one.forth, one.back)
        )
        found["triples of users preferred in a circle"] += intransitive(made, len(group.members))
    return {words: number for words, number in found.items() if number}


def _compared_score(group: Group, outcome: Done[Compared] | Failure) -> Score[Told]:
    """The score of a group whose users were compared; of an unreadable one no comparison was read.

    Without a profile, or after a call that failed, it is not known what could have been read.
    """
    if isinstance(outcome, Done):
        return _group_score(group, _compared(outcome.value), "compare")
    score = _group_score(group, outcome, "compare", COMPARISONS)
    if not isinstance(outcome, Unreadable) or outcome.cause == NO_PROFILE:
        return score
    missing = {name: cause for name, cause in score.missing.items() if name != UNREAD}
    return msgspec.structs.replace(score, values={**score.values, UNREAD: 1.0}, missing=missing)


def _compared(value: Compared) -> Said:
    made = value.comparisons
    sides = [side for one in made for side in (one.forth, one.back) if side is not None]
    both = [one for one in made if one.forth is not None and one.back is not None]
    shares = {
        "first_position": [side == "A" for side in sides],
        "inconsistent": [one.forth == one.back for one in both],
        "undecided": [one.preferred is None for one in made],
        UNREAD: [one not in both for one in made],
    }
    columns = {name: sum(cases) / len(cases) for name, cases in shares.items() if cases}
    return Said(ranks=value.ranks, order=value.order, columns=columns)


def _ranked(value: Ranked) -> Said:
    return Said(ranks=ranks_of_order(value.order), order=value.order)


def _rated(predicted: Ratings, members: Sequence[Member]) -> Said:
    above = relative(predicted, [member.average for member in members])
    return Said(
        ranks=ranks_of(above),
        order=published_order(above),
        predicted=predicted,
        columns=_errors(predicted, _ratings(members)),
    )


def _rated_score(item: str, rated: Sequence[Record[Any, Any]]) -> Score[Told]:
    """The score of a group whose users were rated one by one; without one of them it has none."""
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
    group: Group, said: Said | Failure, stage: str, own: Sequence[str] = ()
) -> Score[Told]:
    """The score of a group by what was said of it, or with the cause why nothing was.

    `own` are the columns of this way of asking alone.
    """
    told = _known(group.id, group.members, group.overall_average)
    values = _guess_errors(told)
    values["labelled"] = float(told.truth is not None)
    if told.truth:
        values |= {name: ptc(ranks, told.truth) for name, ranks in told.baselines.items()}
    agreement = AGREEMENT if told.truth else ()
    unknown = {NO_LABEL: not told.truth, NO_RATINGS: stage == "rate" and not told.ratings}
    if isinstance(said, Said):
        told = msgspec.structs.replace(
            told, ranks=said.ranks, order=said.order, predicted=said.predicted
        )
        values |= {**_agreement(said, told), **said.columns}
        missing = {name: ALL_TIED for name in agreement if name not in values}
    else:
        columns = ("like_higher_average", *agreement, *own)
        missing = dict.fromkeys(columns, f"{stage}/{said.cause}")
    return Score(
        id=group.id,
        user=group.user,
        values=values,
        missing=missing,
        counts={what: 1 for what, is_unknown in unknown.items() if is_unknown},
        details=told,
    )


def _behaviour_score(record: Record[Any, Any]) -> Score[Told]:
    """The score of one predicted rating that belongs to no group."""
    item = record.item
    told = _known(record.id.rpartition("/")[0], [item.member], item.overall_average)
    values = _guess_errors(told)
    missing: dict[str, str] = {}
    if isinstance(done := record.outcome, Done):
        told = msgspec.structs.replace(told, predicted=(float(done.value.rating),))
        values |= _errors(told.predicted, told.ratings)
    elif told.ratings:
        missing = dict.fromkeys(ERRORS, f"rate/{done.cause}")
    return Score(id=record.id, user=record.user, values=values, missing=missing, details=told)


def _known(item: str, members: Sequence[Member], overall: float | None) -> Told:
    """What is told of users whatever was said; one user alone has no ranks."""
    alone = len(members) == 1
    return Told(
        item=item,
        averages=tuple(member.average for member in members),
        truth=None if alone else _all(member.rank for member in members),
        ratings=_ratings(members),
        baselines={} if alone else baseline_ranks(item, members, overall),
        guesses=guesses(members, overall),
    )


def _agreement(said: Said, told: Told) -> dict[str, float]:
    """How the ranking agrees with the true one, where that is known, and with a plain one."""
    plain = told.baselines["higher_average_first"]
    found: dict[str, float | None] = {"like_higher_average": ptc(said.ranks, plain)}
    if told.truth:
        true_order = published_order([-rank for rank in told.truth])
        found |= {
            "ptc": ptc(said.ranks, told.truth),
            "ptc_published": ptc_published(said.order, true_order),
            "tau_b": tau_b(said.ranks, told.truth),
            "exact": float(said.ranks == told.truth),
        }
    return {name: value for name, value in found.items() if value is not None}


def _guess_errors(told: Told) -> dict[str, float]:
    """The errors of every prediction that asks nobody."""
    return {
        f"{column}_{name}": error
        for name, guessed in told.guesses.items()
        for column, error in _errors(guessed, told.ratings).items()
    }


def _errors(predicted: Ratings | None, ratings: Ratings | None) -> dict[str, float]:
    """The mean absolute and the mean squared error, where both ratings are known."""
    if predicted is None or ratings is None:
        return {}
    apart = [abs(one - other) for one, other in zip(predicted, ratings, strict=True)]
    squares = [difference**2 for difference in apart]
    return {"mae": fsum(apart) / len(apart), "squared_error": fsum(squares) / len(apart)}


def _ratings(members: Sequence[Member]) -> Ratings | None:
    return _all(member.rating for member in members)


def _all(values: Iterable[T | None]) -> tuple[T, ...] | None:
    """The values, or None where one is unknown."""
    every = tuple(values)
    known = tuple(value for value in every if value is not None)
    return known if len(known) == len(every) else None
