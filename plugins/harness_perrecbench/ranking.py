"""Rankings of users: their agreement with each other, and rankings by comparisons of pairs.

Users are numbers from 1. An order holds these numbers, the strongest preference first. Ranks are
given in the order of the group. In the sort, a comparison without a preference means "not greater",
so that the resulting order depends on the initial one.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any

from harness.base.hashing import stable_int
from harness.base.seeded_random import shuffled
from harness_perrecbench.records import Compared, Comparison, Group, Options

if TYPE_CHECKING:
    from harness import Records

Greater = Callable[[int, int], Awaitable[bool]]
Compare = Callable[[int, int], Awaitable[Comparison]]

MANY = 0.1
"""The share of undecided comparisons above which the rule for them matters."""

DIGITS = 9
"""Differences of ratings are rounded to these digits, so that 1 - 1.3 equals 2 - 2.3."""


def ptc(
    ranks: Sequence[float], truth: Sequence[float], *, unread: Collection[tuple[int, int]] = ()
) -> float:
    """Concordant minus discordant pairs of users, as a share of all pairs.

    A pair with a tie in either ranking is neither. A pair of users' numbers in `unread` is never
    concordant, whatever other comparisons make of it. Without ties this is Kendall's tau.
    """
    pairs = list(combinations(range(1, len(ranks) + 1), 2))
    signs = zip(pairs, _signs(ranks, truth), strict=True)
    return sum(min(sign, 0) if pair in unread else sign for pair, sign in signs) / len(pairs)


def tau_b(ranks: Sequence[float], truth: Sequence[float]) -> float | None:
    """Kendall's tau-b, which divides by the pairs that are not tied; None if all are tied."""
    untied = _untied(ranks) * _untied(truth)
    if not untied:
        return None
    return sum(_signs(ranks, truth)) / math.sqrt(untied)


def ptc_published(order: Sequence[int], true_order: Sequence[int]) -> float | None:
    """Kendall's tau-b of two lists of users' numbers, position by position; None if undefined.

    For more than two users it differs from the tau of the rankings: the numbers at one position of
    two orders belong to different users.
    """
    return tau_b(order, true_order)


def ranks_of(scores: Sequence[float]) -> tuple[int, ...]:
    """The rank of each user, the highest score first; equal scores share the better rank."""
    return tuple(1 + sum(other > score for other in scores) for score in scores)


def ranks_of_order(order: Sequence[int]) -> tuple[int, ...]:
    """The rank of each user; users that an order leaves out come last."""
    named = list(dict.fromkeys(order))
    return tuple(
        1 + (named.index(user) if user in named else len(named))
        for user in range(1, len(order) + 1)
    )


def published_order(scores: Sequence[float]) -> tuple[int, ...]:
    """The users, the highest score first; of equal scores the later user first, as published."""
    users = range(len(scores), 0, -1)
    return tuple(sorted(users, key=lambda user: -scores[user - 1]))


def relative(ratings: Sequence[float], averages: Sequence[float]) -> tuple[float, ...]:
    """The difference of each user's rating to the user's average, rounded to DIGITS."""
    return tuple(
        round(rating - average, DIGITS) for rating, average in zip(ratings, averages, strict=True)
    )


def _signs(ranks: Sequence[float], truth: Sequence[float]) -> Iterator[int]:
    """For each pair of users: 1 if both rankings agree, -1 if they differ, 0 for a tie."""
    for (one, true_one), (other, true_other) in combinations(zip(ranks, truth, strict=True), 2):
        yield _sign(one, other) * _sign(true_one, true_other)


def _sign(one: float, other: float) -> int:
    return (one > other) - (one < other)


def _untied(ranks: Sequence[float]) -> int:
    return sum(one != other for one, other in combinations(ranks, 2))


class Comparisons:
    """The comparisons so far, in the order of their requests; the lower number comes first."""

    def __init__(self, compare: Compare) -> None:
        self._compare = compare
        self._made: dict[tuple[int, int], Comparison] = {}

    @property
    def made(self) -> tuple[Comparison, ...]:
        """All comparisons so far."""
        return tuple(self._made.values())

    async def of(self, one: int, other: int) -> Comparison:
        """The comparison of two users, made at the first request."""
        pair = min(one, other), max(one, other)
        if pair not in self._made:
            self._made[pair] = await self._compare(*pair)
        return self._made[pair]

    async def greater(self, one: int, other: int) -> bool:
        """True if `one` is preferred to `other`."""
        return (await self.of(one, other)).preferred == one


