"""Scores as pure functions of stored records; a unit is a user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import comb
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from harness import FAILURES, Done, Item, Metric, Score
from harness_usersumbench.records import (
    OPTIONS_A_QUESTION,
    TASKS,
    Options,
    Ratings,
    Refined,
    Task,
    UserResult,
    count_words,
)

if TYPE_CHECKING:
    from harness import Record, Records

    Stored = Mapping[str, Records[Any, Any]]

Answers = Sequence[bool | None]
"""Whether each of t1 to t4 was answered right; None where no answer could be read."""

PER_MILLE = 1000
"""IDM is given in units of 0.1%, as the paper prints it."""

HISTORY_STEP = 50
FEW_WORDS = 10
"""A summary of fewer says next to nothing."""

OURS = (
    "the paper does not print its limit of words, so that this cannot be compared with its numbers"
)

MARKS = (1.0, 5.0)
"""The range of the judge's marks."""

METRICS: dict[str, Metric] = {
    "qm": Metric(
        description="share of users with at least `threshold` of their four questions answered "
        "right from the summary"
    ),
    "idm": Metric(
        description="share of the questions answered right, by words of the summary, in 0.1%",
        range=(0.0, None),
        note=OURS,
    ),
    "ifm": Metric(description="share of summaries of at most `max_words` words", note=OURS),
    "t1": Metric(description="share of next activities predicted from the summary"),
    "t2": Metric(description="the same from the summary and the most recent activities"),
    "t3": Metric(description="share of the next activities' categories predicted from the summary"),
    "t4": Metric(description="the same from the summary and the most recent activities"),
    "unreadable": Metric(
        description="share of questions without a readable answer",
        worst=None,
        higher_is_better=False,
        note="such an answer is left out of the values, and counted as wrong in the second ones",
    ),
    "popular": Metric(
        description="qm of always choosing the option that the data has most often", baseline="qm"
    ),
    "random": Metric(description="qm that chance gives on average", baseline="qm"),
    "popular_activity": Metric(
        description="t1 and t2 of always choosing the most popular option", baseline=True
    ),
    "popular_category": Metric(
        description="t3 and t4 of always choosing the most popular option", baseline=True
    ),
    "coherence": Metric(
        description="the judge's mark for coherence, 1 to 5", worst=1.0, range=MARKS
    ),
    "relevance": Metric(
        description="the judge's mark for relevance, 1 to 5", worst=1.0, range=MARKS
    ),
    "autoeval": Metric(description="the mean of coherence and relevance", worst=1.0, range=MARKS),
}
PREDICTED = ("qm", "idm", *TASKS, "unreadable", "ifm")
RATED = (*Ratings.__struct_fields__, "autoeval")
"""The columns that need a summary or answers of the predictor, and those that need a judge."""


class Asked(Item, frozen=True, kw_only=True):
    """What scores need to know of a question."""

    task: Task
    run: int
    history: int
    words: int | None
    right: int
    popular: int


class RunValues(NamedTuple):
    """The mean QM and IDM of one run over the users that have them, None where nobody has."""

    qm: float | None
    idm: float | None


def quality(answers: Answers, threshold: int) -> float | None:
    """Q_s: 1 if at least so many of the answers are right, 0 if not, None if unread ones decide."""
    right = sum(one is True for one in answers)
    unread = sum(one is None for one in answers)
    if right >= threshold:
        return 1.0
    return 0.0 if right + unread < threshold else None


def density(answers: Answers, words: int) -> float | None:
    """The share of readable answers that are right, by word of the summary and in 0.1%.

    0 for a summary without words; None if no answer can be read.
    """
    if words == 0:
        return 0.0
    read = [one for one in answers if one is not None]
    return PER_MILLE * fmean(read) / words if read else None


def of_chance(threshold: int) -> float:
    """The Q_s that four answers by chance have on average."""
    luck, asked = 1 / OPTIONS_A_QUESTION, len(TASKS)
    some = range(threshold, asked + 1)
    return sum(comb(asked, right) * luck**right * (1 - luck) ** (asked - right) for right in some)


