"""Users as questions show them, and the solved questions that stand before the real one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from random import Random
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from harness import DataError
from harness.base.hashing import stable_int
from harness.base.seeded_random import drawn
from harness_perrecbench.data.layout import FoundGroup
from harness_perrecbench.data.tables import (
    Asked,
    Bought,
    Histories,
    History,
    Things,
    read_histories,
    read_profiles,
    read_things,
)
from harness_perrecbench.records import Behaviour, Example, Member, Options, Person, Thing
from harness_perrecbench.retrieval import behaviour_text, top

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset

T = TypeVar("T")

EARLIEST = 12
"""An example from a user's own history has at least so many behaviours before it."""


@dataclass(kw_only=True)
class Members:
    """Makes members of the users that the data asks about.

    State: the people whose profiles are still to be made, and what is to be noted.
    """

    histories: Histories
    raters: Mapping[str, Sequence[tuple[str, float]]]
    things: Things
    profiles: Mapping[str, str]
    options: Options
    people: dict[str, Person] = field(default_factory=dict)
    _cut: int = 0
    _elsewhere: int = 0

    def query(self, asked: Asked) -> Thing:
        """The thing that the user is asked about."""
        return self.things.of(asked.item, at=asked.spot)

    def member(self, asked: Asked, *, rank: int | None = None, with_profile: bool = True) -> Member:
        """The user before the thing, with what is true."""
        history, query = self.history(asked), self.query(asked)
        shown, weights = self._retrieved(asked, query, before=asked.before, but={asked.item})
        known = history.bought[: asked.before] if self.options.strict else history.bought
        ratings = [one.rating for one in known]
        wanted = with_profile and self.options.profile == "full"
        profile, profiled = self._profile(asked.user, history, known) if wanted else (None, None)
        return Member(
            id=asked.user,
            average=average(ratings),
            common=most_common(ratings),
            shown=shown,
            weights=weights,
            profile=profile,
            profiled=profiled,
            rating=self._rating(asked, history.bought),
            rank=rank,
            item_average=average_of_others(self.raters.get(asked.item, ()), asked.user),
        )

    def history(self, asked: Asked) -> History:
        """The user's history, which has at least the behaviours before the query."""
        history = self.histories.of.get(asked.user)
        if history is None:
            raise asked.spot.bad(asked.user, "a user that the table 'histories' holds")
        if asked.before > len(history.bought):
            there = f"at most {len(history.bought)}, the behaviours of user '{asked.user}'"
            raise asked.spot.bad(asked.before, there)
        return history

    def earlier(
        self, asked: Asked, place: int
    ) -> tuple[Thing, tuple[Behaviour, ...], tuple[float, ...]]:
        """The thing at an earlier place of the user's history, and what is retrieved for it.

        As published it is searched for as the behaviour that it is, not as a question shows it.
        """
        history = self.history(asked)
        item = history.bought[place].parent_asin
        thing = self.things.of(item, at=history.spot)
        behaviour = self.things.behaviour(history.bought[place], at=history.spot)
        query = behaviour if self.options.shot_style == "published" else thing
        return thing, *self._retrieved(asked, query, before=place, but={asked.item, item})

    def tell(self, dataset: Dataset) -> None:
        """Notes what people should know of the members that were made."""
        notes = {
            "users with another item in their history where the query should stand": (
                self._elsewhere
            ),
            "users whose history was cut to the newest for their profile": self._cut,
        }
        for fact, number in notes.items():
            if number:
                dataset.note(fact, number)

    def _retrieved(
        self, asked: Asked, query: Thing | Behaviour, *, before: int, but: Collection[str]
    ) -> tuple[tuple[Behaviour, ...], tuple[float, ...]]:
        """The behaviours before a place that are shown for a query, best first, and their weights.

        Where the task is strict, those of the items in `but` are never shown.
        """
        history = self.history(asked)
        bought = history.bought[:before]
        if self.options.strict:
            bought = [one for one in bought if one.parent_asin not in but]
        if not bought:
            raise asked.spot.bad(before, "a behaviour before the query")
        corpus = [self.things.behaviour(one, at=history.spot) for one in bought]
        tokens = "words" if self.options.strict else self.options.tokens
        return top(corpus, query, k=self.options.k, tokens=tokens)

    def _rating(self, asked: Asked, bought: Sequence[Bought]) -> float:
        """What the user really rated the query: as the history has it, if it stands there."""
        for at_query in bought[asked.before : asked.before + 1]:
            if at_query.parent_asin == asked.item:
                return at_query.rating
        self._elsewhere += 1
        if not 1 <= asked.rating <= 5:
            raise asked.spot.bad(asked.rating, f"a rating from 1 to 5 by user '{asked.user}'")
        return asked.rating

    def _profile(
        self, user: str, history: History, known: Sequence[Bought]
    ) -> tuple[str | None, str | None]:
        """The text of a user's profile, or the id of whom one is to be made."""
        if user in self.profiles:
            return self.profiles[user], None
        person = f"{user}/{len(known)}"
        if person not in self.people:
            behaviours = [self.things.behaviour(one, at=history.spot) for one in known]
            fitting = _newest(behaviours, self.options.profile_characters)
            self._cut += len(fitting) < len(behaviours)
            self.people[person] = Person(id=person, user=user, history=fitting)
        return None, person


def read_members(dataset: Dataset, options: Options, *, items: Collection[str]) -> Members:
    """A maker of those who are asked about these items."""
    histories = dataset.once("histories", read_histories)
    published = options.profile == "full" and not options.strict and dataset.has("profiles")
    return Members(
        histories=histories,
        raters=histories.raters(items),
        things=dataset.once("items", read_things),
        profiles=dataset.once("profiles", read_profiles) if published else {},
        options=options,
    )


def _newest(behaviours: Sequence[Behaviour], characters: int) -> tuple[Behaviour, ...]:
    """The newest behaviours whose texts fit, oldest first; at least one."""
    left = characters
    for number, behaviour in enumerate(reversed(behaviours)):
        left -= len(behaviour_text(behaviour))
        if left < 0:
            return tuple(behaviours[-max(number, 1) :])
    return tuple(behaviours)


def average(ratings: Sequence[float]) -> float:
    """The mean of at least one rating."""
    return fsum(ratings) / len(ratings)


def most_common(values: Iterable[T]) -> T:
    """The value that comes most often; of several that do, the one that came first."""
    return Counter(values).most_common(1)[0][0]


def average_of_others(ratings: Iterable[tuple[str, float]], user: str) -> float | None:
    """The mean of what others than the user gave, from pairs of user and rating; None for none."""
    others = [rating for rater, rating in ratings if rater != user]
    return average(others) if others else None


G = TypeVar("G", bound=FoundGroup)


def come_from_groups(options: Options) -> bool:
    """Whether the task's examples are held-out groups."""
    return options.shots > 0 and options.ask in ("pairwise", "listwise")


def show_profiles(options: Options) -> bool:
    """Whether users of examples have a profile where the task has: not in the published pairs."""
    return not (options.ask == "pairwise" and options.shot_style == "published")


def chosen_groups(
    group: FoundGroup, held: Sequence[G], options: Options, *, seed: int
) -> list[tuple[G, tuple[int, ...]]]:
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


def _places(group: FoundGroup, options: Options, rng: Random) -> tuple[int, ...]:
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
