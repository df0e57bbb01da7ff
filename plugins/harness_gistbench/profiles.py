"""From one user's records of all stages to the profile that scores and analyses are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from harness import Done
from harness_gistbench.interests import claimed, folded
from harness_gistbench.records import Counts, Evidence, Interest, Judged, Missing, Profile, Signal
from harness_gistbench.verification import count

if TYPE_CHECKING:
    from harness import Record, Records

Chapter: TypeAlias = dict[str, list["Record[Any, Any]"]]
"""The records of one user by stage; a stage that has none of the user's is empty."""

TOO_FEW_DISTRACTORS = "specificity/too_few_distractors"


class WindowHead(msgspec.Struct, frozen=True):
    """What scores need of a window: the signals that the dataset has."""

    signals: tuple[Signal, ...]


class TestSetHead(msgspec.Struct, frozen=True):
    """What scores need of a test set: how large it is, and which places back the interest."""

    number: int
    objects: tuple[msgspec.Raw, ...]
    backing: tuple[int, ...]


def chapters(records: Mapping[str, Records[Any, Any]]) -> Iterator[tuple[str, Chapter]]:
    """Each user with the user's records of the stages that scores are made of, as a stream.

    All stages give their users in one order, so one user's records are all that is held.
    """
    windows = records["predict"].with_items(WindowHead)
    streams = {
        "verify": records["verify"].by_user(),
        "specificity": records["specificity"].with_items(TestSetHead).by_user(),
    }
    heads = {stage: next(stream, None) for stage, stream in streams.items()}
    for user, own in windows.by_user():
        chapter = {"predict": own}
        for stage, head in heads.items():
            chapter[stage] = []
            if head is not None and head[0] == user:
                chapter[stage] = head[1]
                heads[stage] = next(streams[stage], None)
        yield user, chapter
    left = [stage for stage, head in heads.items() if head is not None]
    if left:
        raise ValueError(f"{left} hold users that 'predict' does not have, or in another order")


def taxonomy_of(records: Records[Any, Any]) -> dict[str, int]:
    """The category's id of each interest of the run, by its folded name."""
    return {
        folded(name): category
        for _, mapped in records.values()
        for name, category in mapped.categories.items()
    }


def mapping_failures(records: Records[Any, Any]) -> dict[str, str]:
    """Why nobody could say the category of some interests, by their folded names."""
    return {
        name: f"taxonomy/{record.outcome.cause}"
        for record in records
        if not isinstance(record.outcome, Done)
        for name in record.item.interests
    }


def profile_of(
    chapter: Chapter, taxonomy: Mapping[str, int], failures: Mapping[str, str]
) -> Profile | Missing:
    """What a user's score is made of; Missing where no window's answer could be read.

    `taxonomy` holds the categories of interests by folded name, `failures` why some have none.
    """
    windows = chapter["predict"]
    causes = [one.outcome.cause for one in windows if not isinstance(one.outcome, Done)]
    if len(causes) == len(windows):
        return Missing.commonest(f"predict/{cause}" for cause in causes)
    claims = by_number(chapter["verify"])
    test_sets = {record.item.number: record for record in chapter["specificity"]}
    return Profile(
        signals=windows[0].item.signals,
        windows=len(windows),
        unreadable=len(causes),
        interests=tuple(
            Judged(
                name=interest.name,
                cited=len(interest.evidence),
                category=taxonomy.get(folded(interest.name)),
                mapping_failure=failures.get(folded(interest.name)),
                **weighed(interest, claims[interest.number]),
                **retrieved(interest, test_sets.get(interest.number)),
            )
            for interest in claimed(chapter["verify"])
        ),
    )


def weighed(interest: Interest, claims: list[Record[Any, Any]]) -> dict[str, Any]:
    """The counts of the evidence that the judge kept, or why there are none.

    An interest without evidence needs no judge. One part of many without a verdict leaves the
    whole interest without one.
    """
    if not interest.evidence:
        return {"counts": Counts()}
    kept = kept_evidence(claims)
    if isinstance(kept, Missing):
        return {"evidence_failure": kept.cause}
    return {"counts": count(kept)}


def kept_evidence(claims: Iterable[Record[Any, Any]]) -> list[Evidence] | Missing:
    """The evidence that the judge kept of an interest; Missing where a part has no verdict."""
    kept: list[Evidence] = []
    for record in claims:
        if not isinstance(record.outcome, Done):
            return Missing(f"verify/{record.outcome.cause}")
        kept.extend(record.item.evidence[position] for position in record.outcome.value.positions)
    return kept


def retrieved(interest: Interest, test_set: Record[Any, Any] | None) -> dict[str, Any]:
    """How many backing objects the judge found and of how many, or why that is not known.

    A test set with too few distractors to be asked about is as unknown as one the judge failed on.
    """
    if not interest.evidence:
        return {"correct": 0, "backing": 0}
    if test_set is None:
        return {}
    backing = test_set.item.backing
    if not isinstance(test_set.outcome, Done):
        cause = f"specificity/{test_set.outcome.cause}"
        return {"backing": len(backing), "retrieval_failure": cause}
    if not test_set.outcome.value.asked:
        return {"backing": len(backing), "retrieval_failure": TOO_FEW_DISTRACTORS}
    named = dict.fromkeys(test_set.outcome.value.positions)
    counted = list(named)[: len(backing)]
    return {"correct": len(set(counted) & set(backing)), "backing": len(backing)}


def by_number(claims: Iterable[Record[Any, Any]]) -> dict[int, list[Record[Any, Any]]]:
    """The parts of each interest's evidence, by the interest's number."""
    parts = defaultdict(list)
    for record in claims:
        parts[record.item.number].append(record)
    return parts
