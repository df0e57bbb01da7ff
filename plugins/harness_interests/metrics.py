"""Scores as pure functions of stored records: a changed threshold needs no new model calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from harness import FAILURES, Metric, Score
from harness_interests.records import History, Interest, Options, claim_id, evidence

if TYPE_CHECKING:
    from harness import Record, Records

METRICS = {
    "support": Metric(description="share of the cited items that the judge kept as evidence"),
    "grounded": Metric(description="share of the interests with at least min_support kept items"),
    "coverage": Metric(description="share of the liked items that grounded interests explain"),
}


def score(records: Mapping[str, Records[Any, Any]], options: Options) -> Iterator[Score]:
    """One score per person, with the cause of each missing value and the share without verdict."""
    outcomes = {record.id: record.outcome for record in records["support"]}
    for record in records["name"]:
        if isinstance(record.outcome, FAILURES):
            missing = dict.fromkeys(METRICS, f"name/{record.outcome.cause}")
            yield Score(id=record.id, user=record.user, missing=missing)
        else:
            verdicts = verdicts_of(record, record.outcome.value, outcomes)
            yield person_score(record, verdicts, options.min_support)


def verdicts_of(
    record: Record[Any, Any], interests: tuple[Interest, ...], outcomes: Mapping[str, Any]
) -> list[tuple[Interest, tuple[int, ...] | str | None]]:
    """Each interest with the numbers that the judge kept, or why there is no verdict on it.

    None stands for an interest without evidence, which needs no judge.
    """
    return [
        (
            interest,
            kept_or_cause(outcomes.get(claim_id(record.user, position)))
            if evidence(record.item, interest)
            else None,
        )
        for position, interest in enumerate(interests, start=1)
    ]


def person_score(
    record: Record[Any, Any],
    verdicts: list[tuple[Interest, tuple[int, ...] | str | None]],
    min_support: int,
) -> Score:
    """A person's score over the interests without a failed verdict, and the items that these leave.

    At worst, the judge would have kept nothing of the others.
    """
    judged = [(one, kept or ()) for one, kept in verdicts if not isinstance(kept, str)]
    causes = [cause for _, cause in verdicts if isinstance(cause, str)]
    unknown = [one for one, kept in verdicts if isinstance(kept, str)]
    unexplained = {number for one in unknown for number in evidence(record.item, one)}
    if causes and not any(isinstance(kept, tuple) for _, kept in verdicts):
        missing = dict.fromkeys(METRICS, causes[0])
        return Score(id=record.id, user=record.user, missing=missing)
    values, missing = shares(record.item, judged, min_support, unknown=unexplained)
    parts = dict.fromkeys(values, (len(causes), len(verdicts)))
    score = Score(id=record.id, user=record.user, values=values, missing=missing, parts=parts)
    if not causes:
        return score
    everything = [(one, kept if isinstance(kept, tuple) else ()) for one, kept in verdicts]
    return replace(
        score,
        worst=shares(record.item, everything, min_support)[0],
    )


def shares(
    history: History,
    judged: list[tuple[Interest, tuple[int, ...]]],
    min_support: int,
    *,
    unknown: Collection[int] = (),
) -> tuple[dict[str, float], dict[str, str]]:
    """A person's metrics, and the cause of each metric that would divide by 0.

    Liked items in `unknown` count only if an interest explains them.
    """
    cited = sum(len(interest.cited) for interest, _ in judged)
    grounded = [kept for _, kept in judged if len(kept) >= min_support]
    explained = {number for kept in grounded for number in kept}
    liked = set(history.liked()) - set(unknown)
    counts = {
        "support": (sum(len(kept) for _, kept in judged), cited, "nothing_cited"),
        "grounded": (len(grounded), len(judged), "nothing_named"),
        "coverage": (len(explained), len(liked | explained), "nothing_liked"),
    }
    values = {name: part / whole for name, (part, whole, _) in counts.items() if whole}
    missing = {name: cause for name, (_, whole, cause) in counts.items() if not whole}
    return values, missing


def kept_or_cause(outcome: Any) -> tuple[int, ...] | str:
    """The numbers that a claim's verdict keeps, or the stage and the cause if there is none."""
    if outcome is None:
        return "support/not_done"
    if isinstance(outcome, FAILURES):
        return f"support/{outcome.cause}"
    kept: tuple[int, ...] = outcome.value.kept
    return kept
