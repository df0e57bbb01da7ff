"""The stages: a user's past becomes a summary, and the summary predicts the future."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from harness import Calls, Classified, Classify, Done, Failure, NoVerdict, Parsed, Stage
from harness_usersumbench import loop
from harness_usersumbench.parsing import LETTERS, OptionReader, SummaryReader
from harness_usersumbench.questions import ordered
from harness_usersumbench.records import (
    TASKS,
    Check,
    Method,
    Past,
    Question,
    Rated,
    Ratings,
    Refined,
    Segment,
    Segments,
    Summary,
    Task,
    count_words,
)
from harness_usersumbench.rendering import lines, time_range
from harness_usersumbench.segments import segmented

if TYPE_CHECKING:
    from harness import Desk, Records
    from harness_usersumbench.data import People

    Upstreams = Mapping[str, Records[Any, Any]]

ABOUT_ACTIVITIES: tuple[Task, ...] = ("t1", "t2")
WITH_RECENT: tuple[Task, ...] = ("t2", "t4")
"""The tasks that ask for an activity, and those that show the most recent ones."""

RATINGS = ("1", "2", "3", "4", "5")

SINGLE: tuple[Method, ...] = ("single_step", "other")
"""The methods that summarise a past at once."""


def in_segments(_data: Any, options: Any) -> bool:
    """Whether a past is summarised by segments."""
    return bool(options.method == "hierarchy_critique")


def pasts(_upstreams: Upstreams, data: People, options: Any) -> Iterator[Past]:
    """One item per user: the user's past, or with the method `other` that of another user."""
    by_id = {person.id: person for person in data.people}
    for person in data.people:
        shown = data.others[person.id] if options.method == "other" else person.id
        yield Past(id=person.id, user=person.id, activities=by_id[shown].past)


async def summarise(item: Past, desk: Desk) -> Summary | Failure:
    """The candidate's summary of a whole past."""
    activities = "\n".join(lines(item.activities, desk.options))
    return await _summary("summarise", {"user_activities": activities}, desk)


def segments(_upstreams: Upstreams, data: People, options: Any) -> Iterator[Segment]:
    """One item per segment of a user's past."""
    for person in data.people:
        parts, by = segmented(person.past, options)
        for number, activities in enumerate(parts, start=1):
            yield Segment(
                id=f"{person.id}/{number}",
                user=person.id,
                number=number,
                of=len(parts),
                by=by,
                activities=activities,
            )


def checks(upstreams: Upstreams, _data: People, _options: Any) -> Iterator[Check]:
    """One item per check of a segment's summary."""
    for item, value in upstreams["segment"].values():
        for number, one in enumerate(value.rounds, start=1):
            yield Check(
                id=f"{item.id}/{number}",
                user=item.user,
                flagged=one.flagged,
                unread=one.unread,
                unjudged=sum(pair.consistent is None for pair in one.pairs),
            )


async def verify(item: Check, _desk: Desk) -> bool | NoVerdict:
    """Whether a check flags its summary; no verdict if it could not be read, whatever it flags.

    So checks that could not be read have a limit, although summaries are made without them.
    """
    if not item.unread and not item.unjudged:
        return item.flagged
    answers = ", ".join(item.unread) or f"judgements of {item.unjudged} pairs"
    another = "name another verifier with --role verifier=SPEC"
    return NoVerdict("unread_check", f"the verifier's {answers} cannot be read; {another}")


def refined(upstreams: Upstreams, _data: People, _options: Any) -> Iterator[Segments]:
    """One item per user whose segments all have a summary, in the order of time."""
    for user, records in upstreams["segment"].by_user():
        records.sort(key=lambda record: record.item.number)
        done = [(one.item, one.outcome.value) for one in records if isinstance(one.outcome, Done)]
        if len(done) == records[0].item.of:
            yield Segments(
                id=user,
                user=user,
                ranges=tuple(time_range(segment.activities) for segment, _ in done),
                summaries=tuple(value.text for _, value in done),
            )


async def combine(item: Segments, desk: Desk) -> Summary | Failure:
    """The candidate's summary of a user's segments."""
    parts = [
        {"time_range": when, "segment_summary": text}
        for when, text in zip(item.ranges, item.summaries, strict=True)
    ]
    return await _summary("combine", {"segments": parts}, desk)


