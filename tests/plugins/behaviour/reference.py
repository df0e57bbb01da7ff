"""Builds prompts after Algorithm 1 with plain sets, well or with a fault, for tests of checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from harness_behaviour.records import Prompt

from .checker import Logs

FAULTS = ("touched", "threshold", "demography", "candidates", "counts")
"""What `build` can do wrong.

The users have some things of those that none should have; sixty of a hundred of the history are
rounded down; users of all groups count; candidates are of the history; the probabilities are bare
counts.
"""


def build(
    logs: Logs, proxy: str, length: int, rng: Random, *, kept: int, fault: str = ""
) -> Iterator[Prompt]:
    """At most so many prompts of a cell, of 20,000 draws, with the fault if one is named."""
    groups, inventory = list(logs.groups[proxy].items()), sorted(logs.inventory)
    found = 0
    for draw in range(20_000 if length else len(groups)):
        group, members = groups[draw % len(groups)]
        history = rng.sample(inventory, length)
        among = logs.demography if fault == "demography" else members
        needed = 6 * length // 10 * 10 if fault == "threshold" else 6 * length
        users = [one for one in among if 10 * len(logs.things[one] & set(history)) >= needed]
        if length and len(users) < 3:
            continue
        had = {one for user in users for one in logs.things[user]}
        outside = logs.inventory - set(history)
        outside -= set() if fault == "touched" else had
        none = rng.sample(sorted(outside), min(25, len(outside)))
        inside = sorted(had - set(history) - set(none))
        some = rng.sample(inside, 50 - len(none))
        if fault == "candidates" and length:
            some[0] = max(history, key=lambda one: one in had)
        candidates = rng.sample(none + some, 50)
        counts = counted(logs, users, candidates)
        total = 1 if fault == "counts" else sum(counts)
        yield Prompt(
            id=f"{proxy}-{length}-{found}",
            user=f"{proxy}-{length}-{found}",
            setting=("a" if length else "c") if proxy != "none" else ("b" if length else "none"),
            proxy=proxy,
            length=length,
            group=group,
            history=tuple(history),
            candidates=tuple(candidates),
            probabilities=tuple(count / total for count in counts),
            users=len(users),
            popular=counted(logs, logs.things, candidates),
            popular_in_group=counted(logs, members, candidates),
        )
        found += 1
        if found == kept:
            return


def counted(logs: Logs, users: Iterable[str], candidates: Sequence[str]) -> tuple[int, ...]:
    """How many of the users have each candidate."""
    return tuple(sum(one in logs.things[user] for user in users) for one in candidates)
