"""The scores of a run: pure functions of its stored records, so that no model is asked again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from harness import Metric, Score
from harness_gistbench.counting import (
    EMPTY_ORACLE,
    overlap_counts,
    taxonomy_counts,
    told,
    user_counts,
)
from harness_gistbench.formulas import at_worst, scores_of, split_missing, verified_categories
from harness_gistbench.profiles import (
    Missing,
    chapters,
    mapping_failures,
    profile_of,
    taxonomy_of,
)
from harness_gistbench.records import Options, Profile

if TYPE_CHECKING:
    from harness import Records

COLUMNS = ("ig_f1", "is", "ig_p", "ig_r", "hm")
SCORED_WITH = ("verification", "specificity", "verified_only")

OWN_ORACLE = (
    "against the categories that this run verified itself; compare several runs, or read an "
    "oracle, for recall of what can be found at all"
)

METRICS = {
    "ig_f1": Metric(
        description="groundedness: harmonic mean of precision and recall",
        statistic="median",
        note=OWN_ORACLE,
    ),
    "is": Metric(
        description="specificity: evidence found again among distractors", statistic="median"
    ),
    "ig_p": Metric(
        description="precision of groundedness: share of categories that evidence verifies",
        statistic="median",
    ),
    "ig_r": Metric(
        description="recall of groundedness: share of the oracle's categories that were found",
        statistic="median",
        note=OWN_ORACLE,
    ),
    "hm": Metric(description="harmonic mean of ig_f1 and is", statistic="median", note=OWN_ORACLE),
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
        counts = user_counts(chapter, profile, test_set=options.test_set)
        if isinstance(profile, Missing):
            missing = dict.fromkeys(COLUMNS, profile.cause)
            yield Score(id=user, user=user, missing=missing, counts=counts)
            continue
        verified = verified_categories(profile, options.verification)
        details = msgspec.structs.replace(profile, verified=verified)
        blank = Score(id=user, user=user, counts=counts, details=details)
        yield scored_against(blank, verified, options)


def scored_against(
    score: Score[Profile], oracle: Collection[int], options: Options
) -> Score[Profile]:
    """The score of a user whose oracle holds these categories, made anew from its details.

    A user who has no profile keeps the score that says why.
    """
    if score.details is None:
        return score
    values, missing = split_missing(scores_of(score.details, options, oracle))
    lowest, _ = split_missing(scores_of(at_worst(score.details), options, oracle))
    counts = {words: number for words, number in score.counts.items() if words != EMPTY_ORACLE}
    if not oracle and "ig_r" in values:
        counts[EMPTY_ORACLE] = 1
    return msgspec.structs.replace(
        score,
        values=values,
        missing=missing,
        worst={name: one for name, one in lowest.items() if one != values.get(name)},
        counts=counts,
    )


def run_counts(records: Mapping[str, Records[Any, Any]], options: Options) -> dict[str, int]:
    """What happened in the run as a whole: with its distinct interests and its pool."""
    return told(
        {
            **taxonomy_counts(records["taxonomy"]),
            **overlap_counts(records["overlap"], options),
        }
    )
