"""Scores as pure functions of stored records; a unit is a prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from harness import Done, Metric, Score
from harness_behaviour import entropy
from harness_behaviour.entropy import Targets
from harness_behaviour.records import CANDIDATES, RANKED, Asked, Fit, Options, Ranking

if TYPE_CHECKING:
    from harness import Record, Records
    from harness_behaviour.entropy import Places

STAGE = "recommend"
AT_ONCE = 1024
"""How many prompts are worked out together."""

UNREAD = (
    "no gap is the worst there is, so that a prompt without a readable ranking counts in the "
    "second value as the random ranking of that prompt, whose gap is gap_random"
)
OPTIMISTIC = (
    "the paper's filling, which rewards short lists: an empty one would be the ideal; "
    "never to be ranked by"
)

AS_RANDOM = "ranked at random"
"""As what a prompt without a readable ranking counts."""

LOSS = partial(Metric, worst=None, higher_is_better=False, counts_as=AS_RANDOM, range=(0.0, None))
BASELINE = partial(LOSS, baseline="gap")
GAIN = partial(Metric, worst=None, counts_as=AS_RANDOM)

METRICS: dict[str, Metric] = {
    "gap": LOSS(
        description="generalisation gap: mean of cross-entropy minus entropy, with epsilon 1e-6; "
        "0 is perfect, and gap_popular is the gap to beat",
        note=UNREAD,
    ),
    "gap_1e3": LOSS(description="the same with epsilon 1e-3", note=UNREAD),
    "displaced": LOSS(
        description="mean true probability of the candidates that the estimate rules out",
        range=(0.0, 1.0),
        note=UNREAD,
    ),
    "gap_optimistic": LOSS(
        description="the gap if places that are not filled are filled in the true order",
        note=f"{OPTIMISTIC}; {UNREAD}",
    ),
    "ndcg": GAIN(
        description="NDCG of the ten; a candidate's gain is its true probability", note=UNREAD
    ),
    "seen": GAIN(description="share of the ten that somebody in the group has", note=UNREAD),
    "filled": LOSS(
        description="places of the ten that were filled at random",
        worst=float(RANKED),
        range=(0.0, float(RANKED)),
    ),
    "gap_random": BASELINE(description="gap of one random ranking a prompt, the paper's baseline"),
    "gap_popular": BASELINE(
        description="gap of what most users have, without those behind the prompt: the gap to beat"
    ),
    "gap_popular_in_group": BASELINE(
        description="the same among users of the demography; in setting a alone, since b shows no "
        "demography, and behind a prompt of c are all users of it"
    ),
}
OF_ANSWERS = ("gap", "gap_1e3", "displaced", "gap_optimistic", "ndcg", "seen", "filled")
"""The columns that need a ranking."""

USERS = ((3, "3"), (5, "4-5"), (20, "6-20"), (100, "21-100"))
"""The largest number of users of each slice, and its name."""

MORE_USERS = "over 100"
THIRDS = ("lowest", "middle", "highest")


def score(records: Mapping[str, Records[Any, Any]], options: Options) -> Iterator[Score[Fit]]:
    """One score per prompt; that of the prompt without any context has details alone."""
    asked = records[STAGE].with_items(Asked)
    cuts = entropy_cuts(asked)
    for part in _parts(asked):
        yield from _scores(part, options.fills, cuts)


def entropy_cuts(asked: Records[Any, Any]) -> tuple[float, float]:
    """The entropies that divide the prompts of the task's setting into thirds."""
    found = [
        Targets(own).entropies()
        for part in _parts(asked)
        if (own := [one.item.counts for one in part if one.item.setting != "none"])
    ]
    every = np.concatenate(found) if found else np.zeros(1)
    low, high = np.quantile(every, (1 / 3, 2 / 3)).tolist()
    return low, high


def _fits(targets: Targets, rankings: Places) -> list[tuple[float, ...]]:
    """How rankings fit each prompt, a mean over several: cross-entropy at both epsilons, displaced
    mass, NDCG, and the share that somebody in the group has."""
    crossed = entropy.crossed(targets, rankings)
    parts = (
        crossed.at(entropy.EPSILON),
        crossed.at(entropy.EPSILON_1E3),
        crossed.displaced,
        entropy.gains(targets, rankings),
        entropy.seen(targets, rankings),
    )
    return list(zip(*(part.mean(axis=1).tolist() for part in parts), strict=True))


def _parts(asked: Records[Any, Any]) -> Iterator[list[Record[Any, Any]]]:
    """The records, some at a time."""
    left = iter(asked)
    while part := list(islice(left, AT_ONCE)):
        yield part


