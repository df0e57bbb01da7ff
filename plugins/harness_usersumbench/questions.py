"""The options of questions: drawn once a user, and put in another order in each run."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from math import inf
from random import Random
from typing import NamedTuple

from harness import DataError
from harness.base.hashing import stable_int
from harness.base.seeded_random import drawing, shuffled
from harness_usersumbench.records import OPTIONS_A_QUESTION, Drawn, Task

WRONG = OPTIONS_A_QUESTION - 1


class Pool:
    """What options are drawn from: numbers from 0 on, each with its count in the data."""

    def __init__(self, counts: Sequence[int]) -> None:
        self.counts = counts

    def wrong(
        self, rng: Random, right: int, *, never: Collection[int], by_popularity: bool
    ) -> list[int]:
        """Four numbers that are not among those in `never`, of which at least four must be left.

        By popularity, they are those with counts nearest to the right one's, by chance among those
        that are equally near.
        """
        candidates = self._nearest(rng, self.counts[right]) if by_popularity else self._any(rng)
        found: dict[int, None] = {}
        for number in candidates:
            if number not in never and number != right:
                found[number] = None
                if len(found) == WRONG:
                    break
        return list(found)

    def _any(self, rng: Random) -> Iterator[int]:
        """Numbers by chance without end."""
        while True:
            yield int(rng.random() * len(self.counts))

    def _nearest(self, rng: Random, count: int) -> Iterator[int]:
        """All numbers, those with the nearest counts first."""
        levels = list(self._by_count)
        above = bisect_left(levels, count)
        below = above - 1
        while below >= 0 or above < len(levels):
            down = count - levels[below] if below >= 0 else inf
            up = levels[above] - count if above < len(levels) else inf
            near: list[int] = []
            if down <= up:
                near += self._by_count[levels[below]]
                below -= 1
            if up <= down:
                near += self._by_count[levels[above]]
                above += 1
            yield from drawing(rng, near)

    @cached_property
    def _by_count(self) -> Mapping[int, Sequence[int]]:
        """The numbers by their counts, the lowest first."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for number, count in enumerate(self.counts):
            found[count].append(number)
        return dict(sorted(found.items()))


class Ordered(NamedTuple):
    """The options of a question as they are shown, with two positions among them.

    `right` is the right answer, `popular` the option that the data has most often; of several, it
    is the first shown.
    """

    options: tuple[str, ...]
    right: int
    popular: int


def ordered(drawn: Drawn, *, seed: int, user: str, task: Task, run: int) -> Ordered:
    """The options in the order of a run, which depends on nothing but what is given."""
    chance = Random(stable_int("usersumbench options", seed, user, task, run))
    order = shuffled(chance, range(len(drawn.options)))
    counts = [drawn.counts[place] for place in order]
    return Ordered(
        options=tuple(drawn.options[place] for place in order),
        right=order.index(0),
        popular=counts.index(max(counts)),
    )


def derangement(ids: Sequence[str], seed: int) -> Mapping[str, str]:
    """Another of the ids for each of them, each taken once, whatever their order."""
    if len(ids) < 2:
        raise DataError(
            "no other user's summary can be shown",
            found=f"{len(ids)} user",
            expected="at least two users",
            hint="leave out the tasks that end in _other, or take more with --limit",
        )
    circle = shuffled(Random(stable_int("usersumbench others", seed)), sorted(ids))
    return dict(zip(circle, (*circle[1:], circle[0]), strict=True))
