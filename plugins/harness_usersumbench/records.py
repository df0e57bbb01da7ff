"""The options of the benchmark and the typed values that pass between its stages."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from harness import Item

AtLeastOne = Annotated[int, Meta(ge=1)]
AtLeastTwo = Annotated[int, Meta(ge=2)]
"""A past and a future need one activity each."""

Method: TypeAlias = Literal["single_step", "hierarchy_critique", "raw_timeline", "none", "other"]
Task: TypeAlias = Literal["t1", "t2", "t3", "t4"]
TASKS: tuple[Task, ...] = ("t1", "t2", "t3", "t4")
OPTIONS_A_QUESTION = 5


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a task file; the plugin's README explains more."""

    source: Annotated[
        Literal["movielens", "yelp", "amazon"], Meta(description="the layout of the data")
    ] = "movielens"
    method: Annotated[
        Method,
        Meta(
            description="how a user is summarised; raw_timeline and none show the predictor the "
            "activities or nothing, other shows another user's single-step summary"
        ),
    ] = "single_step"
    query: Annotated[str, Meta(description="what the summary is for, as prompts say it")]
    thing: Annotated[str, Meta(description="an activity's object in the questions, as `movie`")]
    category: Annotated[str, Meta(description="an object's category in them, as `genre`")]
    verb: Annotated[str, Meta(description="what a user does in a line of activity, as `watched`")]
    min_activities: Annotated[AtLeastTwo, Meta(description="users with fewer are left out")] = 50
    max_activities: Annotated[AtLeastTwo, Meta(description="the most recent ones that count")] = 200
    last: Annotated[
        Literal["source_order", "any_tied"],
        Meta(description="which of several last activities at one time is the future"),
    ] = "source_order"
    max_words: Annotated[AtLeastOne, Meta(description="the limit of a summary in words")] = 200
    segmenting: Annotated[
        Literal["months", "count"], Meta(description="segments by merged months, or of equal count")
    ] = "months"
    min_segment_activities: Annotated[
        AtLeastOne, Meta(description="activities that a segment holds at least")
    ] = 20
    segments: Annotated[
        AtLeastOne, Meta(description="segments of a past that months do not divide")
    ] = 4
    max_iterations: Annotated[
        AtLeastOne, Meta(description="how often a segment's summary is regenerated at most")
    ] = 3
    recent: Annotated[
        AtLeastOne, Meta(description="the most recent activities that t2 and t4 show")
    ] = 20
    distractors: Annotated[
        Literal["uniform", "popularity"],
        Meta(description="wrong options by chance, or the nearest in popularity"),
    ] = "uniform"
    runs: Annotated[AtLeastOne, Meta(description="how often each question is asked")] = 3
    threshold: Annotated[
        Annotated[int, Meta(ge=1, le=4)],
        Meta(description="right answers of four that make a summary good"),
    ] = 3
    autoeval: Annotated[bool, Meta(description="let a judge rate coherence and relevance")] = False
    extractor: Annotated[
        str | None,
        Meta(description="a function `module:function` that finds the entities of a summary"),
    ] = None


class Activity(msgspec.Struct, frozen=True, gc=False):
    """What a user did: the time in seconds since 1970, and an object's name and categories."""

    time: int
    name: str
    categories: tuple[str, ...]


class Drawn(msgspec.Struct, frozen=True):
    """The five options of a question, the right one first, with how often the data has each."""

    options: tuple[str, ...]
    counts: tuple[int, ...]


class Person(msgspec.Struct, frozen=True):
    """A user of the run: the past, oldest first, the future, and the questions about it."""

    id: str
    past: tuple[Activity, ...]
    future: Activity
    activity: Drawn
    category: Drawn


class Past(Item, frozen=True, kw_only=True):
    """Item of the stage "summarise": a user's past."""

    activities: tuple[Activity, ...]


class Segment(Item, frozen=True, kw_only=True):
    """Item of the stage "segment": one segment of a user's past, the `number`th `of` all.

    `by` says what divides the past: months, or an equal count.
    """

    number: int
    of: int
    by: Literal["months", "count"]
    activities: tuple[Activity, ...]


class Check(Item, frozen=True, kw_only=True):
    """Item of the stage "verify": what could not be read of one check of a segment's summary."""

    flagged: bool
    unread: tuple[str, ...]
    unjudged: int


class Segments(Item, frozen=True, kw_only=True):
    """Item of the stage "combine": the refined summaries of a user, with their time ranges."""

    ranges: tuple[str, ...]
    summaries: tuple[str, ...]


class Question(Item, frozen=True, kw_only=True):
    """Item of the stage "predict": a question about a user's future, asked in one run.

    `history` is the number of past activities. `summary` is None where the method shows none, and
    `shown` are the activities in the prompt, where a record has them alone. `right` and `popular`
    are positions in `options`: the right answer, and the option that the data has most often.
    `words` are those of the summary.
    """

    task: Task
    run: int
    history: int
    summary: str | None
    words: int | None
    shown: tuple[Activity, ...]
    options: tuple[str, ...]
    right: int
    popular: int


class Rated(Item, frozen=True, kw_only=True):
    """Item of the stage "rate": a summary for the judge."""

    summary: str


class Summary(msgspec.Struct, frozen=True):
    """A summary, which may be empty."""

    text: str


def count_words(text: str) -> int:
    """The words between white space in a whole answer, its headings included."""
    return len(text.split())


class Pair(msgspec.Struct, frozen=True):
    """A question about a summary with its answer, and the verifier's judgement, None if it gave
    none. `reference` is the answer of the activities where the two do not agree."""

    question: str
    answer: str
    consistent: bool | None = None
    reference: str | None = None


class Round(msgspec.Struct, frozen=True):
    """One check of a segment's summary, and the summary that was checked.

    `fits_query` is None if the verifier's answer could not be read; `unread` names the checks whose
    answer could not be read.
    """

    summary: str
    fits_query: bool | None
    entities: tuple[str, ...] = ()
    pairs: tuple[Pair, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def flagged(self) -> bool:
        """Whether the check asks for another summary."""
        return self.fits_query is False or any(one.consistent is False for one in self.pairs)

    @property
    def read(self) -> bool:
        """Whether the verifier's answers could be read, with a judgement of each pair."""
        return not self.unread and all(one.consistent is not None for one in self.pairs)


class Refined(msgspec.Struct, frozen=True):
    """A segment's summary after the last check, with all checks in their order."""

    text: str
    rounds: tuple[Round, ...]

    @property
    def flagged(self) -> bool:
        """Whether any check asked for another summary."""
        return any(one.flagged for one in self.rounds)

    @property
    def outcome(self) -> Literal["consistent at once", "fixed", "left", "undecided"]:
        """What the last check says; undecided if it flags nothing, but could not be read."""
        last = self.rounds[-1]
        if last.flagged:
            return "left"
        if not last.read:
            return "undecided"
        return "fixed" if self.flagged else "consistent at once"


class Ratings(msgspec.Struct, frozen=True):
    """The judge's marks of a summary, from 1 to 5."""

    coherence: int
    relevance: int


class UserResult(msgspec.Struct, frozen=True):
    """Details of a score: what a user's summary predicted.

    `right` holds for each run whether each of t1 to t4 was answered right, None where no answer
    could be read. `words` are those of the summary, None where the method shows none.
    """

    right: tuple[tuple[bool | None, ...], ...] = ()
    words: int | None = None
