"""What happened on the way to the scores, by user and in the run as a whole, in plain words.

Every count is told under its own words; what did not happen is not told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harness import Done
from harness_gistbench.profiles import Chapter, Missing
from harness_gistbench.records import Options, Profile

if TYPE_CHECKING:
    from harness import Record

EMPTY_ORACLE = "users without a category in the oracle"

PREDICTED = {
    "surplus": "interests beyond the most that are read",
    "malformed": "entries of answers that are no interest with citations",
    "fabricated": "citations of lines that are not in the window",
    "overused": "objects cited for more than two interests of a window",
    "truncated": "answers cut at the token limit and read all the same",
}
KEPT = {
    "cut": "texts cut for the evidence judge",
    "unknown": "labels of the evidence judge that do not exist",
    "repeated": "labels that the evidence judge repeated",
}
FOUND = {
    "unknown": "labels of the retrieval judge that do not exist",
    "repeated": "labels that the retrieval judge repeated",
    "surplus": "labels of the retrieval judge beyond the number asked for",
}
OVERLAPPING = {
    "unknown": "labels of the overlap judge that do not exist",
    "repeated": "labels that the overlap judge repeated",
}


def user_counts(chapter: Chapter, profile: Profile | Missing, *, test_set: int) -> dict[str, int]:
    """What happened with one user, whose test sets should hold so many objects."""
    counts = Counter(
        summed(chapter["predict"], PREDICTED)
        | summed(chapter["verify"], KEPT)
        | summed(chapter["specificity"], FOUND)
    )
    counts["windows"] = len(chapter["predict"])
    counts["windows that could not be read"] = failed(chapter["predict"])
    if isinstance(profile, Missing):
        counts["users without a readable window"] = 1
        return told(counts)
    counts["test sets with fewer objects than wanted"] = sum(
        len(record.item.objects) < test_set for record in chapter["specificity"]
    )
    interests = profile.interests
    counts["interests"] = len(interests)
    counts["users without an interest in a readable answer"] = not interests
    counts["interests that cite nothing that exists"] = sum(one.cited == 0 for one in interests)
    counts["interests that could not be mapped"] = sum(one.category is None for one in interests)
    counts["interests without a verdict on their evidence"] = sum(
        one.evidence_failure is not None for one in interests
    )
    counts["interests without a verdict on their retrieval"] = sum(
        one.retrieval_failure is not None for one in interests
    )
    return told(counts)


def taxonomy_counts(batches: Iterable[Record[Any, Any]]) -> dict[str, int]:
    """How many distinct interests there are, known from before, and without a category."""
    counts: Counter[str] = Counter()
    for record in batches:
        known = len(record.outcome.value.categories) if isinstance(record.outcome, Done) else 0
        remembered = record.outcome.value.remembered if isinstance(record.outcome, Done) else 0
        counts["distinct interests"] += len(record.item.interests)
        counts["distinct interests mapped before this run"] += remembered
        counts["distinct interests without a category"] += len(record.item.interests) - known
    return counts


def overlap_counts(questions: Iterable[Record[Any, Any]], options: Options) -> dict[str, int]:
    """What the overlap filter had to compare with, and where it has no verdict."""
    compared = {
        "users": "pool objects whose recorded interests were compared",
        "interests": "distinct recorded interests of pool objects that were compared",
        "texts": "pool objects whose texts were compared",
    }
    counts: Counter[str] = Counter()
    keys: set[str] = set()
    for record in questions:
        keys.update(record.item.keys)
        counts["overlap questions without a verdict"] += failed([record])
        counts.update(summed([record], OVERLAPPING))
    counts[compared[options.overlap]] = len(keys)
    return counts


def summed(records: Iterable[Record[Any, Any]], fields: Mapping[str, str]) -> dict[str, int]:
    """The sums of some fields over the values that there are, under their words."""
    counts = dict.fromkeys(fields.values(), 0)
    for record in records:
        if isinstance(record.outcome, Done):
            for field, words in fields.items():
                counts[words] += getattr(record.outcome.value, field)
    return counts


def failed(records: Iterable[Record[Any, Any]]) -> int:
    """How many records hold a failure."""
    return sum(not isinstance(record.outcome, Done) for record in records)


def told(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts without those of what did not happen."""
    return {words: int(number) for words, number in counts.items() if number}
