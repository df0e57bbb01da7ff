"""The scores of a run: pure functions of its stored records, so that no model is asked again.

In the formulas 0/0 is 0. Interests that could not be mapped are one category of their own, which
counts in the precision of groundedness alone: never in the oracle, in recall or in specificity. An
interest whose evidence has no verdict is left out of its category's groundedness, one whose
retrieval has none of its specificity, one whose category has none of everything; a category left
with nothing is left out. Where no category is left there is no score. Recall and specificity have
none either where every verified interest lacks a category because asking for it failed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from harness import Metric, Score
from harness_gistbench.counting import (
    EMPTY_ORACLE,
    happened,
    overlap_counts,
    taxonomy_counts,
    user_counts,
)
from harness_gistbench.profiles import chapters, mapping_failures, profile_of, taxonomy_of
from harness_gistbench.records import Counts, Judged, Missing, Options, Profile, Verification
from harness_gistbench.verification import conditions, meets

if TYPE_CHECKING:
    from harness import Records

Number: TypeAlias = float | Missing
NOT_ASKED = "specificity/not_asked"
NOWHERE = 0
"""The id of a category that no taxonomy has."""

COLUMNS = ("ig_f1", "is", "ig_p", "ig_r", "hm", "verified")
SCORED_WITH = ("verification", "specificity", "verified_only")

OWN_ORACLE = (
    "against the categories that this run verified itself; compare several runs, or read an "
    "oracle, for recall of what can be found at all"
)


def _median(what: str, note: str = "") -> Metric:
    return Metric(description=f"{what}; median over users", statistic="median", note=note)


METRICS = {
    "ig_f1": _median("groundedness: harmonic mean of precision and recall", OWN_ORACLE),
    "is": _median("specificity: evidence found again among distractors"),
    "ig_p": _median("precision of groundedness: share of categories that evidence verifies"),
    "ig_r": _median(
        "recall of groundedness: share of the oracle's categories that were found", OWN_ORACLE
    ),
    "hm": _median("harmonic mean of ig_f1 and is", OWN_ORACLE),
    "verified": Metric(
        description="verified interests of a user, in any category or none", range=(0.0, None)
    ),
    "mean_ig_f1": Metric(of="ig_f1", description="mean of ig_f1 over users", note=OWN_ORACLE),
    "mean_is": Metric(of="is", description="mean of is over users"),
    "mean_ig_p": Metric(of="ig_p", description="mean of ig_p over users"),
    "mean_ig_r": Metric(of="ig_r", description="mean of ig_r over users", note=OWN_ORACLE),
}


def score(records: Mapping[str, Records[Any, Any]], options: Options) -> Iterator[Score[Profile]]:
    """One score a user, recall being of the categories that this run verified itself."""
    taxonomy = taxonomy_of(records["taxonomy"])
    failures = mapping_failures(records["taxonomy"])
    for user, chapter in chapters(records):
        profile = profile_of(chapter, taxonomy, failures)
        longest = len(chapter["predict"]) * options.window
        history = f"{longest - options.window + 1}-{longest}"
        blank: Score[Profile] = Score(
            id=user,
            user=user,
            counts=user_counts(chapter, profile, test_set=options.test_set),
            slices={"dataset": options.source, "history": history},
        )
        if isinstance(profile, Missing):
            missing = dict.fromkeys(COLUMNS, profile.cause)
            yield msgspec.structs.replace(blank, missing=missing)
            continue
        verified = verified_categories(profile, options.verification)
        details = msgspec.structs.replace(profile, verified=verified)
        yield scored_against(msgspec.structs.replace(blank, details=details), verified, options)


def scored_against(
    score: Score[Profile], oracle: Collection[int], options: Options
) -> Score[Profile]:
    """The score of a user whose oracle holds these categories, computed again from its details.

    A user who has no profile keeps the score that says why.
    """
    if score.details is None:
        return score
    values, missing = split_missing(scores_of(score.details, options, oracle))
    parts = parts_of(score.details, options)
    gone, read = score.details.unreadable, 1 - score.details.unreadable / score.details.windows
    shares = {name: _ratio(few - gone, every - gone) for name, (few, every) in parts.items()}
    lost = {name: 1 - read * (1 - share) for name, share in shares.items()}
    lost["hm"] = max(lost["ig_p"], lost["is"])
    lost = {name: one for name, one in lost.items() if one > 0 and name in values}
    lowest = lowest_of(score.details, options, oracle)
    if "is" in lost:
        lowest["is"] = min(lowest["is"], (1 - lost["is"]) * values["is"])
        lowest["hm"] = _ratio(2 * lowest["ig_f1"] * lowest["is"], lowest["ig_f1"] + lowest["is"])
    counts = {words: number for words, number in score.counts.items() if words != EMPTY_ORACLE}
    if not oracle and "ig_r" in values:
        counts[EMPTY_ORACLE] = 1
    return msgspec.structs.replace(
        score,
        values=values,
        missing=missing,
        lost=lost or msgspec.UNSET,
        parts={name: one for name, one in parts.items() if name in values},
        worst={name: one for name, one in lowest.items() if name in lost or name in missing},
        counts=counts,
    )


def run_counts(records: Mapping[str, Records[Any, Any]], options: Options) -> dict[str, int]:
    """What happened in the run as a whole: with its distinct interests and its pool."""
    return happened(
        {**taxonomy_counts(records["taxonomy"]), **overlap_counts(records["overlap"], options)}
    )


@dataclass(frozen=True)
class Graded:
    """One category of a user: its interests, and whether each is verified; None is no verdict.

    Interests whose mapping failed stand together as one that is `lost`.
    """

    id: int | None
    lost: bool
    interests: tuple[Judged, ...]
    verdicts: tuple[bool | None, ...]

    @property
    def share(self) -> float | None:
        """The share of verified interests, among those with a verdict; None of a lost one."""
        known = [verdict for verdict in self.verdicts if verdict is not None and not self.lost]
        return sum(known) / len(known) if known else None

    @property
    def verified(self) -> bool:
        """Whether an interest of it is verified."""
        return any(self.verdicts)


def graded(profile: Profile, verification: Verification) -> tuple[Graded, ...]:
    """The categories of a user's interests, in the order in which they first come up."""
    rules = conditions(verification, profile.signals)
    together = defaultdict(list)
    for interest in profile.interests:
        together[interest.category, interest.mapping_failure is not None].append(interest)
    return tuple(
        Graded(
            id=category,
            lost=lost,
            interests=tuple(interests),
            verdicts=tuple(
                None if one.counts is None else meets(one.counts, rules) for one in interests
            ),
        )
        for (category, lost), interests in together.items()
    )


