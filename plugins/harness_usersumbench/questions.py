"""The options of questions: drawn once a user, and put in another order in each run."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
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
        self._by_count: defaultdict[int, list[int]] = defaultdict(list)
        for number, count in enumerate(counts):
            self._by_count[count].append(number)
        self._levels = sorted(self._by_count)

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
        above = bisect_left(self._levels, count)
        below = above - 1
        while below >= 0 or above < len(self._levels):
            down = count - self._levels[below] if below >= 0 else None
            up = self._levels[above] - count if above < len(self._levels) else None
            near: list[int] = []
            if down is not None and (up is None or down <= up):
                near += self._by_count[self._levels[below]]
                below -= 1
            if up is not None and (down is None or up <= down):
                near += self._by_count[self._levels[above]]
                above += 1
            yield from drawing(rng, near)


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
        )
    circle = shuffled(Random(stable_int("usersumbench others", seed)), sorted(ids))
    return dict(zip(circle, (*circle[1:], circle[0]), strict=True))
