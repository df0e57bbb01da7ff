"""Solved questions that stand before the real one."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec.structs import replace

from harness import DataError
from harness.chance import drawn
from harness.hashing import stable_int
from harness_perrecbench.records import Example, Member, Options, Thing

if TYPE_CHECKING:
    from harness_perrecbench.data.members import Members
    from harness_perrecbench.data.tables import Asked

EARLIEST = 12
"""An example from a user's own history has at least so many behaviours before it."""


class Labelled(Protocol):
    """A group: its id, what it is about, its users, and their true ranks where there are any."""

    @property
    def id(self) -> str: ...

    @property
    def about(self) -> str: ...

    @property
    def users(self) -> frozenset[str]: ...

    @property
    def ranks(self) -> tuple[int, ...]: ...


L = TypeVar("L", bound=Labelled)


def come_from_groups(options: Options) -> bool:
    """Whether the task's examples are held-out groups."""
    return options.shots > 0 and options.ask in ("pairwise", "listwise")


def show_profiles(options: Options) -> bool:
    """Whether users of examples have a profile where the task has: not in the published pairs."""
    return not (options.ask == "pairwise" and options.shot_style == "published")


def chosen_groups(
    group: Labelled, held: Sequence[L], options: Options, *, seed: int
) -> list[tuple[L, tuple[int, ...]]]:
    """Held-out groups as examples of a group, each with the places of the users that it shows.

    They are about something else and of other users: what else these rated could show what they
    think of the query.
    """
    if not come_from_groups(options):
        return []
    fit = [
        one
        for one in held
        if one.about != group.about
        and one.users.isdisjoint(group.users)
        and len(set(one.ranks)) == len(one.ranks)
    ]
    if len(fit) < options.shots:
        raise DataError(
            "there are too few held-out groups to take examples from",
            where=f"group '{group.id}'",
            found=f"{len(fit)} of {len(held)} about something else, of other users, without ties",
            expected=f"at least {options.shots}, the task's option `shots`",
        )
    rng = Random(stable_int("examples", seed, group.id))
    return [(one, _places(one, options, rng)) for one in drawn(rng, fit, options.shots)]


def own_history(
    members: Members, asked: Asked, member: Member, *, seed: int
) -> tuple[Example, ...]:
    """Behaviours before the query as examples, each with what was retrieved from those before it.

    Profile and averages stay the user's before the real query.
    """
    options, history = members.options, members.history(asked)
    places = [
        place
        for place in range(EARLIEST, asked.before)
        if not (options.strict and history.bought[place].parent_asin == asked.item)
    ]
    if len(places) < options.shots:
        raise asked.spot.bad(
            asked.before,
            f"at least {EARLIEST + options.shots} behaviours of user '{asked.user}' before the "
            f"query, as the task's option `shots` is {options.shots}",
        )
    rng = Random(stable_int("examples", seed, asked.item, asked.user))
    examples = []
    for place in drawn(rng, places, options.shots):
        query, shown, weights = members.earlier(asked, place)
        rating = history.bought[place].rating
        user = replace(
            member, shown=shown, weights=weights, rating=rating, rank=None, item_average=None
        )
        examples.append(solved(query, (user,), options))
    return tuple(examples)


def solved(query: Thing, members: tuple[Member, ...], options: Options) -> Example:
    """A question with its answer, of members whose ratings or ranks are known."""
    return Example(query=query, members=members, answer=_answer(members, options))


def _places(group: Labelled, options: Options, rng: Random) -> tuple[int, ...]:
    """Which users an example shows: two of them where pairs are asked about, else all."""
    places = range(len(group.ranks))
    return tuple(drawn(rng, places, 2) if options.ask == "pairwise" else places)


def _answer(members: Sequence[Member], options: Options) -> str:
    """The answer as it is printed; in the published style a ranking has the rank of each user."""
    if options.ask in ("pointwise", "rating"):
        return f'{{"predicted_rating": {members[0].rating:.1f}}}'
    ranks = [member.rank or 0 for member in members]
    if options.ask == "pairwise":
        return "[User A]" if ranks[0] < ranks[1] else "[User B]"
    order = sorted(range(1, len(ranks) + 1), key=lambda user: ranks[user - 1])
    return f'{{"predicted_ranking": {ranks if options.shot_style == "published" else order}}}'