def verified_categories(profile: Profile, verification: Verification) -> tuple[int, ...]:
    """The categories with a verified interest, ascending: what the user gives to an oracle."""
    verified = (one.id for one in graded(profile, verification) if one.verified)
    return tuple(sorted(id for id in verified if id is not None))


def scores_of(
    profile: Profile, options: Options, oracle: Collection[int] | None = None
) -> dict[str, Number]:
    """Every score of a user; recall is of the oracle, the user's own categories where none."""
    categories = graded(profile, options.verification)
    if oracle is None:
        oracle = verified_categories(profile, options.verification)
    precision = ig_precision(categories)
    recall = ig_recall(categories, oracle)
    groundedness = harmonic_mean(precision, recall)
    specificity = mean_specificity(categories, options)
    verified = sum(one.verdicts.count(True) for one in categories if not one.lost)
    return {
        "ig_f1": groundedness,
        "is": specificity,
        "ig_p": precision,
        "ig_r": recall,
        "hm": harmonic_mean(groundedness, specificity),
        "verified": precision if isinstance(precision, Missing) else float(verified),
    }


def split_missing(numbers: Mapping[str, Number]) -> tuple[dict[str, float], dict[str, str]]:
    """The columns that have a number, and those that have none with the cause."""
    values = {name: one for name, one in numbers.items() if not isinstance(one, Missing)}
    causes = {name: one.cause for name, one in numbers.items() if isinstance(one, Missing)}
    return values, causes


def ig_precision(categories: tuple[Graded, ...]) -> Number:
    """The mean share of verified interests over a user's categories, the unmapped one included."""
    shares = _shares(categories)
    if isinstance(shares, Missing):
        return shares
    return _ratio(fsum(shares.values()), len(shares))


def ig_recall(categories: tuple[Graded, ...], oracle: Collection[int]) -> Number:
    """The shares of the categories that the oracle has too, over the size of the oracle."""
    shares = _mapped_shares(categories)
    if isinstance(shares, Missing):
        return shares
    return _ratio(fsum(share for id, share in shares.items() if id in oracle), len(oracle))


def mean_specificity(categories: tuple[Graded, ...], options: Options) -> Number:
    """The mean share of evidence found again, over the mapped categories with a verified interest.

    Missing where an interest that counts was not asked about.
    """
    shares = _mapped_shares(categories)
    if isinstance(shares, Missing):
        return shares
    verified = [one for one in categories if one.verified and one.id is not None]
    asked = [_asked(one, verified_only=options.verified_only) for one in verified]
    counting = [one for interests in asked for one in interests]
    if any(one.backing is None for one in counting):
        return Missing(NOT_ASKED)
    found = [specificity(interests, options) for interests in asked]
    kept = [share for share in found if share is not None]
    if asked and not kept:
        return Missing.commonest(one.retrieval_failure for one in counting)
    return _ratio(fsum(kept), len(kept))


