"""The options of the benchmark and the typed values that pass between its stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta

from harness import Item

Signal: TypeAlias = Literal[
    "explicit_positive", "implicit_positive", "implicit_negative", "explicit_negative"
]
SIGNALS: tuple[Signal, ...] = get_args(Signal)

Count = Annotated[int, Meta(ge=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]


class Verification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much evidence verifies an interest: one positive condition, and both negative limits.

    The third positive condition is a mixture: `mixed_explicit_positive` of the one and
    `mixed_implicit_positive` of the other.
    """

    min_explicit_positive: Annotated[
        AtLeastOne,
        Meta(description="so many cited objects with an explicit positive signal suffice"),
    ] = 2
    min_implicit_positive: Annotated[
        AtLeastOne,
        Meta(description="so many cited objects with an implicit positive signal suffice"),
    ] = 3
    mixed_explicit_positive: Annotated[
        AtLeastOne,
        Meta(description="the explicit ones that suffice together with mixed_implicit_positive"),
    ] = 1
    mixed_implicit_positive: Annotated[
        AtLeastOne,
        Meta(description="the implicit ones that suffice together with mixed_explicit_positive"),
    ] = 2
    max_implicit_negative: Annotated[
        Count, Meta(description="with more implicit negative signals an interest is not verified")
    ] = 3
    max_explicit_negative: Annotated[
        Count, Meta(description="with more explicit negative signals an interest is not verified")
    ] = 2


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a task file may set under `options`; the README of the plugin explains more."""

    source: Annotated[
        Literal["plain", "kuairec", "mind", "amazon", "goodreads", "yelp"],
        Meta(description="the layout of the data"),
    ] = "plain"
    thing: Annotated[str, Meta(description="the word for an object in prompts")] = "item"
    things: Annotated[str, Meta(description="its plural")] = "items"
    min_engagements: Annotated[
        AtLeastOne, Meta(description="users with fewer engagements are left out")
    ] = 1
    untimed_history: Annotated[
        bool, Meta(description="MIND: also the clicks before the impressions, as the oldest")
    ] = False

    window: Annotated[AtLeastOne, Meta(description="engagements per prompt")] = 100
    object_ids: Annotated[
        bool, Meta(description="objects are cited by their own ids, not by running numbers")
    ] = False
    truncated: Annotated[
        Literal["read", "drop"],
        Meta(description="an answer cut at the token limit is read as far as it goes, or lost"),
    ] = "read"
    max_interests: Annotated[
        AtLeastOne, Meta(description="interests read from an answer; further ones are only counted")
    ] = 200

    verification: Verification = Verification()
    evidence_a_question: Annotated[
        AtLeastOne, Meta(description="cited objects per question; 1 asks about each separately")
    ] = 50
    text_limit: Annotated[
        AtLeastOne | None,
        Meta(description="characters of a text that the evidence judge sees; null: all"),
    ] = None

    taxonomy: Annotated[
        str | tuple[str, ...] | None,
        Meta(description="your own CSV of categories, or a list of names; null: the bundled one"),
    ] = None
    interests_a_question: Annotated[
        AtLeastOne, Meta(description="interests that are mapped to categories at once")
    ] = 25

    pool: Annotated[
        AtLeastOne, Meta(description="objects of the dataset that distractors are drawn from")
    ] = 1000
    test_set: Annotated[
        AtLeastOne,
        Meta(description="objects among which the evidence of an interest is found again"),
    ] = 50
    max_backing: Annotated[
        AtLeastOne, Meta(description="how many of them are evidence, at most")
    ] = 5
    min_distractors: Annotated[
        Count, Meta(description="with fewer distractors an interest is not tested")
    ] = 20
    overlap: Annotated[
        Literal["users", "interests", "texts"],
        Meta(description="how objects that fit the user as well are found, to be no distractors"),
    ] = "users"
    overlap_text_limit: Annotated[
        AtLeastOne, Meta(description="characters of a text where overlap is found by texts")
    ] = 200
    ask_all: Annotated[
        bool, Meta(description="test every interest with a citation, as gist-thresholds may need")
    ] = False

    specificity: Annotated[
        Literal["ratio_of_sums", "mean_of_ratios"],
        Meta(description="how a category's specificity follows from its interests"),
    ] = "ratio_of_sums"
    verified_only: Annotated[
        bool, Meta(description="only verified interests count in a category's specificity")
    ] = False


class Line(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One engagement as the candidate sees it; written as a list, since there are millions."""

    number: int
    object: str
    signal: Signal
    text: str


class Window(Item, frozen=True, kw_only=True):
    """Item of the stage "predict": part of one user's history, most recent first.

    Numbers run over the whole history. `signals` are those that the dataset has at all.
    """

    number: int
    of: int
    signals: tuple[Signal, ...]
    lines: tuple[Line, ...]


