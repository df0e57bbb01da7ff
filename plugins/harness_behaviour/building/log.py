"""What the files of a domain say: who is there, in which groups, and who has which items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness import DataError
from harness_behaviour.building.draws import LEAST_USERS, Had
from harness_behaviour.records import CANDIDATES, Domain, Proxy


@dataclass(frozen=True, kw_only=True)
class Group:
    """The users of one group of a proxy, and the values that they share."""

    values: tuple[str, ...]
    users: tuple[int, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Log:
    """The users, items and groups of a domain; `titles` gives those of some items.

    `notes` count what was left out.
    """

    domain: Domain
    had: Had
    groups: Mapping[Proxy, tuple[Group, ...]]
    titles: Callable[[Sequence[int]], Mapping[int, str]]
    notes: Mapping[str, int]


def groups_of(
    values: Iterable[tuple[str, ...] | None], *, proxy: Proxy, where: str
) -> tuple[Group, ...]:
    """The groups of a proxy in the order of their values, given the values of each user.

    A group has three users at least, and users without values are in none. DataError for a proxy
    without any group.
    """
    members = defaultdict[tuple[str, ...], list[int]](list)
    for user, own in enumerate(values):
        if own is not None:
            members[own].append(user)
    groups = tuple(
        Group(values=own, users=tuple(members[own]))
        for own in sorted(members)
        if len(members[own]) >= LEAST_USERS
    )
    if not groups:
        raise DataError(
            f"no group of the proxy '{proxy}' has three users",
            where=where,
            found=f"{len(members):,} groups; the largest has "
            f"{max(map(len, members.values()), default=0)} users",
            expected=f"at least one group of {LEAST_USERS} users who can be used",
        )
    return groups


def check_inventory(items: int, *, where: str) -> None:
    """Raise DataError for fewer items than a prompt has candidates."""
    if items < CANDIDATES:
        raise DataError(
            f"there are fewer items than the {CANDIDATES} candidates of a prompt",
            where=where,
            found=f"{items:,} items",
            expected=f"at least {CANDIDATES}",
        )
