"""The method: name tastes, have a judge support them, and foresee the next book."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from acme_borrowed.records import Card, Choice, Claim, Options, Reader, Taste
from harness import (
    Calls,
    Desk,
    Failure,
    JsonReader,
    Parsed,
    Records,
    Select,
    Selected,
    Stage,
    TextReader,
)

Upstreams = Mapping[str, Records[Any, Any]]

READ_TASTES = JsonReader(type=list[Taste])
READ_LETTER: TextReader[str] = TextReader(pattern=r"\b[AB]\b")


def cards(upstreams: Upstreams, readers: list[Reader], options: Options) -> Iterator[Card]:
    for reader in readers:
        yield Card(id=reader.id, user=reader.id, loans=reader.loans[-options.window :])


async def name_tastes(card: Card, desk: Desk) -> tuple[Taste, ...] | Failure:
    """The tastes that the candidate names, each in the spelling that was met first."""
    loans = [
        {"number": number, "title": loan.title, "finished": loan.finished}
        for number, loan in enumerate(card.loans, start=1)
    ]
    variables = {"loans": loans, "most": desk.options.most}
    answer = await desk.ask(
        "candidate", "tastes", variables, read=READ_TASTES, tries=2, corrected=True
    )
    if not isinstance(answer, Parsed):
        return answer
    named = answer.value[: desk.options.most]
    spelling = desk.memo("spelling").keep({one.taste.casefold(): one.taste for one in named})
    return tuple(Taste(spelling[one.taste.casefold()], one.books) for one in named)


def finished(card: Card, taste: Taste) -> tuple[str, ...]:
    """The titles of the cited books that were finished."""
    cited = [card.loans[number - 1] for number in taste.books if 0 < number <= len(card.loans)]
    return tuple(loan.title for loan in cited if loan.finished)


def claims(upstreams: Upstreams, readers: list[Reader], options: Options) -> Iterator[Claim]:
    for card, tastes in upstreams["tastes"].values():
        for place, taste in enumerate(tastes):
            titles = finished(card, taste)
            if titles:
                id = f"{card.user}/{place}"
                yield Claim(id=id, user=card.user, taste=taste.taste, titles=titles)


async def weigh(claim: Claim, desk: Desk) -> tuple[int, ...] | Failure:
    """The places of the titles that the judge keeps."""
    question = Select(prompt="support", subject=claim.taste, options=claim.titles)
    verdict = await desk.judge(question, role="judge")
    return verdict.chosen if isinstance(verdict, Selected) else verdict


def choices(upstreams: Upstreams, readers: list[Reader], options: Options) -> Iterator[Choice]:
    tastes: dict[str, list[str]] = defaultdict(list)
    for claim, kept in upstreams["support"].values():
        if kept:
            tastes[claim.user].append(claim.taste)
    for reader in readers:
        if reader.offer:
            found = tuple(tastes[reader.id])
            yield Choice(id=reader.id, user=reader.id, tastes=found, offer=reader.offer)


async def foresee(choice: Choice, desk: Desk) -> str | Failure:
    """The title that the candidate chooses; which of the two is A is drawn."""
    a, b = choice.offer.borrowed, choice.offer.other
    if desk.random.random() < 0.5:
        a, b = b, a
    desk.log.info("%s chooses between %s and %s", choice.user, a, b)
    variables = {"tastes": choice.tastes, "a": a, "b": b}
    answer = await desk.ask("candidate", "next", variables, read=READ_LETTER, truncated="read")
    if isinstance(answer, Parsed):
        return a if answer.value == "A" else b
    return answer


TASTES = Stage(
    name="tastes",
    version=1,
    item=Card,
    value=tuple[Taste, ...],
    items=cards,
    work=name_tastes,
    roles=("candidate",),
    options=("window", "most"),
    calls=Calls(least=1, most=1),
)
SUPPORT = Stage(
    name="support",
    version=3,
    item=Claim,
    value=tuple[int, ...],
    items=claims,
    work=weigh,
    judges=("judge",),
    after=("tastes",),
    role_hint="--judge acme-strict needs no server",
)
NEXT = Stage(
    name="next",
    version=1,
    item=Choice,
    value=str,
    items=choices,
    work=foresee,
    roles=("candidate",),
    after=("support",),
    when=lambda readers, options: any(reader.offer for reader in readers),
)