class Cited(msgspec.Struct, frozen=True, gc=False):
    """An interest as the candidate named it in one window, with the lines it cites, each once."""

    name: str
    numbers: tuple[int, ...]


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """What one window's answer holds.

    `truncated` was cut at the token limit and read all the same; `surplus` interests went beyond
    the most that are read; `malformed` entries have no name or no list of citations; `fabricated`
    citations are of no line of the window; `overused` objects back more than two interests;
    `passed_over` lists of interests stood in the answer besides the one that is read.
    """

    interests: tuple[Cited, ...]
    truncated: bool = False
    surplus: int = 0
    malformed: int = 0
    fabricated: int = 0
    overused: int = 0
    passed_over: int = 0


class Evidence(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One distinct object that an interest cites, with every signal that it had from the user."""

    object: str
    text: str
    signals: tuple[Signal, ...]


class Interest(msgspec.Struct, frozen=True, kw_only=True):
    """One interest of a user: same names of all windows merged, citations united.

    `number` counts a user's interests from 1, in the order in which they were first named.
    """

    number: int
    name: str
    evidence: tuple[Evidence, ...]


class Claim(Item, frozen=True, kw_only=True):
    """Item of the stage "verify": an interest with cited objects, one part of them where many."""

    interest: str
    number: int
    part: int
    evidence: tuple[Evidence, ...]


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The positions of the objects that the judge found relevant, and what had to be ignored.

    `cut` texts were longer than the judge was shown.
    """

    positions: tuple[int, ...]
    cut: int = 0
    unknown: int = 0
    repeated: int = 0


class Category(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One category of the taxonomy."""

    id: int
    name: str


class Batch(Item, frozen=True, kw_only=True):
    """Item of the stage "taxonomy": distinct interests that are mapped together."""

    interests: tuple[str, ...]
    categories: tuple[Category, ...]


class Mapped(msgspec.Struct, frozen=True, kw_only=True):
    """The category's id of each interest that could be mapped; `remembered` of them were known."""

    categories: dict[str, int]
    unmapped: tuple[str, ...] = ()
    remembered: int = 0


class PoolObject(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One object that may be a distractor."""

    object: str
    text: str


class PoolSize(msgspec.Struct, frozen=True, kw_only=True):
    """How many objects the pool holds, and how many of them have a recorded interest."""

    objects: int
    recorded: int


class Neighbours(Item, frozen=True, kw_only=True):
    """Item of the stage "overlap": interests, and what of the pool may overlap with them.

    `keys` are recorded interests, which are shown themselves, or objects of the pool, whose texts
    `options` holds. One item of the stage has the size of the pool and nothing to ask about.
    """

    interests: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    pool: PoolSize | None = None


class Overlapping(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of the options that overlap, and what had to be ignored."""

    keys: tuple[str, ...]
    unknown: int = 0
    repeated: int = 0


class TestSet(Item, frozen=True, kw_only=True):
    """Item of the stage "specificity": an interest, and objects of which `backing` back it."""

    interest: str
    number: int
    objects: tuple[PoolObject, ...]
    backing: tuple[int, ...]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The positions that the judge named, the first as many as back the interest.

    Not `asked` is a test set with too few distractors to measure anything.
    """

    positions: tuple[int, ...]
    asked: bool = True
    unknown: int = 0
    repeated: int = 0
    surplus: int = 0


class Counts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Distinct objects by signal, among those that the judge kept."""

    explicit_positive: int = 0
    implicit_positive: int = 0
    implicit_negative: int = 0
    explicit_negative: int = 0


class Judged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One interest with everything that scores are made of.

    `counts` is None where the evidence has no verdict, `correct` where the retrieval has none,
    `backing` too where it was not asked; `evidence_failure` and `retrieval_failure` say why. An
    interest that cites nothing was not asked about and has zeros. `category` is None where the
    interest could not be mapped, and where asking for it failed, as `mapping_failure` says.
    """

    name: str
    cited: int
    category: int | None = None
    mapping_failure: str | None = None
    counts: Counts | None = None
    evidence_failure: str | None = None
    correct: int | None = None
    backing: int | None = None
    retrieval_failure: str | None = None


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The details of a user's score: what analyses and scores over several runs are made from.

    `verified` are the categories verified under the thresholds that the score was made with.
    """

    signals: tuple[Signal, ...]
    windows: int
    unreadable: int
    interests: tuple[Judged, ...]
    verified: tuple[int, ...] = ()


class Missing(msgspec.Struct, frozen=True):
    """Why there is no score or no profile: the stage and the cause of its failure."""

    cause: str

    @classmethod
    def commonest(cls, causes: Iterable[str | None]) -> Missing:
        """The most frequent of the causes there are; of equally frequent ones the first by name."""
        counts = Counter(cause for cause in causes if cause is not None)
        return cls(min(counts, key=lambda cause: (-counts[cause], cause)))
