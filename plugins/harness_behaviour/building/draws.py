"""Algorithm 1: draws of histories, the users behind them, and their candidates.

Users and items are numbers. A set of users is a row of bits in words of 64, so that membership is a
matter of a few operations on words, whatever the number of users.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

import numpy as np
from numpy.typing import NDArray

from harness.base.hashing import stable_int
from harness.base.seeded_random import shuffled
from harness_behaviour.records import CANDIDATES

Bits = NDArray[np.uint64]
Numbers = NDArray[np.int64]

LEAST_USERS = 3
"""How many users are behind a prompt at least."""

TOGETHER = 500
"""How many histories are looked at together; the results do not depend on it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Had:
    """Who has which items: `items` of one user after the other, and the `bits` of users by item.

    The items of user n are those from `starts[n]` to `starts[n + 1]`.
    """

    starts: Numbers
    items: NDArray[np.int32]
    bits: Bits

    @property
    def users(self) -> int:
        return len(self.starts) - 1

    @property
    def inventory(self) -> int:
        return len(self.bits)

    def of(self, user: int) -> NDArray[np.int32]:
        return self.items[self.starts[user] : self.starts[user + 1]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Drawn:
    """One prompt as numbers: `group` is a place among the groups; counts are of candidates."""

    group: int
    history: tuple[int, ...]
    candidates: tuple[int, ...]
    counts: tuple[int, ...]
    users: int
    outside: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Cell:
    """The prompts of a proxy and a length of history, and the number of draws that were tried."""

    found: tuple[Drawn, ...]
    tried: int


def who_has(users: Numbers, items: Numbers, *, of_users: int, inventory: int) -> Had:
    """The sets of pairs of a user and an item, in any order, each at most once."""
    order = np.argsort(users * inventory + items)
    ordered = items[order].astype(np.int32)
    starts = np.searchsorted(users[order], np.arange(of_users + 1))
    bits = np.zeros((inventory, -(-of_users // 64)), dtype="<u8")
    for user in range(of_users):
        own = ordered[starts[user] : starts[user + 1]]
        bits[own, user // 64] |= np.uint64(1 << user % 64)
    return Had(starts=starts, items=ordered, bits=bits)


def set_of(members: Sequence[int] | Numbers, *, of_users: int) -> Bits:
    """The bits of a set of users."""
    places = np.zeros(-(-of_users // 64) * 64, dtype=np.uint8)
    places[np.asarray(members, dtype=np.int64)] = 1
    return np.packbits(places, bitorder="little").view("<u8")


def members_of(bits: Bits) -> Numbers:
    """The users of a set."""
    places = np.unpackbits(bits.view(np.uint8), bitorder="little")
    return np.flatnonzero(places).astype(np.int64)


def sizes(bits: Bits) -> Numbers:
    """The number of users in each of many sets."""
    return np.bitwise_count(bits).sum(axis=-1, dtype=np.int64)


def needed(length: int) -> int:
    """The fewest items that are 60% of a history."""
    return -(-3 * length // 5)


def with_enough(rows: Bits, need: int) -> Bits:
    """Of the sets along the next to last axis, the users who are in at least `need`.

    The bits of a number for each user count the sets. The numbers begin at what lacks to the next
    power of two, so that a carry out of the highest bit shows that enough sets hold the user.
    """
    digits = rows.shape[-2].bit_length()
    lacking = (1 << digits) - need
    every = np.uint64(2**64 - 1)
    count = [
        np.full_like(rows[..., 0, :], every if lacking >> digit & 1 else 0)
        for digit in range(digits)
    ]
    enough = np.zeros_like(rows[..., 0, :])
    for place in range(rows.shape[-2]):
        carry = rows[..., place, :]
        for digit, before in enumerate(count):
            count[digit], carry = before ^ carry, before & carry
        enough |= carry
    return enough


def distinct(rng: Random, inventory: int, count: int) -> tuple[int, ...]:
    """Some numbers below that of the inventory by chance, each once."""
    chosen = dict[int, None]()
    while len(chosen) < count:
        chosen[int(rng.random() * inventory)] = None
    return tuple(chosen)


def histories(
    rng: Random, length: int, *, inventory: int, weights: Sequence[int] | None
) -> Iterator[tuple[int, ...]]:
    """Histories without end, by chance, or by chance weighted with the popularity of items."""
    if weights is None:
        while True:
            yield distinct(rng, inventory, length)
    ends = list(accumulate(weights))
    while True:
        chosen = dict[int, None]()
        while len(chosen) < length:
            chosen[bisect_right(ends, int(rng.random() * ends[-1]))] = None
        yield tuple(chosen)


def select(had: Had, users: Bits, history: Sequence[int], rng: Random) -> tuple[list[int], int]:
    """The candidates of a prompt in random order, and how many of them no user of it has.

    There are none if the users have too few items.
    """
    inside = np.zeros(had.inventory, dtype=bool)
    for user in members_of(users):
        inside[had.of(user)] = True
    outside = ~inside
    inside[list(history)] = outside[list(history)] = False
    others, seen = np.flatnonzero(outside), np.flatnonzero(inside)
    without = min(CANDIDATES // 2, len(others))
    if len(seen) < CANDIDATES - without:
        return [], without
    first = others[list(distinct(rng, len(others), without))]
    second = seen[list(distinct(rng, len(seen), CANDIDATES - without))]
    return list(shuffled(rng, [*first.tolist(), *second.tolist()])), without


def draw(
    had: Had,
    groups: Sequence[Bits],
    length: int,
    *,
    most: int,
    tries: int,
    seed: tuple[str | int, ...],
    weights: Sequence[int] | None = None,
) -> Cell:
    """The prompts of a cell with histories; groups take turns.

    `seed` are the parts of a seed. Each try that succeeds has a seed of its own for candidates.
    """
    rng = Random(stable_int("behaviour histories", *seed))
    endless = histories(rng, length, inventory=had.inventory, weights=weights)
    turns, need, found = np.stack(groups), needed(length), list[Drawn]()
    for start in range(0, tries if most else 0, TOGETHER):
        drawn = [next(endless) for _ in range(min(TOGETHER, tries - start))]
        turn = np.arange(start, start + len(drawn)) % len(groups)
        users = with_enough(had.bits[np.array(drawn)], need) & turns[turn]
        for place in np.flatnonzero(sizes(users) >= LEAST_USERS).tolist():
            one = prompt(had, users[place], int(turn[place]), drawn[place], (*seed, start + place))
            if one is not None:
                found.append(one)
            if len(found) == most:
                return Cell(found=tuple(found), tried=start + place + 1)
    return Cell(found=tuple(found), tried=tries if most else 0)


def without_history(had: Had, groups: Sequence[Bits], *, seed: tuple[str | int, ...]) -> Cell:
    """One prompt for each group, all of whose users are behind it."""
    made = [prompt(had, group, place, (), (*seed, place)) for place, group in enumerate(groups)]
    return Cell(found=tuple(one for one in made if one is not None), tried=len(groups))


def prompt(
    had: Had, users: Bits, group: int, history: tuple[int, ...], seed: tuple[str | int, ...]
) -> Drawn | None:
    """The prompt of some users; None if they have too few items for its candidates."""
    rng = Random(stable_int("behaviour candidates", *seed))
    candidates, outside = select(had, users, history, rng)
    if not candidates:
        return None
    return Drawn(
        group=group,
        history=history,
        candidates=tuple(candidates),
        counts=tuple(sizes(had.bits[candidates] & users).tolist()),
        users=int(sizes(users)),
        outside=outside,
    )