def run_values(results: Iterable[UserResult], threshold: int) -> tuple[RunValues, ...]:
    """The QM and IDM of each run, whose spread is the spread over runs."""
    qualities: dict[int, list[float | None]] = {}
    densities: dict[int, list[float | None]] = {}
    for result in results:
        for run, answers in enumerate(result.right):
            qualities.setdefault(run, []).append(quality(answers, threshold))
            idm = None if result.words is None else density(answers, result.words)
            densities.setdefault(run, []).append(idm)
    return tuple(RunValues(_mean(qualities[run]), _mean(densities[run])) for run in qualities)


def score(records: Stored, options: Options) -> Iterator[Score[UserResult]]:
    """One score per user; a user whose summary failed has that stage's cause."""
    marks = {record.user: record.outcome for record in records.get("rate", ())}
    pasts = _pasts(records)
    for user, asked in records["predict"].with_items(Asked).by_user():
        own = _Past(asked[0].item.history)
        past = pasts.pop(user, own)._replace(history=own.history)
        yield _user_score(user, asked, options, slices=past.slices, marks=marks.get(user))
    columns = (*PREDICTED, *(RATED if "rate" in records else ()))
    for user, past in pasts.items():
        yield Score(
            id=user,
            user=user,
            missing=dict.fromkeys(columns, past.failure or "predict/not_done"),
            details=UserResult(),
            slices=past.slices,
        )


def counts(records: Stored, options: Options) -> dict[str, int]:
    """What happened to summaries and segments in the run, without what is 0."""
    found: Counter[str] = Counter()
    for words in _lengths(records):
        found["empty summaries"] += words == 0
        found["summaries of fewer than ten words"] += words < FEW_WORDS
    for _, segment in records["segment"].values() if "segment" in records else ():
        found.update(_events(segment))
    return {what: int(number) for what, number in found.items() if number}


def notes(records: Stored, options: Options) -> Iterator[str]:
    """How many checks could not be read, and how many summaries are too short to be one."""
    checks = [isinstance(one.outcome, Done) for one in records.get("verify", ())]
    if unread := checks.count(False):
        yield (
            f"{unread:,} of the verifier's {len(checks):,} checks of summaries could not be read "
            "in full"
        )
    lengths = list(_lengths(records))
    if short := sum(words < FEW_WORDS for words in lengths):
        yield (
            f"{short:,} of {len(lengths):,} summaries have fewer than ten words: the fewer, the "
            "higher is IDM"
        )


def _lengths(records: Stored) -> Iterator[int]:
    """The words of each summary."""
    for stage in ("summarise", "combine"):
        for _, summary in records[stage].values() if stage in records else ():
            yield count_words(summary.text)


def _events(segment: Refined) -> Counter[str]:
    """What happened to a segment's summary in its checks."""
    rounds = segment.rounds
    pairs = [pair for one in rounds for pair in one.pairs]
    unread = Counter(f"unreadable checks: {what}" for one in rounds for what in one.unread)
    return unread + Counter(
        {
            "segments": 1,
            "checks of segments": len(rounds),
            "segments flagged": segment.flagged,
            "segments flagged and fixed": segment.outcome == "fixed",
            "segments flagged and left": segment.outcome == "left",
            "segments undecided": segment.outcome == "undecided",
            "checks that found the query missed": sum(one.fits_query is False for one in rounds),
            "checks that found no entity": sum(
                one.fits_query is not False and not one.entities and "entities" not in one.unread
                for one in rounds
            ),
            "question-answer pairs": len(pairs),
            "pairs found inconsistent": sum(one.consistent is False for one in pairs),
            "pairs without a judgement": sum(one.consistent is None for one in pairs),
        }
    )


class _Past(NamedTuple):
    """A user's past: the number of activities, what divides them, and why it has no summary."""

    history: int
    by: str | None = None
    failure: str | None = None

    @property
    def slices(self) -> dict[str, str]:
        low = self.history // HISTORY_STEP * HISTORY_STEP
        length = {"history": f"{low}-{low + HISTORY_STEP - 1}"}
        return length if self.by is None else {**length, "segments": self.by}


