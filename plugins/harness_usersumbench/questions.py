"""The options of questions: drawn once a user, and put in another order in each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import islice
from random import Random
from typing import NamedTuple

from harness import DataError
from harness.base.hashing import stable_int
from harness.base.seeded_random import shuffled
from harness_usersumbench.records import OPTIONS_A_QUESTION, Drawn, Task

WRONG = OPTIONS_A_QUESTION - 1


class Pool:
    """What options are drawn from: numbers from 0 on, each with its count in the data."""

    def __init__(self, counts: Sequence[int]) -> None:
        self.counts = counts

    def by_chance(self, rng: Random, right: int, *, never: Collection[int]) -> list[int]:
        """A number, and four that are not among those in `never`, which must leave four."""
        found = {right: None}
        while len(found) < OPTIONS_A_QUESTION:
            number = int(rng.random() * len(self.counts))
            if number not in never:
                found[number] = None
        return list(found)

    def by_popularity(
        self, rng: Random, rights: Sequence[int], *, never: Collection[int], often: Counter[int]
    ) -> list[int]:
        """One of `rights`, and the four nearest to it by rank that are not among those in `never`.

        How many of them are of higher rank is what came least `often`, where that is possible: the
        highest number of all can only be the first of five.
        """
        places = sorted(shuffled(rng, range(OPTIONS_A_QUESTION)), key=often.__getitem__)
        tries = ((place, right) for place in places for right in shuffled(rng, rights))
        place, found = next(
            (place, found)
            for place, right in tries
            if len(found := self._around(right, place, never)) == OPTIONS_A_QUESTION
        )
        often[place] += 1
        return found

    def _around(self, right: int, place: int, never: Collection[int]) -> list[int]:
        """A number, with so many of the next higher rank and the others of lower, if there are."""
        ranked, rank = self._ranked, self._ranks[right]
        higher = (at for at in range(rank + 1, len(ranked)) if ranked[at] not in never)
        lower = (at for at in range(rank - 1, -1, -1) if ranked[at] not in never)
        near = (*islice(higher, place), *islice(lower, WRONG - place))
        return [right, *(ranked[at] for at in near)]

    @cached_property
    def _ranked(self) -> Sequence[int]:
        """The numbers by their counts, the lowest first, and by chance among equal counts."""
        numbers = shuffled(Random(len(self.counts)), range(len(self.counts)))
        return sorted(numbers, key=self.counts.__getitem__)

    @cached_property
    def _ranks(self) -> Sequence[int]:
        return sorted(range(len(self.counts)), key=self._ranked.__getitem__)


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
