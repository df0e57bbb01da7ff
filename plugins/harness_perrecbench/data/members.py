"""Makes the members of groups, and the solved questions that precede the real one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from random import Random
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from harness import DataError
from harness.base.hashing import stable_int
from harness.base.seeded_random import drawn
from harness_perrecbench.data import tables
from harness_perrecbench.data.layout import FoundGroup
from harness_perrecbench.data.tables import Asked, Bought
from harness_perrecbench.records import Behaviour, Example, Member, Options, Person, Thing
from harness_perrecbench.retrieval import behaviour_text, top

if TYPE_CHECKING:
    from harness.contracts.dataset import Dataset

T = TypeVar("T")

ROUNDING = 0.01
"""Relative ratings may be rounded by this much."""

EARLIEST = 12
"""The smallest number of behaviours before an example from a user's own history."""

ELSEWHERE = "users with another item in their history where the query should stand"
CONTRADICTED = "users whose relative rating contradicts their history"
FEWER = "users with fewer behaviours before the query than k"
CUT = "users whose history was cut to the newest for their profile"


@dataclass(kw_only=True)
class Members:
    """Makes members from the users of the data.

    State: the people whose profiles are missing, and the numbers of users by note.
    """

    histories: tables.Histories
    raters: Mapping[str, Sequence[tuple[str, float]]]
    things: tables.Things
    profiles: Mapping[str, str]
    options: Options
    people: dict[str, Person] = field(default_factory=dict)
    _notes: Counter[str] = field(default_factory=Counter)

    def query(self, asked: Asked) -> Thing:
        return self.things.of(asked.item, at=asked.spot)

    def member(self, asked: Asked, *, rank: int | None = None, with_profile: bool = True) -> Member:
        """The user at the time of the question, with the true rating."""
        history, query = self.history(asked), self.query(asked)
        shown, weights = self._retrieved(asked, query, before=asked.before, but={asked.item})
        known = history.bought[: asked.before] if self.options.strict else history.bought
        ratings = [one.rating for one in known]
        rating = asked.rating
        at_query = history.bought[asked.before : asked.before + 1]
        if at_query and at_query[0].parent_asin == asked.item:
            rating = at_query[0].rating
        else:
            self._notes[ELSEWHERE] += 1
            if not 1 <= rating <= 5:
                raise asked.spot.bad(rating, f"a rating from 1 to 5 by user '{asked.user}'")
        self._notes[FEWER] += len(shown) < self.options.k
        if asked.relative is not None:
            # Above the average of all ratings, or of those before.
            parts = history.bought, history.bought[: asked.before]
            means = [average([one.rating for one in part]) for part in parts]
            fits = any(abs(rating - mean - asked.relative) <= ROUNDING for mean in means)
            self._notes[CONTRADICTED] += not fits
        wanted = with_profile and self.options.profile == "full"
        profile, profiled = self._profile(asked.user, history, known) if wanted else (None, None)
        raters = self.raters.get(asked.item, ())
        others = [stars for rater, stars in raters if rater != asked.user]
        return Member(
            id=asked.user,
            average=average(ratings),
            common=most_common(ratings),
            shown=shown,
            weights=weights,
            profile=profile,
            profiled=profiled,
            rating=rating,
            rank=rank,
            item_average=average(others) if others else None,
        )

    def history(self, asked: Asked) -> tables.History:
        """The user's history; DataError if it is shorter than the behaviours before the query."""
        history = self.histories.of.get(asked.user)
        if history is None:
            raise asked.spot.bad(asked.user, "a user in the table 'histories'")
        if asked.before > len(history.bought):
            there = f"at most {len(history.bought)}, the behaviours of user '{asked.user}'"
            raise asked.spot.bad(asked.before, there)
        return history

    def own_examples(self, asked: Asked, member: Member, *, seed: int) -> tuple[Example, ...]:
        """Behaviours before the query as examples; profile and averages are those of the query."""
        options, history = self.options, self.history(asked)
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
            one = history.bought[place]
            query = self.things.of(one.parent_asin, at=history.spot)
            # In the published style, the behaviour's own text is searched for.
            published = options.shot_style == "published"
            searched = self.things.behaviour(one, at=history.spot) if published else query
            but = {asked.item, one.parent_asin}
            shown, weights = self._retrieved(asked, searched, before=place, but=but)
            seen = replace(member, shown=shown, weights=weights, rank=None, item_average=None)
            examples.append(solved(query, (replace(seen, rating=one.rating),), options))
        return tuple(examples)

    def add_notes(self, dataset: Dataset) -> None:
        """Add the notes about these members to the data."""
        for note in (ELSEWHERE, CONTRADICTED, FEWER, CUT):
            dataset.note(note, self._notes[note])

    def _retrieved(
        self, asked: Asked, query: Thing | Behaviour, *, before: int, but: Collection[str]
    ) -> tuple[tuple[Behaviour, ...], tuple[float, ...]]:
        """The behaviours retrieved before a place, best first, and their weights.

        A strict task never shows those about the items in `but`.
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

    def _profile(
        self, user: str, history: tables.History, known: Sequence[Bought]
    ) -> tuple[str | None, str | None]:
        """The text of a user's profile, or the id of the person whose profile is missing."""
        if user in self.profiles:
            return self.profiles[user], None
        person = f"{user}/{len(known)}"
        if person not in self.people:
            behaviours = [self.things.behaviour(one, at=history.spot) for one in known]
            fitting = _newest(behaviours, self.options.profile_characters)
            self._notes[CUT] += len(fitting) < len(behaviours)
            self.people[person] = Person(id=person, user=user, history=fitting)
        return None, person