def _pasts(records: Stored) -> dict[str, _Past]:
    """The pasts that were summarised, at once or by segments."""
    found = {
        one.user: _Past(len(one.item.activities), failure=_first_cause([one], "summarise"))
        for one in records.get("summarise", ())
    }
    combined = {one.user: _first_cause([one], "combine") for one in records.get("combine", ())}
    for user, segments in records["segment"].by_user() if "segment" in records else ():
        ordered = sorted(segments, key=lambda one: int(one.item.number))
        found[user] = _Past(
            history=sum(len(one.item.activities) for one in ordered),
            by=ordered[0].item.by,
            failure=_first_cause(ordered, "segment") or combined.get(user),
        )
    return found


def _user_score(
    user: str,
    records: Sequence[Record[Any, Any]],
    options: Options,
    *,
    slices: dict[str, str],
    marks: Any,
) -> Score[UserResult]:
    asked = {(one.item.run, one.item.task): one for one in records}
    runs = [[asked[run, task] for task in TASKS] for run in sorted({run for run, _ in asked})]
    right = tuple(
        tuple(
            bool(one.outcome.value == one.item.right) if isinstance(one.outcome, Done) else None
            for one in run
        )
        for run in runs
    )
    popular = [[one.item.popular == one.item.right for one in run] for run in runs]
    words = records[0].item.words
    columns = _columns(right, words, options)
    values, missing = _marks(marks)
    lost, made_of = {}, {}
    for name, parts in columns.items():
        read = [one for one in parts if one is not None]
        if read:
            values[name] = fmean(read)
            lost[name] = 1 - len(read) / len(parts)
            made_of[name] = len(parts) - len(read), len(parts)
        else:
            place = TASKS.index(name) if name in TASKS else None
            failed = records if place is None else [run[place] for run in runs]
            missing[name] = _first_cause(failed, "predict") or ""
    worst = {}
    values["unreadable"] = fmean(one is None for run in right for one in run)
    if "idm" in values:
        lost["idm"] = values["unreadable"]
        as_wrong = _columns([[one is True for one in run] for run in right], words, options)
        worst["idm"] = fmean(one or 0.0 for one in as_wrong["idm"])
    if words is not None:
        values["ifm"] = float(words <= options.max_words)
    values |= {
        "popular": fmean(quality(run, options.threshold) or 0.0 for run in popular),
        "random": of_chance(options.threshold),
        "popular_activity": fmean(one for run in popular for one in run[:2]),
        "popular_category": fmean(one for run in popular for one in run[2:]),
    }
    return Score(
        id=user,
        user=user,
        values=values,
        missing=missing,
        lost={name: share for name, share in lost.items() if share} or msgspec.UNSET,
        parts=made_of or msgspec.UNSET,
        worst=worst if lost.get("idm") else {},
        details=UserResult(right, words),
        slices=slices,
    )


def _columns(
    right: Sequence[Answers], words: int | None, options: Options
) -> dict[str, list[float | None]]:
    """The values of each run in the columns that answers decide."""
    columns = {"qm": [quality(run, options.threshold) for run in right]}
    for task, answers in zip(TASKS, zip(*right, strict=True), strict=True):
        columns[task] = [None if one is None else float(one) for one in answers]
    if words is not None:
        columns["idm"] = [density(run, words) for run in right]
    return columns


def _marks(outcome: Any) -> tuple[dict[str, float], dict[str, str]]:
    """The judge's marks as values, or the cause why there are none; neither if it was not asked."""
    if outcome is None:
        return {}, {}
    if isinstance(outcome, FAILURES):
        return {}, dict.fromkeys(RATED, f"rate/{outcome.cause}")
    marks = {name: float(mark) for name, mark in msgspec.structs.asdict(outcome.value).items()}
    return {**marks, "autoeval": fmean(marks.values())}, {}


def _first_cause(records: Iterable[Record[Any, Any]], stage: str) -> str | None:
    """The stage and the cause of the first failure; None if all records have a value."""
    failures = (one.outcome for one in records if isinstance(one.outcome, FAILURES))
    return next((f"{stage}/{failure.cause}" for failure in failures), None)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