def _scores(
    part: Sequence[Record[Any, Any]], fills: int, cuts: tuple[float, float]
) -> Iterator[Score[Fit]]:
    targets = Targets(one.item.counts for one in part)
    drawn = entropy.drawn([one.id for one in part], fills, candidates=CANDIDATES, ranked=RANKED)
    answered = _answered(part, targets, drawn)
    true = targets.entropies().tolist()
    draws = entropy.crossed(targets, drawn).at(entropy.EPSILON).tolist()
    # The counts of the users behind a prompt are the answer, so that no baseline has them.
    behind, everybody, group = (
        np.array([getattr(one.item, name) for one in part])
        for name in ("counts", "popular", "popular_in_group")
    )
    others = (group > behind).any(axis=1)
    chance, popular, in_group = (
        _fits(targets, rankings)
        for rankings in (
            drawn[:, :1],
            entropy.most_frequent(everybody - behind, RANKED),
            entropy.most_frequent(group - behind, RANKED),
        )
    )
    for place, record in enumerate(part):
        known = record.item.setting == "a" and others[place]
        yield _score(
            record,
            answered.get(place),
            true[place],
            cuts,
            draws=tuple(draws[place]),
            without_model=(chance[place], popular[place], in_group[place] if known else None),
        )


def _answered(
    part: Sequence[Record[Any, Any]], targets: Targets, drawn: Places
) -> dict[int, tuple[float, ...]]:
    """How the readable rankings of some records fit, by the place of the record.

    The last of the numbers is the cross-entropy by the paper's filling.
    """
    rankings: dict[int, Ranking] = {
        place: one.outcome.value for place, one in enumerate(part) if isinstance(one.outcome, Done)
    }
    found: dict[int, tuple[float, ...]] = {}
    whole = [place for place, one in rankings.items() if not _empty(one)]
    short = [place for place, one in rankings.items() if _empty(one)]
    if whole:
        given = np.array([rankings[place].places for place in whole])[:, None]
        fits = _fits(targets.part(whole), given)
        found |= {place: (*fit, fit[0]) for place, fit in zip(whole, fits, strict=True)}
    if short:
        own, named = targets.part(short), [rankings[place].places for place in short]
        fits = _fits(own, entropy.filled(named, drawn[short]))
        in_true_order = entropy.filled(named, own.best(RANKED))
        least = entropy.crossed(own, in_true_order).at(entropy.EPSILON)[:, 0].tolist()
        found |= {place: (*fit, of) for place, fit, of in zip(short, fits, least, strict=True)}
    return found


def _score(
    record: Record[Any, Any],
    answered: tuple[float, ...] | None,
    true: float,
    cuts: tuple[float, float],
    *,
    draws: tuple[float, ...],
    without_model: tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...] | None],
) -> Score[Fit]:
    item: Asked = record.item
    chance, popular, in_group = without_model
    ranking = Ranking((), ()) if answered is None else record.outcome.value  # type: ignore[union-attr]
    fit = Fit(
        item.setting,
        item.proxy,
        item.length,
        item.users,
        true,
        draws,
        *((None,) * 4 if answered is None else (*answered[:3], _empty(ranking))),
        *chance[:3],
        *popular[:3],
        *((None,) * 3 if in_group is None else in_group[:3]),
    )
    counts = {} if answered is None else _counts(ranking)
    if item.setting == "none":
        return Score(id=record.id, user=record.user, counts=counts, details=fit)
    values = {"gap_random": chance[0] - true, "gap_popular": popular[0] - true}
    if in_group is not None:
        values["gap_popular_in_group"] = in_group[0] - true
    missing, worst = dict[str, str](), dict[str, float]()
    if answered is None:
        missing = dict.fromkeys(OF_ANSWERS, f"{STAGE}/{record.outcome.cause}")  # type: ignore[union-attr]
        worst = _columns((*chance, chance[0]), true, RANKED)
    else:
        values |= _columns(answered, true, _empty(ranking))
    return Score(
        id=record.id,
        user=record.user,
        values=values,
        missing=missing,
        worst=worst,
        counts=counts,
        details=fit,
        slices={
            "proxy": item.proxy,
            "history": str(item.length),
            "users": next((name for most, name in USERS if item.users <= most), MORE_USERS),
            "entropy": THIRDS[sum(true > cut for cut in cuts)],
        },
    )


def _columns(fits: tuple[float, ...], true: float, empty: int) -> dict[str, float]:
    """The columns that need a ranking, in their order."""
    cross, cross_1e3, displaced, ndcg, seen, optimistic = fits
    gaps = (cross - true, cross_1e3 - true, displaced, optimistic - true)
    return dict(zip(OF_ANSWERS, (*gaps, ndcg, seen, float(empty)), strict=True))


def _empty(ranking: Ranking) -> int:
    return RANKED - len(ranking.places)


def _counts(ranking: Ranking) -> dict[str, int]:
    """What happened to the titles of an answer, without what is 0."""
    found = {f"titles matched: {how}": n for how, n in Counter(ranking.matched).items()}
    found["titles unknown"] = ranking.unknown
    found["titles repeated"] = ranking.repeated
    found["titles after the tenth place"] = ranking.surplus
    found["places filled at random"] = _empty(ranking)
    found["answers without a candidate"] = int(not ranking.places)
    return {what: number for what, number in found.items() if number}