def read_members(dataset: Dataset, options: Options, *, items: Collection[str]) -> Members:
    """A maker of members for questions about these items."""
    histories = dataset.once("histories", tables.read_histories)
    published = options.profile == "full" and not options.strict and dataset.has("profiles")
    return Members(
        histories=histories,
        raters=histories.raters(items),
        things=dataset.once("items", tables.read_things),
        profiles=dataset.once("profiles", tables.read_profiles) if published else {},
        options=options,
    )


def _newest(behaviours: Sequence[Behaviour], characters: int) -> tuple[Behaviour, ...]:
    """The newest behaviours whose texts fit, at least one, oldest first."""
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
    """The most frequent value; of equally frequent ones the first."""
    return Counter(values).most_common(1)[0][0]


G = TypeVar("G", bound=FoundGroup)


def chosen_groups(
    groups: Sequence[G], read_held_out: Callable[[], Iterable[G]], options: Options, *, seed: int
) -> list[list[tuple[G, tuple[int, ...]]]]:
    """Held-out groups as examples for each group, with the places of the users to show.

    They are about other things and other users: ratings of the group's users could give away their
    opinion of the query. Other tasks than pairwise and listwise ones take no such examples.
    """
    if not options.shots or options.ask not in ("pairwise", "listwise"):
        return [[] for _ in groups]
    held = tuple(read_held_out())
    chosen = []
    for group in groups:
        fit = [
            one
            for one in held
            if one.about != group.about
            and one.users.isdisjoint(group.users)
            and len(set(one.ranks)) == len(one.ranks)
        ]
        if len(fit) < options.shots:
            raise DataError(
                "too few held-out groups are suitable as examples",
                where=f"group '{group.id}'",
                found=f"{len(fit)} of {len(held)} about other things, of other users, without ties",
                expected=f"at least {options.shots}, the task's option `shots`",
            )
        rng = Random(stable_int("examples", seed, group.id))
        examples = []
        for one in drawn(rng, fit, options.shots):
            places = range(len(one.ranks))
            shown = drawn(rng, places, 2) if options.ask == "pairwise" else places
            examples.append((one, tuple(shown)))
        chosen.append(examples)
    return chosen


def solved(query: Thing, members: tuple[Member, ...], options: Options) -> Example:
    """A question about members with known ratings or ranks, with the printed answer."""
    ranks = [member.rank or 0 for member in members]
    if options.ask == "pairwise":
        answer = "[User A]" if ranks[0] < ranks[1] else "[User B]"
    elif options.ask == "listwise":
        order = sorted(range(1, len(ranks) + 1), key=lambda user: ranks[user - 1])
        answer = f'{{"predicted_ranking": {ranks if options.shot_style == "published" else order}}}'
    else:
        answer = f'{{"predicted_rating": {members[0].rating:.1f}}}'
    return Example(query=query, members=members, answer=answer)
