"""Stage 3: every distinct interest is put into one category of the taxonomy, once for all runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness import Calls, Classify, Failure, NoVerdict, Stage
from harness.base.hashing import stable_int
from harness_gistbench.categories import categories, taxonomy_digest
from harness_gistbench.interests import folded
from harness_gistbench.records import Batch, Mapped, Options

if TYPE_CHECKING:
    from harness import Desk, Records
    from harness_gistbench.histories import Histories

EVERYBODY = "*"
"""Whom an item is about that serves all users."""

TRIES = 3
"""Questions that an interest may be left out of before it is given up."""

WHOLE_AND_HALVES = 3
"""Questions about a batch that are not answered, and no other that is, before it is given up."""

ANSWERED = frozenset({"schema", "tied"})
"""Why an answer names no category: none of those it names exists, or a panel's members disagree."""

NO_CATEGORY = "no_category"
"""Why a batch has no verdict in which no interest has a category."""

MISREAD = ANSWERED | {"no_json", "empty", "truncated", "refused"}
"""Why an answer that came is no verdict: asked again it would hardly be one. Every other cause is
of a call that failed, and leaves the interests for another try of the run."""


def batches(
    upstreams: Mapping[str, Records[Any, Any]], _data: Histories, options: Options
) -> Iterator[Batch]:
    """The distinct interests of all users, in an order that depends on nothing but themselves."""
    names = {folded(record.item.interest) for record in upstreams["verify"]}
    ordered = sorted(names, key=lambda name: (stable_int("taxonomy", name), name))
    taxonomy = categories(options.taxonomy)
    size = options.interests_a_question
    for number, start in enumerate(range(0, len(ordered), size), start=1):
        yield Batch(
            id=str(number),
            user=EVERYBODY,
            interests=tuple(ordered[start : start + size]),
            categories=taxonomy,
        )


async def map_interests(item: Batch, desk: Desk) -> Mapped | Failure:
    """The category of each interest: as it was remembered, or as the taxonomist says now.

    Answers are remembered at the end, so an item that starts again asks the same. A taxonomist that
    has a category for none of the interests is of no use: that says nothing about the interests.
    """
    memo = desk.memo(taxonomy_digest(item.categories))
    known = dict(memo.known(item.interests))
    remembered = len(known)
    ids = {one.name: one.id for one in item.categories}
    left = tuple(name for name in item.interests if name not in known)
    said, failure = await ask_about(left, tuple(ids), desk)
    known |= memo.keep({name: str(ids[label]) for name, label in said.items()})
    if failure is not None:
        return failure
    if not known:
        return NoVerdict(NO_CATEGORY, f"none of {len(item.interests)} interests has a category")
    return Mapped(
        categories={name: int(known[name]) for name in item.interests if name in known},
        unmapped=tuple(name for name in item.interests if name not in known),
        remembered=remembered,
    )


async def ask_about(
    interests: tuple[str, ...], labels: tuple[str, ...], desk: Desk
) -> tuple[dict[str, str], NoVerdict | None]:
    """The labels that the taxonomist gives, and why it gives no more where that is a failure.

    One interest can make an answer unreadable for all that it is asked with, so these are asked in
    halves, down to one. Where neither the whole nor a half of it is answered, the fault is the
    taxonomist's, and the batch has no verdict; categories that do not exist are an answer.
    """
    said: dict[str, str] = {}
    waiting = deque([(interests, 1)] if interests else [])
    read, unanswered = 0, 0
    while waiting:
        asked, tried = waiting.popleft()
        question = Classify(prompt="taxonomy", texts=asked, labels=labels)
        verdict = await desk.judge(question, role="taxonomist")
        if isinstance(verdict, NoVerdict):
            unanswered += not ANSWERED.issuperset(verdict.causes)
            silent = not read and unanswered == WHOLE_AND_HALVES
            if silent or not MISREAD.issuperset(verdict.causes):
                return said, verdict
            half = len(asked) // 2
            waiting.extend((part, tried) for part in (asked[:half], asked[half:]) if half and part)
            continue
        read += 1
        pairs = zip(asked, verdict.labels, strict=True)
        said |= {name: label for name, label in pairs if label is not None}
        left = tuple(name for name in asked if name not in said)
        if left and tried < TRIES:
            waiting.append((left, tried + 1))
    return said, None


TAXONOMY = Stage(
    name="taxonomy",
    version=5,
    item=Batch,
    value=Mapped,
    items=batches,
    work=map_interests,
    judges=("taxonomist",),
    options=("taxonomy", "interests_a_question"),
    after=("verify",),
    calls=Calls(least=0, most=1),  # names that an answer leaves out are asked as one that fails
)
