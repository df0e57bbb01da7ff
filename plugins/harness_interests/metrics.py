"""Scores as pure functions of stored records: a changed threshold needs no new model calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness import FAILURES, Metric, Score
from harness_interests.records import History, Interest, Options, claim_id, evidence

if TYPE_CHECKING:
    from harness import Record, Records

METRICS = {
    "support": Metric(description="share of the cited items that the judge kept as evidence"),
    "grounded": Metric(description="share of the interests with at least min_support kept items"),
    "coverage": Metric(description="share of the liked items that grounded interests explain"),
}


class NotMeasured(Exception):
    """A person has no score, for the cause in the argument."""


def score(records: Mapping[str, Records[Any, Any]], options: Options) -> Iterator[Score]:
    """One score per person, with the cause of each missing value."""
    outcomes = {record.id: record.outcome for record in records["support"]}
    for record in records["name"]:
        try:
            interests = value_of("name", record.outcome)
            kept = kept_items(record, interests, outcomes)
        except NotMeasured as reason:
            missing = dict.fromkeys(METRICS, str(reason))
            yield Score(id=record.id, user=record.user, missing=missing)
        else:
            values, missing = shares(record.item, interests, kept, options.min_support)
            yield Score(id=record.id, user=record.user, values=values, missing=missing)


def kept_items(
    record: Record[Any, Any], interests: tuple[Interest, ...], outcomes: Mapping[str, Any]
) -> list[tuple[int, ...]]:
    """For each interest of a person, the numbers that the judge kept."""
    return [
        value_of("support", outcomes.get(claim_id(record.user, position))).kept
        if evidence(record.item, interest)
        else ()
        for position, interest in enumerate(interests, start=1)
    ]


def shares(
    history: History,
    interests: tuple[Interest, ...],
    kept: list[tuple[int, ...]],
    min_support: int,
) -> tuple[dict[str, float], dict[str, str]]:
    """A person's metrics, and the cause of each metric that would divide by 0."""
    cited = sum(len(interest.cited) for interest in interests)
    grounded = [numbers for numbers in kept if len(numbers) >= min_support]
    explained = {number for numbers in grounded for number in numbers}
    counts = {
        "support": (sum(map(len, kept)), cited, "nothing_cited"),
        "grounded": (len(grounded), len(interests), "nothing_named"),
        "coverage": (len(explained), len(history.liked()), "nothing_liked"),
    }
    values = {name: part / whole for name, (part, whole, _) in counts.items() if whole}
    missing = {name: cause for name, (_, whole, cause) in counts.items() if not whole}
    return values, missing


def value_of(stage: str, outcome: Any) -> Any:
    """The value of an outcome; NotMeasured with the stage and the cause if it has none."""
    if outcome is None:
        raise NotMeasured(f"{stage}/not_done")
    if isinstance(outcome, FAILURES):
        raise NotMeasured(f"{stage}/{outcome.cause}")
    return outcome.value