def questions(upstreams: Upstreams, data: People, options: Any) -> Iterator[Question]:
    """One item per user, task and run; a user without a summary has none if the method makes one.

    The activities that a question shows are the whole past or the most recent ones.
    """
    texts = _summaries(upstreams)
    for person in data.people:
        if texts is not None and person.id not in texts:
            continue
        text = texts[person.id] if texts is not None else None
        for task in TASKS:
            shown = person.past[-options.recent :] if task in WITH_RECENT else ()
            if options.method == "raw_timeline":
                shown = person.past
            drawn = person.activity if task in ABOUT_ACTIVITIES else person.category
            for run in range(1, options.runs + 1):
                asked = ordered(drawn, seed=data.seed, user=person.id, task=task, run=run)
                yield Question(
                    id=f"{person.id}/{task}/{run}",
                    user=person.id,
                    task=task,
                    run=run,
                    history=len(person.past),
                    summary=text,
                    words=None if text is None else count_words(text),
                    shown=shown,
                    options=asked.options,
                    right=asked.right,
                    popular=asked.popular,
                )


async def predict(item: Question, desk: Desk) -> int | Failure:
    """The position of the option that the predictor chooses."""
    variables = {
        "summary": item.summary,
        "user_activities": "\n".join(lines(item.shown, desk.options)),
        "asked": "activity" if item.task in ABOUT_ACTIVITIES else "category",
        "thing": desk.options.thing,
        "category": desk.options.category,
        "options": list(map(list, zip(LETTERS, item.options, strict=True))),
    }
    read = OptionReader(options=item.options)
    answer = await desk.ask("predictor", "predict", variables, read=read, repeat=item.run - 1)
    return answer.value if isinstance(answer, Parsed) else answer


def rated(upstreams: Upstreams, _data: People, _options: Any) -> Iterator[Rated]:
    """One item per user with a summary."""
    for user, text in (_summaries(upstreams) or {}).items():
        yield Rated(id=user, user=user, summary=text)


async def rate(item: Rated, desk: Desk) -> Ratings | Failure:
    """The judge's marks of a summary."""
    marks = {}
    for aspect in Ratings.__struct_fields__:
        question = Classify(
            prompt="rate",
            texts=(item.summary,),
            labels=RATINGS,
            variables={"aspect": aspect, "query": desk.options.query},
        )
        verdict = await desk.judge(question)
        if not isinstance(verdict, Classified):
            return verdict
        mark = verdict.labels[0]
        if mark is None:
            return NoVerdict("no_label", f"{aspect} has no mark")
        marks[aspect] = int(mark)
    return Ratings(**marks)


async def _summary(prompt: str, variables: Mapping[str, Any], desk: Desk) -> Summary | Failure:
    more = {"query": desk.options.query, "max_words": desk.options.max_words}
    answer = await desk.ask("candidate", prompt, {**more, **variables}, read=SummaryReader())
    return answer.value if isinstance(answer, Parsed) else answer


def _summaries(upstreams: Upstreams) -> dict[str, str] | None:
    """The summary of each user who has one; None if the method makes none."""
    for stage in ("combine", "summarise"):
        if stage in upstreams:
            return {item.user: summary.text for item, summary in upstreams[stage].values()}
    return None


SUMMARISE = Stage(
    "summarise",
    item=Past,
    value=Summary,
    items=pasts,
    work=summarise,
    roles=("candidate",),
    options=("method", "query", "max_words", "verb"),
    when=lambda _, options: options.method in SINGLE,
)

SEGMENT = Stage(
    "segment",
    version=2,
    item=Segment,
    value=Refined,
    items=segments,
    work=loop.refine,
    roles=("candidate", "verifier"),
    prompts=loop.PROMPTS,
    asks=loop.prompts_of,
    options=("segmenting", "min_segment_activities", "segments", *loop.OPTIONS),
    calls=loop.calls_of,
    sequential=True,
    when=in_segments,
)

VERIFY = Stage(
    "verify",
    item=Check,
    value=bool,
    items=checks,
    work=verify,
    after=("segment",),
    calls=Calls(least=0, most=0),
    when=in_segments,
)

COMBINE = Stage(
    "combine",
    item=Segments,
    value=Summary,
    items=refined,
    work=combine,
    roles=("candidate",),
    options=("query", "max_words"),
    after=("segment", "verify"),
    when=in_segments,
)

PREDICT = Stage(
    "predict",
    version=2,
    item=Question,
    recorded=lambda item: replace(item, shown=()),
    value=int,
    items=questions,
    work=predict,
    roles=("predictor",),
    options=("method", "recent", "runs", "thing", "category", "verb"),
    after=("summarise", "combine"),
)

RATE = Stage(
    "rate",
    item=Rated,
    value=Ratings,
    items=rated,
    work=rate,
    judges=("judge",),
    options=("query",),
    after=("summarise", "combine"),
    calls=Calls(least=2, most=2),
    when=lambda data, options: (
        options.autoeval and (options.method in SINGLE or in_segments(data, options))
    ),
    role_hint="the option `autoeval` lets a judge rate the summaries: name one with --judge SPEC",
)

STAGES = (SUMMARISE, SEGMENT, VERIFY, COMBINE, PREDICT, RATE)
