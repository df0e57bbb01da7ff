"""The options of the benchmark and the typed values that pass between its stages."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from harness import Item

Count = Annotated[int, msgspec.Meta(ge=0)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
Ask: TypeAlias = Literal["pointwise", "pairwise", "listwise", "rating"]
Level: TypeAlias = Literal["easy", "medium", "hard"]
Side: TypeAlias = Literal["A", "B"]

MEMBERS: dict[Level, int] = {"easy": 2, "medium": 3, "hard": 4}
"""How many users a group of each level has."""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a task file may set under `options`; the README of the plugin explains each."""

    ask: Ask = "pointwise"
    level: Level = "easy"
    split: Literal["test", "held_out"] = "test"
    domain: str = "all"
    behaviours: AtLeastOne = 1000

    k: AtLeastOne = 4
    tokens: Literal["published", "words"] = "published"
    profile: Literal["full", "no_text", "none"] = "full"
    profile_characters: AtLeastOne = 60_000
    strict: bool = False

    shots: Count = 0
    shot_style: Literal["corrected", "published"] = "corrected"
    thought: bool = False
    wording: Literal["a", "b", "c", "d"] = "a"
    tail: Literal["now", "older"] = "now"

    tries: AtLeastOne = 5
    samples: AtLeastOne = 1
    repeated_users: Literal["refused", "passed"] = "refused"
    comparing: Literal["heapsort", "published", "all_pairs"] = "heapsort"


class Thing(msgspec.Struct, frozen=True, kw_only=True):
    """An item as a prompt names it."""

    title: str
    author: str | None = None


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """One rating of a user's history."""

    title: str
    author: str | None = None
    rating: float


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One user of a group, as questions show them and as scores judge them.

    `shown` are the behaviours that were retrieved for the query, best first, with their retrieval
    `weights`, none where the data comes retrieved. `average` and `common` are the user's average
    and most common rating, None where the prompt is to say nothing of them and nothing needs them.
    `profiled` is the id of the `Person` whose profile is still to be made, `profile` its text once
    there is one. `rating` is what the user really rated the query, `rank` the user's true place in
    the group, 1 for the strongest preference, `item_average` what the others rated the query; each
    is None where the data does not tell.
    """

    id: str
    average: float
    common: float
    shown: tuple[Behaviour, ...]
    weights: tuple[float, ...] = ()
    profile: str | None = None
    profiled: str | None = None
    rating: float | None = None
    rank: int | None = None
    item_average: float | None = None


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """A solved question that stands before the real one; `answer` is printed as it is."""

    query: Thing
    members: tuple[Member, ...]
    answer: str


class Group(Item, frozen=True, kw_only=True):
    """Item of the stages "compare" and "rank": users who all rated one thing.

    `id` and `user` are the item that was rated: groups of several tasks share items, and intervals
    are drawn over items. `overall_average` is the mean rating of the whole data, where it is known.
    """

    query: Thing
    members: tuple[Member, ...]
    examples: tuple[Example, ...] = ()
    overall_average: float | None = None


class Single(Item, frozen=True, kw_only=True):
    """Item of the stage "rate": one user and one thing; `place` is the user's number from 1.

    `id` is `<item>/<place>` in a group of `of` users, `<item>/<user>` for a behaviour that stands
    alone, with `of` 1.
    """

    query: Thing
    member: Member
    place: int
    of: int
    examples: tuple[Example, ...] = ()
    overall_average: float | None = None


class Person(Item, frozen=True, kw_only=True):
    """Item of the stage "profile": a user's history, oldest first, cut to the newest that fit.

    `id` is `<user>/<how many behaviours before the cut>`.
    """

    history: tuple[Behaviour, ...]


class Rated(msgspec.Struct, frozen=True, kw_only=True):
    """What was predicted: the median of the answers that could be read."""

    rating: float
    answers: tuple[float, ...]


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """The users' numbers from 1, strongest preference first: the answer that came most often."""

    order: tuple[int, ...]
    answers: tuple[tuple[int, ...], ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two users by their numbers from 1, and who was named in either order of showing them.

    `forth` is the answer with `first` shown as A, `back` with `second` shown as A; each is None
    where no answer could be read.
    """

    first: int
    second: int
    forth: Side | None
    back: Side | None

    @property
    def preferred(self) -> int | None:
        """The user whom both answers name; None where they disagree or one is missing."""
        if self.forth == "A" and self.back == "B":
            return self.first
        if self.forth == "B" and self.back == "A":
            return self.second
        return None


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A ranking made of comparisons.

    `order` are the users' numbers from 1 as the sort left them, strongest first; `ranks` the rank
    of each user, in the order of the group, equal where nothing decided between neighbours.
    """

    order: tuple[int, ...]
    ranks: tuple[int, ...]
    comparisons: tuple[Comparison, ...]


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Details of a score: what was true and what was said of one group, or of one behaviour.

    Everything is in the order of the group's users. `truth` and `ranks` are ranks with 1 for the
    strongest preference; `order` are the users' numbers, strongest first, as the authors' script
    compares them. `ratings` are true ratings, `predicted` predicted ones. `baselines` are the ranks
    by each baseline, `guesses` the ratings by those that predict some.
    """

    item: str
    averages: tuple[float, ...]
    truth: tuple[int, ...] | None = None
    ranks: tuple[int, ...] | None = None
    order: tuple[int, ...] | None = None
    ratings: tuple[float, ...] | None = None
    predicted: tuple[float, ...] | None = None
    baselines: dict[str, tuple[int, ...]] = {}
    guesses: dict[str, tuple[float, ...]] = {}


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """What `load` gives: a task's questions, but for the profiles that are still to be made."""

    groups: tuple[Group, ...] = ()
    singles: tuple[Single, ...] = ()
    people: tuple[Person, ...] = ()
