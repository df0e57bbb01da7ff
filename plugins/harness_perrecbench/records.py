"""The options of the benchmark and the typed values that pass between its stages."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from harness import Item

Count = Annotated[int, Meta(ge=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]
Ask: TypeAlias = Literal["pointwise", "pairwise", "listwise", "rating"]
Level: TypeAlias = Literal["easy", "medium", "hard"]
Side: TypeAlias = Literal["A", "B"]
Tail: TypeAlias = Literal["now", "plain", "dot", "older"]

MEMBERS: dict[Level, int] = {"easy": 2, "medium": 3, "hard": 4}
"""Level → the number of users in a group."""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a task file; the plugin's README explains more."""

    ask: Annotated[
        Ask, Meta(description="users one by one, in pairs, as a list, or single behaviours")
    ] = "pointwise"
    level: Annotated[Level, Meta(description="2, 3 or 4 users per group")] = "easy"
    split: Annotated[Literal["test", "held_out"], Meta(description="the groups to ask about")] = (
        "test"
    )
    domain: Annotated[str, Meta(description="the domain of the data, for analyses")] = "all"
    behaviours: Annotated[
        AtLeastOne, Meta(description="how many single behaviours are drawn if the data has no list")
    ] = 1000

    k: Annotated[AtLeastOne, Meta(description="behaviours shown of each user")] = 4
    tokens: Annotated[
        Literal["published", "words"],
        Meta(description="how titles become words for the retrieval of behaviours"),
    ] = "published"
    profile: Annotated[
        Literal["full", "no_text", "none"],
        Meta(description="no_text leaves out the user's profile, none averages as well"),
    ] = "full"
    profile_characters: Annotated[
        AtLeastOne, Meta(description="characters of a history that the profiler sees")
    ] = 60_000
    strict: Annotated[bool, Meta(description="show nothing that is later than the query")] = False

    shots: Annotated[Count, Meta(description="solved examples before the question")] = 0
    shot_style: Annotated[
        Literal["corrected", "published"],
        Meta(description="examples as they should be, or as the authors' code prints them"),
    ] = "corrected"
    thought: Annotated[bool, Meta(description="ask for a chain of thought first")] = False
    wording: Annotated[
        Literal["a", "b", "c", "d"], Meta(description="pointwise: one of four wordings")
    ] = "a"
    tail: Annotated[Tail, Meta(description="listwise: one of four endings of the question")] = "now"
    system: Annotated[
        Literal["paper", "authors"],
        Meta(description="pointwise: the system text of the paper, or of the authors' file"),
    ] = "paper"

    tries: Annotated[
        AtLeastOne,
        Meta(description="how often a question is asked at most until its answer can be read"),
    ] = 5
    samples: Annotated[
        AtLeastOne,
        Meta(description="self-consistency: the most common of so many answers, or their median"),
    ] = 1
    repeated_users: Annotated[
        Literal["refused", "passed"],
        Meta(description="whether lists such as [1, 3, 3] count, as in the authors' code"),
    ] = "refused"
    comparing: Annotated[
        Literal["heapsort", "published", "all_pairs"],
        Meta(description="which pairs are compared, and how an order follows from them"),
    ] = "heapsort"


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
    """One user of a group, with the data for questions and scores.

    `shown`, `weights`: the retrieved behaviours, best first, with their retrieval scores; recorded
    data has no scores.
    `profiled`: the id of the `Person` whose profile the stage "profile" writes.
    `rating`, `rank`: the user's true rating of the query, and rank in the group from 1.
    `item_average`: the mean of the other users' ratings of the query.
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
    """A solved question that precedes the real one in a prompt, with its `answer` verbatim."""

    query: Thing
    members: tuple[Member, ...]
    answer: str


class Group(Item, frozen=True, kw_only=True):
    """Item of the stages "compare" and "rank": users who all rated one thing.

    `id` and `user` are the item that was rated, as intervals are over items. `overall_average` is
    the mean rating of the whole data, None if unknown.
    """

    query: Thing
    members: tuple[Member, ...]
    examples: tuple[Example, ...] = ()
    overall_average: float | None = None


class Single(Item, frozen=True, kw_only=True):
    """Item of the stage "rate": one user and one thing.

    `id` is `<item>/<place>` in a group of `of` users, and `<item>/<user>` for a single behaviour.
    """

    query: Thing
    member: Member
    place: int
    of: int
    examples: tuple[Example, ...] = ()
    overall_average: float | None = None


class Person(Item, frozen=True, kw_only=True):
    """Item of the stage "profile": the newest behaviours of a user that fit, oldest first."""

    history: tuple[Behaviour, ...]


class Rated(msgspec.Struct, frozen=True, kw_only=True):
    """Value of the stage "rate": the median of the readable answers."""

    rating: float
    answers: tuple[float, ...]


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """Value of the stage "rank": the most frequent order of the users' numbers from 1."""

    order: tuple[int, ...]
    answers: tuple[tuple[int, ...], ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The answers about two users, given by their numbers from 1; None if unreadable.

    `forth` is the answer with `first` as user A, `back` the answer with `second` as user A.
    """

    first: int
    second: int
    forth: Side | None
    back: Side | None

    @property
    def sides(self) -> list[Side]:
        """The answers that could be read."""
        return [side for side in (self.forth, self.back) if side is not None]

    @property
    def preferred(self) -> int | None:
        """The user that both answers name; None if they disagree or one is missing."""
        if self.forth == "A" and self.back == "B":
            return self.first
        if self.forth == "B" and self.back == "A":
            return self.second
        return None


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Value of the stage "compare": a ranking by comparisons.

    `order` holds the users' numbers from 1, strongest preference first. `ranks` holds the rank of
    each user, in the order of the group; undecided neighbours share a rank.
    """

    order: tuple[int, ...]
    ranks: tuple[int, ...]
    comparisons: tuple[Comparison, ...]


class GroupResult(msgspec.Struct, frozen=True, kw_only=True):
    """Details of a score: the truth and the prediction for one group, or for one behaviour.

    All fields but `order` follow the order of the group's users; ranks are 1 for the strongest
    preference.
    `truth`, `ranks`: the true and the predicted ranks; `ratings`, `predicted`: likewise of ratings.
    `order`: the users' numbers, strongest first, as the authors' script compares them.
    `baselines`, `guesses`: the ranks by each baseline, and the ratings by those that predict them.
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
    """Value of `load`: a task's questions, and the people whose profiles are missing."""

    groups: tuple[Group, ...] = ()
    singles: tuple[Single, ...] = ()
    people: tuple[Person, ...] = ()