async def heapsort(users: Sequence[int], greater: Greater) -> tuple[int, ...]:
    """The users in descending order, by 1, 3, and 6 or 7 comparisons of 2, 3 and 4 users.

    If `greater` is always false, (1, 2) stays as it is, (1, 2, 3) becomes (1, 3, 2) and
    (1, 2, 3, 4) becomes (1, 4, 3, 2).
    """
    heap = list(users)
    for root in reversed(range(len(heap) // 2)):
        await _sift(heap, root, len(heap), greater)
    for last in reversed(range(1, len(heap))):
        heap[0], heap[last] = heap[last], heap[0]
        await _sift(heap, 0, last, greater)
    return tuple(reversed(heap))


async def _sift(heap: list[int], root: int, size: int, greater: Greater) -> None:
    """Move the user at `root` below all greater users in the first `size` of the heap."""
    while True:
        largest = root
        for child in (2 * root + 1, 2 * root + 2):
            if child < size and await greater(heap[child], heap[largest]):
                largest = child
        if largest == root:
            return
        heap[root], heap[largest] = heap[largest], heap[root]
        root = largest


async def by_heapsort(members: int, compare: Compare, rng: Random) -> Compared:
    """The users sorted from a random order; neighbours with an undecided comparison tie."""
    known = Comparisons(compare)
    users = range(1, members + 1)
    order = await heapsort(shuffled(rng, users), known.greater)
    undecided = {(one.first, one.second) for one in known.made if one.preferred is None}
    ranks = {order[0]: 1}
    for place, (better, user) in enumerate(pairwise(order), start=2):
        is_tied = tuple(sorted((better, user))) in undecided
        ranks[user] = ranks[better] if is_tied else place
    by_user = tuple(ranks[user] for user in users)
    return Compared(order=order, ranks=by_user, comparisons=known.made)


async def as_published(members: int, compare: Compare, _rng: Random | None = None) -> Compared:
    """The users sorted from the order of their numbers, without ties, as in the authors' code."""
    known = Comparisons(compare)
    order = await heapsort(range(1, members + 1), known.greater)
    return Compared(order=order, ranks=ranks_of_order(order), comparisons=known.made)


async def by_wins(members: int, compare: Compare, rng: Random) -> Compared:
    """The users by their wins over all pairs; users with equal wins tie, in random order."""
    users = range(1, members + 1)
    made = [await compare(*pair) for pair in combinations(users, 2)]
    winners = [one.preferred for one in made]
    wins = {user: winners.count(user) for user in users}
    order = tuple(sorted(shuffled(rng, users), key=lambda user: -wins[user]))
    return Compared(order=order, ranks=ranks_of([*wins.values()]), comparisons=tuple(made))


RULES: Mapping[str, Callable[[int, Compare, Random], Awaitable[Compared]]] = {
    "heapsort": by_heapsort,
    "published": as_published,
    "all_pairs": by_wins,
}
"""The ranking by each rule for undecided comparisons, by the value of the option `comparing`."""


def intransitive(comparisons: Iterable[Comparison], members: int) -> int:
    """The number of triples of users with circular preferences."""
    preferred = {(one.first, one.second): one.preferred for one in comparisons}
    circles = 0
    for first, second, third in combinations(range(1, members + 1), 3):
        winners = {preferred.get((first, second)), preferred.get((second, third))}
        winners.add(preferred.get((first, third)))
        circles += winners == {first, second, third}
    return circles


def notes(records: Mapping[str, Records[Any, Any]], options: Options) -> Iterator[str]:
    """The ptc by all three rules, if more than a tenth of the comparisons are undecided."""
    made = undecided = groups = 0
    found: dict[str, list[float]] = {rule: [] for rule in RULES}
    for group, compared in records["compare"].values() if "compare" in records else ():
        groups += 1
        made += len(compared.comparisons)
        undecided += sum(one.preferred is None for one in compared.comparisons)
        for rule, value in ptc_by_rule(group, compared, options.comparing).items():
            found[rule].append(value)
    if made and undecided / made > MANY:
        whole = len(found[options.comparing])
        said = f"in {whole:,} of {groups:,} groups every pair was compared"
        if whole >= groups / 2:
            means = ", ".join(f"{rule} {fmean(values):.3f}" for rule, values in found.items())
            said += f", and ptc of these is: {means}"
        else:
            said += ", too few to compare the rules: comparing=all_pairs compares every pair"
        yield (
            f"{undecided / made:.0%} of the comparisons are undecided, so that ptc depends on the "
            f"rule for them (option `comparing`, here {options.comparing}); {said}"
        )


def ptc_by_rule(group: Group, compared: Compared, own: str) -> dict[str, float]:
    """The ptc of a group by each rule; empty without a true order or with a pair not compared."""
    members = len(group.members)
    truth = [member.rank for member in group.members if member.rank is not None]
    known = {(one.first, one.second): one for one in compared.comparisons}
    if len(truth) < members or len(known) < members * (members - 1) // 2:
        return {}

    async def of_two(first: int, second: int) -> Comparison:
        return known[first, second]

    rng = Random(stable_int("undecided", group.id))
    ranked = {rule: done(by_rule(members, of_two, rng)) for rule, by_rule in RULES.items()}
    return {rule: ptc(one.ranks, truth) for rule, one in {**ranked, own: compared}.items()}


def done(ranking: Awaitable[Compared]) -> Compared:
    """The result of a ranking that waits for nothing: all its comparisons are known."""
    try:
        next(ranking.__await__())
    except StopIteration as finished:
        value: Compared = finished.value
        return value
    raise RuntimeError("a ranking of known comparisons waits for something")