def specificity(interests: tuple[Judged, ...], options: Options) -> float | None:
    """The share of evidence found again in one category; None where failures left nothing.

    An interest that cites nothing adds nothing to the sums, and a ratio of 0 to the ratios.
    """
    known = [one for one in interests if one.correct is not None]
    backing = sum(one.backing or 0 for one in known)
    if not backing:
        return None
    if options.specificity == "mean_of_ratios":
        return fsum(_ratio(one.correct or 0, one.backing or 0) for one in known) / len(known)
    return sum(one.correct or 0 for one in known) / backing


def harmonic_mean(one: Number, other: Number) -> Number:
    """The harmonic mean of two numbers, or why the first that is missing is."""
    if isinstance(one, Missing):
        return one
    if isinstance(other, Missing):
        return other
    return _ratio(2 * one * other, one + other)


def parts_of(profile: Profile, options: Options) -> dict[str, tuple[int, int]]:
    """How many windows and interests failures took from each score, and of how many.

    An interest is lost to groundedness without a verdict on its evidence or its category, and to
    specificity also without one on its retrieval, if that counts.
    """
    categories = graded(profile, options.verification)
    unknown = {one.name for one in profile.interests if one.counts is None or one.mapping_failure}
    counting = [
        interest
        for category in categories
        if category.verified and category.id is not None
        for interest in _asked(category, verified_only=options.verified_only)
    ]
    unfound = {one.name for one in counting if one.correct is None}
    windows = profile.unreadable
    grounded = len(unknown) + windows, len(profile.interests) + windows
    tested = unknown | {one.name for one in counting}
    specific = len(unknown | unfound) + windows, len(tested) + windows
    parts = dict.fromkeys(("ig_f1", "ig_p", "ig_r", "verified"), grounded)
    return parts | {"is": specific}


def lowest_of(profile: Profile, options: Options, oracle: Collection[int]) -> dict[str, float]:
    """The scores with every failure at its worst, unreadable windows included.

    Verified interests are a number and no share: of an unreadable window it counts none anyway.
    """
    numbers, _ = split_missing(scores_of(at_worst(profile), options, oracle))
    read = 1 - profile.unreadable / profile.windows
    return {name: one if name == "verified" else read * one for name, one in numbers.items()}


def at_worst(profile: Profile) -> Profile:
    """The profile with each failure as the worst that it could hide: unverified, nothing found.

    Interests whose mapping failed are one unverified category that no oracle has. Of an interest
    that was not asked about all cited objects count as backing, which can only be too many.
    """
    return msgspec.structs.replace(
        profile, interests=tuple(_at_worst(interest) for interest in profile.interests)
    )


def _at_worst(interest: Judged) -> Judged:
    lost = interest.mapping_failure is not None
    return msgspec.structs.replace(
        interest,
        category=NOWHERE if lost else interest.category,
        mapping_failure=None,
        counts=Counts() if lost or interest.counts is None else interest.counts,
        correct=interest.correct or 0,
        backing=interest.cited if interest.backing is None else interest.backing,
    )


def _mapped_shares(categories: tuple[Graded, ...]) -> dict[int | None, float] | Missing:
    """The shares of mapped categories; Missing too where all that is verified is lost."""
    mapped = tuple(one for one in categories if one.lost or one.id is not None)
    verified = [one for one in mapped if one.verified]
    if verified and all(one.lost for one in verified):
        asked = (interest for one in verified for interest in _asked(one, verified_only=True))
        return Missing.commonest(one.mapping_failure for one in asked)
    everything = _shares(categories)
    return everything if isinstance(everything, Missing) else _shares(mapped)


def _shares(categories: tuple[Graded, ...]) -> dict[int | None, float] | Missing:
    """The share of each category that has one; Missing where failures left none of them any."""
    kept = {one.id: share for one in categories if (share := one.share) is not None}
    if categories and not kept:
        interests = (interest for one in categories for interest in one.interests)
        causes = (one.mapping_failure or one.evidence_failure for one in interests)
        return Missing.commonest(causes)
    return kept


def _asked(category: Graded, *, verified_only: bool) -> tuple[Judged, ...]:
    """The interests of a category that count in its specificity."""
    pairs = zip(category.interests, category.verdicts, strict=True)
    return tuple(one for one, verdict in pairs if verdict or not verified_only)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
