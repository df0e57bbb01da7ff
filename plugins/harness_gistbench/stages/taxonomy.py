"""Stage 3: every distinct interest is put into one category of the taxonomy, once for all runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness import Calls, Classified, Classify, Failure, NoVerdict, Stage
from harness.hashing import stable_int
from harness_gistbench.interests import folded
from harness_gistbench.records import Batch, Mapped, Options
from harness_gistbench.taxonomy import categories, taxonomy_digest

if TYPE_CHECKING:
    from harness import Desk, Records
    from harness_gistbench.histories import Histories

EVERYBODY = "*"
"""Whom an item is about that serves all users."""

TRIES = 3
"""Questions that an interest may be left out of, among others that were mapped."""

MISREAD = frozenset({"no_json", "schema", "empty", "truncated", "refused"})
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

    One interest can spoil the answer for all that it is asked with, so those of an answer without
    any category are asked in halves, down to one. Every question maps an interest, halves them or
    gives one up: there are fewer than twice as many as interests.
    """
    memo = desk.memo(taxonomy_digest(item.categories))
    known = {name: int(id) for name in item.interests if (id := memo.get(name)) is not None}
    remembered = len(known)
    ids = {one.name: one.id for one in item.categories}
    waiting = deque([(tuple(name for name in item.interests if name not in known), 1)])
    while waiting:
        asked, tried = waiting.popleft()
        if not asked:
            continue
        question = Classify(prompt="taxonomy", texts=asked, labels=tuple(ids))
        verdict = await desk.judge(question, role="taxonomist")
        if isinstance(verdict, NoVerdict) and verdict.cause not in MISREAD:
            return verdict
        new = named(asked, verdict)
        known.update({name: int(memo.put(name, str(ids[label]))) for name, label in new.items()})
        if new and tried < TRIES:
            waiting.append((tuple(name for name in asked if name not in new), tried + 1))
        elif not new and len(asked) > 1:
            half = len(asked) // 2
            waiting.extend([(asked[:half], tried), (asked[half:], tried)])
    return Mapped(
        categories={name: known[name] for name in item.interests if name in known},
        unmapped=tuple(name for name in item.interests if name not in known),
        remembered=remembered,
    )


def named(interests: tuple[str, ...], verdict: Classified | NoVerdict) -> dict[str, str]:
    """The label of each interest that was given one."""
    if isinstance(verdict, NoVerdict):
        return {}
    pairs = zip(interests, verdict.labels, strict=True)
    return {interest: label for interest, label in pairs if label is not None}


TAXONOMY = Stage(
    name="taxonomy",
    version=2,
    item=Batch,
    value=Mapped,
    items=batches,
    work=map_interests,
    judges=("taxonomist",),
    options=("taxonomy", "interests_a_question"),
    after=("verify",),
    calls=Calls(least=0, most=TRIES),
)
