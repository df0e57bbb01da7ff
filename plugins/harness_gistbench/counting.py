"""What happened on the way to the scores, by user and in the run as a whole, in plain words.

Every count has its own words; counts of zero are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harness import Done
from harness_gistbench.profiles import Chapter
from harness_gistbench.records import Missing, Options, Profile

if TYPE_CHECKING:
    from harness import Record

EMPTY_ORACLE = "users with no verified category to find"

TOGETHER = "evidence questions about several objects at once"
"""The paper has each object judged by itself."""

MOST_WORDS = 5
"""Of an interest's name, as the prompt asks."""

PREDICTED = {
    "surplus": "interests beyond the most that are read",
    "malformed": "entries of answers that are no interest with citations",
    "fabricated": "citations of lines that are not in the window",
    "overused": "objects cited for more than two interests of a window",
    "passed_over": "lists of interests beside the one that is read",
    "truncated": "answers cut at the token limit and read all the same",
}


def label_words(judge: str) -> dict[str, str]:
    """What happened to labels that a judge gave."""
    return {
        "unknown": f"labels of the {judge} judge that do not exist",
        "repeated": f"labels that the {judge} judge repeated",
    }


KEPT = {"cut": "texts cut for the evidence judge", **label_words("evidence")}
FOUND = {
    **label_words("retrieval"),
    "surplus": "labels of the retrieval judge beyond the number asked for",
}
OVERLAPPING = label_words("overlap")
NO_VERDICT = {
    "category": "mapping_failure",
    "evidence": "evidence_failure",
    "retrieval": "retrieval_failure",
}
POOL = {"objects": "objects of the pool", "recorded": "objects of the pool that an interest cites"}
"""Told even where they are zero: how much there was to filter by is part of the method."""


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
        return happened(counts)
    counts["test sets with fewer objects than wanted"] = sum(
        len(record.item.objects) < test_set for record in chapter["specificity"]
    )
    counts["retrieval answers with fewer labels than asked for"] = sum(
        one.outcome.value.asked and len(set(one.outcome.value.positions)) < len(one.item.backing)
        for one in chapter["specificity"]
        if isinstance(one.outcome, Done)
    )
    interests = profile.interests
    counts[TOGETHER] = sum(len(record.item.evidence) > 1 for record in chapter["verify"])
    counts["interests"] = len(interests)
    counts["users without an interest in a readable answer"] = not interests
    counts[f"interests of more than {MOST_WORDS} words"] = sum(
        len(one.name.split()) > MOST_WORDS for one in interests
    )
    counts["interests that cite nothing that exists"] = sum(one.cited == 0 for one in interests)
    counts["interests that could not be mapped"] = sum(
        one.category is None and one.mapping_failure is None for one in interests
    )
    for what, failure in NO_VERDICT.items():
        counts[f"interests without a verdict on their {what}"] = sum(
            getattr(one, failure) is not None for one in interests
        )
    return happened(counts)


def taxonomy_counts(batches: Iterable[Record[Any, Any]]) -> dict[str, int]:
    """How many distinct interests there are, known from before, and without a category.

    Those without a question are counted apart from those that fit no category.
    """
    counts: Counter[str] = Counter()
    for record in batches:
        counts["distinct interests"] += len(record.item.interests)
        if isinstance(record.outcome, Done):
            mapped = record.outcome.value
            counts["distinct interests mapped before this run"] += mapped.remembered
            counts["distinct interests without a category"] += len(mapped.unmapped)
        else:
            undecided = "distinct interests without a verdict on their category"
            counts[undecided] += len(record.item.interests)
    return counts


def overlap_counts(questions: Iterable[Record[Any, Any]], options: Options) -> dict[str, int]:
    """What there was to filter the pool by, what was compared, and where there is no verdict."""
    texts = options.overlap == "texts"
    offered = "objects of the pool" if texts else "distinct interests that cite the pool,"
    counts: Counter[str] = Counter()
    keys: set[str] = set()
    for record in questions:
        if record.item.pool is not None:
            counts.update({POOL[of]: getattr(record.item.pool, of) for of in POOL})
        keys.update(record.item.keys)
        counts["overlap questions without a verdict"] += failed([record])
        counts.update(summed([record], OVERLAPPING))
    counts[f"{offered} offered to the overlap judge"] = len(keys)
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


def happened(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts above zero, and the pool in any case."""
    always = POOL.values()
    return {words: int(n) for words, n in counts.items() if n or words in always}
