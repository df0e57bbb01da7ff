"""Orders of users by comparisons of pairs; each pair is compared once.

Users are numbers. In the sort, a comparison without a preference means "not greater", so that the
resulting order depends on the initial one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import combinations, pairwise
from random import Random

from harness.base.seeded_random import shuffled
from harness_perrecbench.records import Compared, Comparison

Greater = Callable[[int, int], Awaitable[bool]]
Compare = Callable[[int, int], Awaitable[Comparison]]


class Comparisons:
    """The comparisons so far, in the order of their requests; each pair is compared once.

    The lower number of a pair always comes first.
    """

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
    """The users sorted from a random order; neighbours with an undecided comparison tie.

    Neighbours that the sort did not compare do not tie.
    """
    known = Comparisons(compare)
    users = range(1, members + 1)
    order = await heapsort(shuffled(rng, users), known.greater)
    undecided = {(one.first, one.second) for one in known.made if one.preferred is None}
    tied = [tuple(sorted(pair)) in undecided for pair in pairwise(order)]
    return Compared(order=order, ranks=_ranks(order, tied), comparisons=known.made)


async def as_published(members: int, compare: Compare) -> Compared:
    """The users sorted from the order of their numbers, without ties, as in the authors' code."""
    known = Comparisons(compare)
    order = await heapsort(range(1, members + 1), known.greater)
    return Compared(
        order=order, ranks=_ranks(order, [False] * (members - 1)), comparisons=known.made
    )


async def by_wins(members: int, compare: Compare, rng: Random) -> Compared:
    """The users by their number of wins over all pairs; users with equal wins tie.

    In `order`, which has no ties, users with equal wins are in random order.
    """
    users = range(1, members + 1)
    made = [await compare(*pair) for pair in combinations(users, 2)]
    winners = [one.preferred for one in made]
    wins = {user: winners.count(user) for user in users}
    order = tuple(sorted(shuffled(rng, users), key=lambda user: -wins[user]))
    tied = [wins[one] == wins[next_] for one, next_ in pairwise(order)]
    return Compared(order=order, ranks=_ranks(order, tied), comparisons=tuple(made))


def intransitive(comparisons: Iterable[Comparison], members: int) -> int:
    """The number of triples of users with circular preferences."""
    preferred = {(one.first, one.second): one.preferred for one in comparisons}
    circles = 0
    for first, second, third in combinations(range(1, members + 1), 3):
        winners = {preferred.get((first, second)), preferred.get((second, third))}
        winners.add(preferred.get((first, third)))
        circles += winners == {first, second, third}
    return circles


def _ranks(order: Sequence[int], tied: Sequence[bool]) -> tuple[int, ...]:
    """The rank of user 1, 2, …; tied users share the better rank, the next is skipped."""
    ranks = {order[0]: 1}
    for place, (user, is_tied) in enumerate(zip(order[1:], tied, strict=True), start=2):
        ranks[user] = ranks[order[place - 2]] if is_tied else place
    return tuple(ranks[user] for user in sorted(order))
